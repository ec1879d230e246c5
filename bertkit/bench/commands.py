"""Commands in processes of their own, timed, and the file of lines that many of them leave: what scripts of long runs share.

Such a script keeps a line of results for each piece of work as soon as that is done, and asks for it before it begins: started
again after whatever stopped it, it goes on.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLOCKS = {"wall": "seconds", "cpu": "cpu_seconds"}
"""What people call a clock, and its seconds' name in a line of results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command came to.

    Attributes:
        out: What it printed on stdout.
        seconds: By the clock, from its start to its end.
        cpu_seconds: Of all CPUs, with those of the processes that it started and waited for.
    """

    out: str
    seconds: float
    cpu_seconds: float

    def times(self, of: str = "") -> dict[str, float]:
        """Both, rounded to a tenth, under the names that a line of results has them; ``of`` stands before."""
        return {f"{of}seconds": round(self.seconds, 1), f"{of}cpu_seconds": round(self.cpu_seconds, 1)}


def run(argv: Sequence[str]) -> Done:
    """Runs a program to its end, one at a time; its progress goes to stderr, and so does what it printed where it failed.

    An interrupt came to the program too, which is writing a checkpoint: it is waited for.

    Raises:
        CalledProcessError: It failed.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            out = process.communicate()[0].decode()
        except KeyboardInterrupt:
            process.wait()
            raise
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        print(out, file=sys.stderr, flush=True)
        raise subprocess.CalledProcessError(process.returncode, list(argv), out)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Done(out=out, seconds=seconds, cpu_seconds=cpu)


def bertkit(*words: str) -> tuple[dict[str, Any], Done]:
    """Runs a command of bertkit's with ``--json``; the object that it prints, and what it took.

    Raises:
        CalledProcessError: As :func:`run`.
    """
    done = run([sys.executable, "-m", "bertkit", *words, "--json"])
    return json.loads(done.out), done


class Lines:
    """A file of JSON lines, each a finished piece of work.

    Args:
        path: Need not be there; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def find(self, facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """The first line that has all of these facts, or None."""
        return next((line for line in self._read() if facts.items() <= line.items()), None)

    def keep(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a line at the end, and gives it as :meth:`find` will."""
        text = json.dumps(line, allow_nan=False)
        before = self._path.read_bytes() if self._path.exists() else b""
        torn = before[-1:] not in (b"", b"\n")
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{chr(10) if torn else ''}{text}\n")
        found: dict[str, Any] = json.loads(text)
        return found

    def _read(self) -> Iterator[dict[str, Any]]:
        """Every line, but for one that a full disk cut short."""
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                yield json.loads(line)
