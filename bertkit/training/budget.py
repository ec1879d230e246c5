"""When a run ends: after so many optimizer steps, or when its time is up.

Trained time is wall time from the first step on, validating and saving included, added up over all starts of a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from bertkit.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """The end of one part of a run; with neither set it ends with the run.

    Attributes:
        step: The optimizer step that is its last.
        share: The share of the time that is spent when it ends.
    """

    step: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much training a run gets; with both set, what is spent first ends it.

    Attributes:
        steps: Optimizer steps, or None.
        seconds: Trained seconds over all starts, or None.
    """

    steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise SettingsError("A run needs an end.", hint="Give --steps, --epochs or --max-minutes.")

    @staticmethod
    def of(
        *,
        steps: int | None = None,
        epochs: float | None = None,
        minutes: float | None = None,
        epoch_steps: Callable[[int], int] | None = None,
    ) -> Budget:
        """A budget in the words of the settings; ``epoch_steps(epoch)`` is needed for ``epochs`` alone.

        Each epoch counts as many steps as the first: of pairs that are drawn anew some have a few per mille more or fewer,
        and to know them all would take drawing them all before the first step.
        """
        if epochs is not None:
            if epoch_steps is None:
                raise ValueError("epochs need epoch_steps")
            planned = math.ceil(epochs * epoch_steps(0) - 1e-9)
            steps = planned if steps is None else min(steps, planned)
        return Budget(steps=steps, seconds=None if minutes is None else 60.0 * minutes)

    def parts(self, shares: Sequence[float]) -> tuple[Until, ...]:
        """The ends of parts with these shares, which come to 1: of the planned steps, or of the time where there are none.

        They lie at the rounded shares of all that has gone before, so 0.9 and 0.1 of 15 steps are 14 and 1.
        """
        ends, before = [], 0.0
        for share in shares[:-1]:
            before += share
            step = None if self.steps is None else math.floor(before * self.steps + 0.5 + 1e-9)
            ends.append(Until(step=step, share=before if step is None else None))
        return (*ends, Until())

    def without_steps(self, ends: Sequence[Until]) -> list[int]:
        """The numbers, from 0, of the parts of :meth:`parts` that rounding leaves no step of the planned ones."""
        if self.steps is None:
            return []
        bounds = [0, *(end.step for end in ends if end.step is not None), self.steps]
        return [number for number, (first, last) in enumerate(pairwise(bounds)) if first == last]

    def share(self, seconds: float, reserve: float = 0.0) -> float:
        """The share of the time that is spent, 0 … 1, where ``reserve`` seconds are kept for the end; 0 without a clock."""
        if self.seconds is None:
            return 0.0
        room = self.seconds - reserve
        return 1.0 if room <= 0 else min(1.0, max(0.0, seconds / room))

    def leaves_time(self, seconds: float, next_step: float, reserve: float) -> bool:
        """Is there time for one more step of ``next_step`` seconds before the last validation and saving?"""
        return self.seconds is None or seconds + next_step + reserve <= self.seconds


class Clock:
    """Trained seconds over all starts, and what the end of the run will take.

    Args:
        before: Trained seconds of earlier starts.
        now: Seconds from any beginning that never run backwards.
    """

    def __init__(self, before: float = 0.0, now: Callable[[], float] = time.monotonic) -> None:
        self._before = before
        self._now = now
        self._started: float | None = None
        self._expected: dict[str, float] = {}

    def start(self) -> None:
        """Starts to count; starting again changes nothing."""
        if self._started is None:
            self._started = self._now()

    def seconds(self) -> float:
        """Trained seconds so far."""
        return self._before + (0.0 if self._started is None else self._now() - self._started)

    def expect(self, what: str, seconds: float) -> None:
        """Says how long one ``what`` ("validation", "saving") at the end of the run will take."""
        self._expected[what] = seconds

    def knows(self, what: str) -> bool:
        """Has it been said or seen how long ``what`` takes?"""
        return what in self._expected

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Times one ``what``; the next is expected to take as long."""
        began = self._now()
        yield
        self.expect(what, self._now() - began)

    @property
    def reserve(self) -> float:
        """Seconds that the end of the run is expected to take."""
        return sum(self._expected.values())
