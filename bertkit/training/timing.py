"""Where the seconds of a step go: a stop-watch that the loop is handed by whoever wants to know."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Timing:
    """Seconds by part, added up.

    Args:
        device: On an accelerator the clock waits for the device at each border of a part, so that the work is booked where it
            was asked for; that costs some speed.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._waits = device is not None and device.type == "cuda"

    def _now(self) -> float:
        if self._waits:
            torch.cuda.synchronize()
        return time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Books what happens inside under ``name``."""
        began = self._now()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self._now() - began

    def take(self) -> dict[str, float]:
        """What was booked since the last call."""
        taken, self.seconds = self.seconds, {}
        return taken


class NoTiming(Timing):
    """Books nothing."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Nothing."""
        yield
