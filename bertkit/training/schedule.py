"""Learning rates as pure functions of how far training has come, by steps or by the clock.

Progress is a share of the whole, 0 at the start and 1 at the end. Step n of N (from 1) stands at n / (N + 1), so that
neither the first nor the last step has a rate of 0: with a warm-up of W steps the rate is n/W of the peak up to step W,
then (N + 1 - n) / (N + 1 - W) for the linear shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from bertkit.errors import SettingsError
from bertkit.fields import Settings

Shape = Literal["linear", "cosine", "constant"]


class ScheduleSettings(Settings):
    """The course of the learning rate."""

    shape: Shape = Field("linear", description="What follows the warm-up: linear or cosine decay to 0, or constant.")
    warmup: float | int = Field(0.1, ge=0, description="Warm-up: below 1 a share of the training, else steps.")


def rate_factor(shape: Shape, progress: float, warmup: float) -> float:
    """The share of the peak rate, 0 … 1, at ``progress`` with ``warmup`` as a share of the whole, both in 0 … 1."""
    if progress < warmup:
        return max(0.0, progress / warmup)
    if shape == "constant":
        return 1.0
    left = (1.0 - min(progress, 1.0)) / (1.0 - warmup) if warmup < 1.0 else 0.0
    return left if shape == "linear" else 0.5 * (1.0 - math.cos(math.pi * left))


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The rates of one run. ``steps`` is the planned count of optimizer steps, or None where the clock ends the run.

    Attributes:
        peak: The highest rate.
        shape: What follows the warm-up.
        warmup: A share of the training below 1, else steps.
        steps: Planned optimizer steps; None: :meth:`rate` goes by the share of the time.
    """

    peak: float
    shape: Shape = "linear"
    warmup: float = 0.1
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.steps is None and self.warmup >= 1:
            raise SettingsError(
                f"A warm-up of {self.warmup:g} steps has no length under --max-minutes.",
                where="warmup",
                hint="Give it as a share of the time, e.g. --warmup 0.1.",
            )

    @property
    def warmup_share(self) -> float:
        """The warm-up as a share of the whole."""
        if self.steps is None:
            return self.warmup
        warmup = self.warmup if self.warmup >= 1 else math.floor(self.warmup * self.steps + 0.5)
        return min(1.0, max(1.0, warmup) / (self.steps + 1))

    def rate(self, step: int, elapsed: float = 0.0) -> float:
        """The rate of optimizer step ``step`` (from 1), or, without planned steps, at the share ``elapsed`` of the time."""
        # When the first step by the clock begins no time has passed, and a rate of 0 would waste it.
        progress = max(elapsed, 0.01 * self.warmup_share) if self.steps is None else step / (self.steps + 1)
        return self.peak * rate_factor(self.shape, progress, self.warmup_share)

    def warming(self, step: int, elapsed: float = 0.0) -> bool:
        """Is that step still part of the warm-up?"""
        return (elapsed if self.steps is None else step / (self.steps + 1)) < self.warmup_share
