"""What a quality gate asks of an evaluation: figures to be reached or not to be passed, a run not to be worse than."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bertkit.fields import Settings
from bertkit.metrics.shares import is_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The least or most that a figure may be, as pages show it: a share in points (0-100; correlations may be below 0)."""

    metric: str
    value: float


def threshold(text: str) -> Threshold:
    """``f1=80`` or ``f1=80%``; of a figure that is no share its own value, ``mlm_loss=2.5``.

    Raises:
        ValueError: It is no such text, or may mean a fraction or points.
    """
    metric, _, number = text.rpartition("=")
    percent = number.endswith("%")
    share = is_share(metric)
    try:
        points = float(number.removesuffix("%") if share else number)
    except ValueError:
        points = math.nan
    if not share:
        if not math.isfinite(points):
            raise ValueError(f"is NAME=VALUE with a number, such as {metric}=2.5, not {text!r}")
        return Threshold(metric=metric.strip(), value=points)
    if not metric.strip() or not -100 <= points <= 100:
        raise ValueError(f"is NAME=POINTS with points up to 100, such as f1=80, not {text!r}")
    if 0 < points <= 1 and not percent:
        raise ValueError(
            f"says {text}: {number} or {100 * points:g} points? "
            f"Write {metric}={100 * points:g} for {100 * points:g} points, or {metric}={number}% for {number}"
        )
    return Threshold(metric=metric.strip(), value=points)


def _checked(text: str) -> str:
    threshold(text)
    return text


class ThresholdSettings(Settings):
    """Gates of any ``bertkit eval``: where one is not met the command ends with exit code 7, after everything was written."""

    min: tuple[Annotated[str, AfterValidator(_checked)], ...] = Field(
        (), description="Figures that must be reached, NAME=POINTS such as f1=80 (84% is taken too)."
    )
    max: tuple[Annotated[str, AfterValidator(_checked)], ...] = Field(
        (), description="Figures that must not be passed, NAME=VALUE such as mlm_loss=2.5: losses as they are, shares in points."
    )
    junit: str | None = Field(None, description="Write the gates into this file as a JUnit test suite, one test case a gate.")

    @property
    def any(self) -> bool:
        """Whether there is a gate."""
        return bool(self.min or self.max)

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        if self.junit is not None and not self.any:
            known = [name for name in ("min", "max", "not_worse_than") if name in type(self).model_fields]
            yield ("gates.junit",), f"A JUnit file holds gates, and there is none: give {' or '.join(known)}."


class GateSettings(ThresholdSettings):
    """Gates of an evaluation that leaves predictions: a comparison beside the thresholds."""

    not_worse_than: str | None = Field(
        None,
        description="A run folder, an evals folder or a file of predictions: the model must not be worse than those, at 95 %.",
    )
    margin: float = Field(0.0, ge=0, le=100, description="Points that the model may be worse than not_worse_than.")
    inconclusive: Literal["warn", "fail"] = Field(
        "warn", description="What a comparison does that shows neither: warn (exit 0) or fail (exit 7)."
    )

    @property
    def any(self) -> bool:
        """Whether there is a gate."""
        return super().any or self.not_worse_than is not None

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        yield from super().contradictions()
        for name in ("margin", "inconclusive"):
            if name in self.model_fields_set and self.not_worse_than is None:
                yield (f"gates.{name}", "gates.not_worse_than"), f"{name} belongs to a comparison: give not_worse_than too."
