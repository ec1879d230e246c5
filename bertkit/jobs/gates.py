"""The gates of an evaluation: figures that must be reached and runs that must not be beaten by -> a verdict each.

In come the figures and the predictions of what was scored, out go verdicts; printing them and ending with exit code 7 is
:func:`bertkit.jobs.evaluate.evaluate`'s. All numbers of a verdict are points (0-100).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertkit.jobs.comparing import comparison_verdict
from bertkit.jobs.given import counterparts
from bertkit.jobs.thresholds import Thresholds, scale
from bertkit.jobs.verdict import Verdict
from bertkit.metrics.comparison import compare
from bertkit.settings.gates import GateSettings
from bertkit.tasks.added_figures import PREFIX
from bertkit.tasks.data import TaskPart
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.task import Task


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
        self.thresholds = Thresholds(settings, task.name, task.metrics, lambda name: _may_be(name, task.metrics))
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
        return [*self.thresholds.verdicts(figures), *self._compared(figures, predictions)]

    def _compared(self, figures: Mapping[str, Any], predictions: Mapping[str, Sequence[Prediction]]) -> Iterator[Verdict]:
        by, settings = scale(figures, self.task.primary), self.settings
        for name, theirs in self.theirs.items():
            rows = self.parts[name].rows
            found = compare(
                *(self.kind.resampled(said, rows, self.task, self.labels) for said in (predictions[name], theirs)),
                margin=settings.margin / by,
            )
            yield comparison_verdict(found, settings, metric=self.task.primary, part=name, by=by)


def _may_be(name: str, metrics: Sequence[str]) -> bool:
    """Is this a figure of the task, one of a part (``accuracy_mismatched``) or class (``LOC_f1``), or an added metric's?"""
    return name.startswith(PREFIX) or any(
        name == known or name.startswith(f"{known}_") or name.endswith(f"_{known}") for known in metrics
    )
