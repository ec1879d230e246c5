"""The peak of memory of a piece of work, in a process of its own so that nothing else counts."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_EVERY = 0.005  # seconds between two looks


def anonymous_bytes() -> int:
    """Memory of this process that is no mapped file (RssAnon of /proc); its whole resident memory where there is no /proc."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import psutil

    return int(psutil.Process().memory_info().rss)


class Peak:
    """The highest :func:`anonymous_bytes` seen while it is open, by a thread that looks every 5 ms."""

    def __enter__(self) -> Peak:
        self.bytes = anonymous_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            self.bytes = max(self.bytes, anonymous_bytes())

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.bytes = max(self.bytes, anonymous_bytes())


def peak_of(work: Callable[..., None], *arguments: Any) -> int:
    """Bytes at the peak of ``work(*arguments)`` in a new process: on a CUDA device its allocator's, else anonymous memory."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(theirs, work, arguments), name="memory")
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process that measures memory ended with code {process.exitcode}") from None
    process.join()
    return int(found)


def _measured(pipe: Any, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    with Peak() as peak:
        work(*arguments)
    on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    pipe.send(torch.cuda.max_memory_allocated() if on_gpu else peak.bytes)
