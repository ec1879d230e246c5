"""What a quality gate asks of an evaluation: figures that must be reached, and another run that must not be beaten by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bertkit.fields import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The least that a figure must be, in points (0-100; correlations may be below 0)."""

    metric: str
    points: float


def threshold(text: str) -> Threshold:
    """``f1=80`` or ``f1=80%``.

    Raises:
        ValueError: It is no such text, or may mean a fraction or points.
    """
    metric, _, number = text.rpartition("=")
    percent = number.endswith("%")
    try:
        points = float(number.removesuffix("%"))
    except ValueError:
        points = math.nan
    if not metric.strip() or not -100 <= points <= 100:
        raise ValueError(f"is NAME=POINTS with points up to 100, such as f1=80, not {text!r}")
    if 0 < points <= 1 and not percent:
        raise ValueError(
            f"says {text}: {number} or {100 * points:g} points? "
            f"Write {metric}={100 * points:g} for {100 * points:g} points, or {metric}={number}% for {number}"
        )
    return Threshold(metric=metric.strip(), points=points)


def _checked(text: str) -> str:
    threshold(text)
    return text


class GateSettings(Settings):
    """Gates of ``bertkit eval``: where one is not met the command ends with exit code 7, after everything was written."""

    min: tuple[Annotated[str, AfterValidator(_checked)], ...] = Field(
        (), description="Figures that must be reached, NAME=POINTS such as f1=80 (84% is taken too)."
    )
    not_worse_than: str | None = Field(
        None,
        description="A run folder, an evals folder or a file of predictions: the model must not be worse than those, at 95 %.",
    )
    margin: float = Field(0.0, ge=0, le=100, description="Points that the model may be worse than not_worse_than.")
    inconclusive: Literal["warn", "fail"] = Field(
        "warn", description="What a comparison does that shows neither: warn (exit 0) or fail (exit 7)."
    )
    junit: str | None = Field(None, description="Write the gates into this file as a JUnit test suite, one test case a gate.")

    @property
    def any(self) -> bool:
        """Whether there is a gate."""
        return bool(self.min) or self.not_worse_than is not None

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        if self.junit is not None and not self.any:
            yield ("gates.junit",), "A JUnit file holds gates, and there is none: give min or not_worse_than."
        for name in ("margin", "inconclusive"):
            if name in self.model_fields_set and self.not_worse_than is None:
                yield (f"gates.{name}", "gates.not_worse_than"), f"{name} belongs to a comparison: give not_worse_than too."
