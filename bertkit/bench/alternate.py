"""Two (or one) ways of doing the same work, in turn: rates, their ratio as median and spread, and where the time goes.

Machines are noisy and drift, so sides are never measured one behind the other: each round runs all of them, and a ratio is
taken within a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one side did in one round: ``units`` (tokens) of ``texts`` in ``seconds``; ``parts`` is the seconds of each part."""

    units: int
    seconds: float
    parts: dict[str, float]
    texts: int = 0

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.units / self.seconds


class Side(Protocol):
    """One way of doing the work."""

    name: str

    def run(self, seconds: float) -> Round:
        """Works for about so long, in whole steps."""


def alternate(
    sides: Sequence[Side], *, rounds: int, seconds: float, warm: float = 1.0, done: Callable[[int], None] = lambda n: None
) -> dict[str, list[Round]]:
    """Runs each side in turn, ``rounds`` times; a first short one of each (at least ``warm`` seconds) does not count."""
    for side in sides:
        side.run(warm)
    found: dict[str, list[Round]] = {side.name: [] for side in sides}
    for number in range(rounds):
        # The order turns about, so that a machine that warms up favours none.
        for side in sides if number % 2 == 0 else list(reversed(sides)):
            found[side.name].append(side.run(seconds))
        done(number + 1)
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """``median``, ``low`` and ``high``."""
    return {"median": median(values), "low": min(values), "high": max(values)}


def ratios(ours: Sequence[Round], theirs: Sequence[Round]) -> dict[str, float]:
    """Our rate divided by theirs, round by round: median, low, high."""
    return spread([mine.rate / other.rate for mine, other in zip(ours, theirs, strict=True)])


def parts(rounds: Sequence[Round]) -> dict[str, float]:
    """The share of all rounds' time that each part took; what is left is ``other``."""
    total = sum(each.seconds for each in rounds)
    names = dict.fromkeys(name for each in rounds for name in each.parts)
    shares = {name: sum(each.parts.get(name, 0.0) for each in rounds) / total for name in names}
    return shares | {"other": max(0.0, 1.0 - sum(shares.values()))} if shares else {}
