"""The peak of memory of a program and of all processes that it starts, looked at from outside."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

EVERY = 0.05  # seconds between two looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a program came to.

    Attributes:
        peak: Bytes of anonymous memory (RssAnon) of all its processes together, at the highest look.
        first: Of those, at their own highest look, the first process'.
        seconds: How long it ran.
        out: What it wrote to stdout.
    """

    peak: int
    first: int
    seconds: float
    out: str


def watch(argv: Sequence[str], *, every: float = EVERY) -> Watched:
    """Runs a program to its end, looking at its memory ``every`` so many seconds (Linux).

    Raises:
        CalledProcessError: It failed.
    """
    begun = time.monotonic()
    peak = first = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            mine = _anonymous(process.pid)
            peak, first = max(peak, mine + _of_children(process.pid)), max(first, mine)
            time.sleep(every)
        seconds = time.monotonic() - begun
        out = process.stdout.read() if process.stdout is not None else ""  # a program of many words would wait for a reader
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(argv), out)
    return Watched(peak=peak, first=first, seconds=seconds, out=out)


def _of_children(pid: int) -> int:
    try:
        return sum(_anonymous(child.pid) for child in psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return 0


def _anonymous(pid: int) -> int:
    """RssAnon of a process in bytes; 0 once it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)
