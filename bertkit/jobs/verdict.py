"""A verdict: what one gate says of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one gate says.

    Attributes:
        kind: ``min``, ``max`` or ``not-worse-than``.
        metric: The figure's key in metrics.json.
        part: The part of the data; None where the figure's name says it.
        outcome: ``pass``, ``fail`` or ``inconclusive``.
        met: Whether the command may end well.
        numbers: ``value`` and ``threshold``, or ``value``, ``other``, ``difference``, ``interval``, ``margin``, ``examples``,
            ``differing`` and ``than``; as pages show the figure, shares in points, and None where there is no such number.
        message: One sentence.
    """

    kind: Literal["min", "max", "not-worse-than"]
    metric: str
    part: str | None
    outcome: Literal["pass", "fail", "inconclusive"]
    met: bool
    numbers: Mapping[str, Any]
    message: str

    @property
    def name(self) -> str:
        """``min accuracy``, ``not worse accuracy (validation)``: a test case's name."""
        return f"not worse {self.metric} ({self.part})" if self.kind == "not-worse-than" else f"{self.kind} {self.metric}"

    def facts(self) -> dict[str, Any]:
        """One JSON object."""
        names = ("kind", "metric", "part", "outcome", "met")
        return {name: getattr(self, name) for name in names} | dict(self.numbers) | {"message": self.message}
