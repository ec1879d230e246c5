"""When something is due: every so many steps, or every so many seconds of trained time."""

from __future__ import annotations

from dataclasses import dataclass

from bertkit.settings.parts import Every, every


@dataclass(slots=True)
class Due:
    """Asks after each step whether an interval has ended. Intervals of steps fall on multiples, whatever the start.

    Attributes:
        each: The interval.
        last_seconds: Trained time at which an interval of time last ended.
    """

    each: Every
    last_seconds: float = 0.0

    @staticmethod
    def of(interval: int | str, seconds: float = 0.0) -> Due:
        """``500`` steps, or ``"10m"``; ``seconds`` of trained time lie behind already."""
        return Due(every(interval), seconds)

    def now(self, step: int, seconds: float) -> bool:
        """Is it due after optimizer step ``step`` at trained time ``seconds``?"""
        if self.each.steps is not None:
            return step % self.each.steps == 0
        assert self.each.seconds is not None
        if seconds - self.last_seconds < self.each.seconds:
            return False
        self.last_seconds = seconds
        return True
