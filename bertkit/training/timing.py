"""Where the seconds of a step go: a stop-watch that the loop is handed by whoever wants to know."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Timing:
    """Seconds by part, added up.

    Args:
        device: On CUDA the time is the device's own, from marks that it passes as it works: nobody waits, and a part of the
            host's that the device did not have to wait for takes none.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._marks: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] | None = None
        if device is not None and device.type == "cuda":
            self._marks = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Books what happens inside under ``name``."""
        began, mark = time.perf_counter(), self._mark()
        try:
            yield
        finally:
            end = self._mark()
            if self._marks is not None and mark is not None and end is not None:
                self._marks.append((name, mark, end))
            else:
                self._book(name, time.perf_counter() - began)

    def _mark(self) -> torch.cuda.Event | None:
        if self._marks is None:
            return None
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _book(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def wait(self) -> None:
        """Until the device has done all that was asked of it."""
        if self._marks is not None:
            torch.cuda.synchronize()

    def take(self) -> dict[str, float]:
        """What was booked since the last call."""
        self.wait()
        for name, began, end in self._marks or []:
            self._book(name, began.elapsed_time(end) / 1000)
        if self._marks:
            self._marks.clear()
        taken, self.seconds = self.seconds, {}
        return taken


class NoTiming(Timing):
    """Books nothing."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Nothing."""
        yield
