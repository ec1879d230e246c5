"""A task's predictions in the form that metrics of ``evaluate`` take, and their figures beside the task's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bertkit.metrics.added import AddedMetric
from bertkit.tasks.kinds import Labels, Prediction, Scores

PREFIX = "evaluate/"


def with_added(
    scores: Scores, metrics: Sequence[AddedMetric], predictions: Sequence[Prediction], kind: str, labels: Labels
) -> Scores:
    """The scores, and what each metric says of the rows that have gold, under ``evaluate/NAME`` and as the metric gives it.

    Classes are numbers in the head's order, several labels rows of 0 and 1, numbers, tags and candidates' places themselves,
    answers as evaluate's ``squad`` has them.

    Raises:
        DataError: A metric cannot score such rows (exit 3).
    """
    judged = [prediction for prediction in predictions if prediction.gold is not None]
    if not metrics or not judged:
        return scores
    said = [_given(one, one.value, kind, labels) for one in judged]
    gold = [_gold(one, kind, labels) for one in judged]
    added: dict[str, float | None] = {}
    for metric in metrics:
        for key, value in metric.figures(said, gold).items():
            plain = f"{PREFIX}{key}"
            added[plain if plain not in added else f"{PREFIX}{metric.stem}.{key}"] = value
    return replace(scores, values={**scores.values, **added})


def _gold(one: Prediction, kind: str, labels: Labels) -> Any:
    if kind == "span":
        return {"id": one.id, "answers": {"text": list(one.gold), "answer_start": [0] * len(one.gold)}}
    return _given(one, one.gold, kind, labels)


def _given(one: Prediction, value: Any, kind: str, labels: Labels) -> Any:
    if kind == "span":
        return {"id": one.id, "prediction_text": value or ""}
    if kind in ("tagging", "choice") or labels.problem == "regression":
        return value
    if labels.problem == "multi_label_classification":
        return [int(name in value) for name in labels.names]
    number = labels.number(str(value))
    return labels.outputs if number is None else number  # a name that the data do not have is a class of its own
