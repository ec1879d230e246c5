"""Is one system worse than another on the same examples? A paired bootstrap, and its answer in one of three words.

The interval is that of the difference of the two scores (ours minus theirs), 95 %, both on the same resamples. With a margin of
points that one is ready to lose (0: none):

- ``pass``: the whole interval lies at or above −margin: at 95 % the system is not worse by more than that.
- ``fail``: the whole interval lies below −margin: at 95 % it is worse by more than that. It takes six examples at least on which
  the two differ: a fair coin falls alike five times running in 1 of 16 series, which is more than 5 %, and six times in 1 of 32.
- ``inconclusive``: anything else. There are too few examples to tell; that the two are equal is not shown.

A score that is undefined (a constant answer has no correlation) is worse than one that is not; where both are, nothing is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bertkit.metrics.bootstrap import Interval, Resampled

LEAST = 6
Outcome = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the examples say of two systems.

    Attributes:
        ours: The score of the one that is judged; None where it is undefined.
        theirs: The score of the other.
        interval: The 95 % interval of ours minus theirs; None where it is undefined.
        examples: N, those compared.
        differing: Those of which the two scores see something different.
        outcome: In one word.
    """

    ours: float | None
    theirs: float | None
    interval: Interval
    examples: int
    differing: int
    outcome: Outcome

    @property
    def difference(self) -> float | None:
        """Ours minus theirs; None where either is undefined."""
        return None if self.ours is None or self.theirs is None else self.ours - self.theirs


def compare(ours: Resampled, theirs: Resampled, *, margin: float = 0.0, seed: int = 0) -> Comparison:
    """Compares two systems' scores of the same rows, in the same order; ``margin`` is in the score's own scale."""
    values = ours.value, theirs.value
    interval = None if None in values else ours.minus(theirs).interval(seed=seed)
    differing = int((ours.rows != theirs.rows).any(axis=1).sum())
    return Comparison(
        ours=values[0],
        theirs=values[1],
        interval=interval,
        examples=len(ours.rows),
        differing=differing,
        outcome=_outcome(values, interval, margin, differing),
    )


def _outcome(values: tuple[float | None, float | None], interval: Interval, margin: float, differing: int) -> Outcome:
    ours, theirs = values
    if ours is None or theirs is None:
        return "inconclusive" if ours is theirs else "fail" if ours is None else "pass"
    if interval is None:
        return "inconclusive"
    low, high = interval
    if low >= -margin:
        return "pass"
    return "fail" if high < -margin and differing >= LEAST else "inconclusive"
