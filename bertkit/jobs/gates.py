"""The gates of an evaluation: figures that must be reached and runs that must not be beaten by -> a verdict each.

In come the figures and the predictions of what was scored, out go verdicts; printing them and ending with exit code 7 is
:func:`bertkit.jobs.evaluate.evaluate`'s. All numbers of a verdict are points (0-100).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bertkit.errors import UsageError, nearest
from bertkit.jobs.given import counterparts
from bertkit.metrics.comparison import LEAST, Comparison, compare
from bertkit.settings.gates import GateSettings, threshold
from bertkit.tasks.added_figures import PREFIX
from bertkit.tasks.data import TaskPart
from bertkit.tasks.kinds import Kind, Labels, Prediction
from bertkit.tasks.task import Task

_NO_FIGURES = ("examples", "_interval", "_thresh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one gate says.

    Attributes:
        kind: ``min`` or ``not-worse-than``.
        metric: The figure's key in metrics.json.
        part: The part of the data; None where the figure's name says it.
        outcome: ``pass``, ``fail`` or ``inconclusive``.
        met: Whether the command may end well.
        numbers: ``value`` and ``threshold``, or ``value``, ``other``, ``difference``, ``interval``, ``margin``, ``examples``,
            ``differing`` and ``than``; points, and None where there is no such number.
        message: One sentence.
    """

    kind: Literal["min", "not-worse-than"]
    metric: str
    part: str | None
    outcome: Literal["pass", "fail", "inconclusive"]
    met: bool
    numbers: Mapping[str, Any]
    message: str

    @property
    def name(self) -> str:
        """``min accuracy``, ``not worse (validation)``: a test case's name."""
        return f"min {self.metric}" if self.kind == "min" else f"not worse {self.metric} ({self.part})"

    def facts(self) -> dict[str, Any]:
        """One JSON object."""
        names = ("kind", "metric", "part", "outcome", "met")
        return {name: getattr(self, name) for name in names} | dict(self.numbers) | {"message": self.message}


class Gates:
    """The gates that were asked for; what they need of others is read before the work begins.

    Args:
        settings: What is asked.
        task: The task.
        kind: Its kind.
        labels: The labels of what is scored.
        parts: The parts that will be scored.

    Raises:
        UsageError: A figure that the task cannot have (exit 2).
        MissingError: No predictions to compare with (exit 4).
        DataError: They are of other examples (exit 3).
    """

    def __init__(self, settings: GateSettings, task: Task, kind: Kind, labels: Labels, parts: Mapping[str, TaskPart]) -> None:
        self.started = time.monotonic()
        self.settings, self.task, self.kind, self.labels, self.parts = settings, task, kind, labels, parts
        self.thresholds = [threshold(text) for text in settings.min]
        for each in self.thresholds:
            if not _may_be(each.metric, task.metrics):
                raise _unknown(each.metric, task.metrics, task)
        than = settings.not_worse_than
        self.theirs: dict[str, list[Prediction]] = {}
        if than is not None:
            self.theirs = {
                name: counterparts(kind, than, part, task, labels, alone=len(parts) == 1) for name, part in parts.items()
            }

    def verdicts(self, figures: Mapping[str, Any], predictions: Mapping[str, Sequence[Prediction]]) -> list[Verdict]:
        """All of them, the thresholds first.

        Args:
            figures: Those of all parts, by the keys of metrics.json.
            predictions: By part, one a row.

        Raises:
            UsageError: A figure that is not among them (exit 2).
        """
        return [*self._reached(figures), *self._compared(figures, predictions)]

    def _reached(self, figures: Mapping[str, Any]) -> Iterator[Verdict]:
        known = [name for name in figures if not name.startswith(_NO_FIGURES[0]) and not name.endswith(_NO_FIGURES[1:])]
        for each in self.thresholds:
            if each.metric not in known:
                raise _unknown(each.metric, known, self.task)
            value = None if figures[each.metric] is None else _scale(figures) * figures[each.metric]
            # What is printed as 80.00 has reached 80: figures are sums of floats.
            met = value is not None and value >= each.points - 1e-9
            least = f"{each.points:g}"
            said = (
                f"{each.metric} is {_points(value)}, at least {least}"
                if met
                else f"{each.metric} is undefined, where {least} must be reached"
                if value is None
                else f"{each.metric} is {_points(value)}, below {least}"
            )
            yield Verdict(
                kind="min",
                metric=each.metric,
                part=None,
                outcome="pass" if met else "fail",
                met=met,
                numbers={"value": value, "threshold": each.points},
                message=said,
            )

    def _compared(self, figures: Mapping[str, Any], predictions: Mapping[str, Sequence[Prediction]]) -> Iterator[Verdict]:
        scale, settings = _scale(figures), self.settings
        for name, theirs in self.theirs.items():
            rows = self.parts[name].rows
            found = compare(
                *(self.kind.resampled(said, rows, self.task, self.labels) for said in (predictions[name], theirs)),
                margin=settings.margin / scale,
            )
            yield Verdict(
                kind="not-worse-than",
                metric=self.task.primary,
                part=name,
                outcome=found.outcome,
                met=found.outcome == "pass" or (found.outcome == "inconclusive" and settings.inconclusive == "warn"),
                numbers={
                    "value": _scaled(found.ours, scale),
                    "other": _scaled(found.theirs, scale),
                    "difference": _scaled(found.difference, scale),
                    "interval": None if found.interval is None else [scale * end for end in found.interval],
                    "margin": settings.margin,
                    "examples": found.examples,
                    "differing": found.differing,
                    "than": settings.not_worse_than,
                },
                message=_told(found, name, self.task.primary, settings, scale),
            )


def _told(found: Comparison, part: str, metric: str, settings: GateSettings, scale: int) -> str:
    """The comparison in a sentence."""
    scores = f"{part}: {metric} {_points(_scaled(found.ours, scale))} against {_points(_scaled(found.theirs, scale))}"
    if found.interval is None:
        return f"{scores} of {settings.not_worse_than}"
    low, high = (f"{scale * end:+.2f}" for end in found.interval)
    against = f"{scale * (found.difference or 0.0):+.2f}, at 95 % between {low} and {high}"
    margin = f", {settings.margin:g} may be lost" if settings.margin else ""
    counted = f"{found.examples:,} examples, {found.differing:,} differ"
    few = f"; fewer than {LEAST} prove no loss" if found.outcome == "inconclusive" and found.interval[1] < 0 else ""
    return f"{scores} of {settings.not_worse_than}: {against}{margin} ({counted}{few})"


def _scale(figures: Mapping[str, Any]) -> int:
    """What makes points of figures: SQuAD's, known by their ``exact``, are points already."""
    return 1 if "exact" in figures else 100


def _scaled(value: float | None, scale: int) -> float | None:
    return None if value is None else scale * value


def _points(value: float | None) -> str:
    return "undefined" if value is None or not math.isfinite(value) else f"{value:.2f}"


def _may_be(name: str, metrics: Sequence[str]) -> bool:
    """Is this a figure of the task, one of a part (``accuracy_mismatched``) or class (``LOC_f1``), or an added metric's?"""
    return name.startswith(PREFIX) or any(
        name == known or name.startswith(f"{known}_") or name.endswith(f"_{known}") for known in metrics
    )


def _unknown(name: str, known: Sequence[str], task: Task) -> UsageError:
    return UsageError(
        f"{task.name} has no figure {name!r}.{nearest(name, known)}", where="--min", hint=f"Its figures: {', '.join(known)}."
    )
