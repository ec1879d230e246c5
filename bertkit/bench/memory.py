"""The peak of memory of a piece of work, in a process of its own so that nothing else counts."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from bertkit.errors import BertkitError, ResourceError

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
    """Bytes at the peak of ``work(*arguments)`` in a new process: on a CUDA device its allocator's, else anonymous memory.

    Raises:
        BertkitError: What the work raised.
        ResourceError: The process was ended, as it is where memory runs out (exit 5).
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(theirs, work, arguments), name="memory")
    with _interrupts_ignored():  # Ctrl-C goes to the whole group; this process ends the other one
        process.start()
    try:
        theirs.close()
        found = ours.recv()
        process.join()
    except EOFError:
        process.join()
        raise _ended(process.exitcode) from None
    finally:
        process.kill()  # else an interrupted measurement would be waited for
        process.join()
    if isinstance(found, BertkitError):
        raise found
    return int(found)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A process that is started inside never learns of Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _ended(code: int | None) -> Exception:
    if code is not None and code > 0:
        return RuntimeError(f"the process that measures memory ended with code {code}")  # its traceback is on stderr
    how = "ended" if code is None else f"was ended by {signal.Signals(-code).name}"
    return ResourceError(
        f"The process that measures memory {how}.",
        hint="If memory ran out, take a smaller --batch-size; --no-memory measures speed alone.",
    )


def _measured(pipe: Any, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    try:
        with Peak() as peak:
            work(*arguments)
    except BertkitError as error:
        pipe.send(error)
        return
    on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    pipe.send(torch.cuda.max_memory_allocated() if on_gpu else peak.bytes)
