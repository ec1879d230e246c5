"""All figures of a part: the task's own and, under ``evaluate/``, those of metrics that were added to a run.

Predictions and gold go to an added metric in evaluate's form: classes as numbers in the head's order, several labels as rows of
0 and 1, numbers, tags and candidates' places as they are, answers as evaluate's ``squad`` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bertkit.metrics.added import AddedMetric
from bertkit.notices import hushed
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.task import Task

PREFIX = "evaluate/"


def all_scores(
    kind: Kind, predictions: Sequence[Prediction], rows: Sequence[Any], task: Task, labels: Labels, added: Sequence[AddedMetric]
) -> Scores:
    """The official figures, and what each added metric says of the rows that have gold.

    The interval does not hang on a run's seed, so that ``eval`` finds the one that the training found.

    Raises:
        DataError: Nothing to score, or a metric cannot score such rows (exit 3).
    """
    own = kind.score(predictions, rows, task, labels)
    return replace(own, values={**own.values, **added_figures(added, predictions, kind.head, labels)})


def added_figures(
    metrics: Sequence[AddedMetric], predictions: Sequence[Prediction], head: str, labels: Labels
) -> dict[str, float | None]:
    """What each metric says of the rows that have gold, by ``evaluate/NAME`` and as the metric gives it.

    Raises:
        DataError: A metric cannot score such rows (exit 3).
    """
    judged = [prediction for prediction in predictions if prediction.gold is not None]
    said = [_given(one, one.value, head, labels) for one in judged]
    gold = [_gold(one, head, labels) for one in judged]
    found: dict[str, float | None] = {}
    for metric in metrics if judged else ():
        for key, value in metric.figures(said, gold).items():
            plain = f"{PREFIX}{key}"
            found[plain if plain not in found else f"{PREFIX}{metric.stem}.{key}"] = value
    return found


def rehearse(metrics: Sequence[AddedMetric], kind: Kind, rows: Sequence[Any], labels: Labels) -> None:
    """Has each metric score the gold itself: one that cannot score such rows is refused before any work, not after it.

    Raises:
        DataError: There is one (exit 3).
    """
    if not metrics:
        return
    golds = kind.golds(rows, labels)
    answers = [next(iter(gold or ()), "") for gold in golds] if kind.head == "span" else golds
    said = [Prediction(id=row.id, value=value, gold=gold) for row, value, gold in zip(rows, answers, golds, strict=True)]
    with hushed("undefined-score"):
        added_figures(metrics, said, kind.head, labels)


def _gold(one: Prediction, head: str, labels: Labels) -> Any:
    if head == "span":
        return {"id": one.id, "answers": {"text": list(one.gold), "answer_start": [0] * len(one.gold)}}
    return _given(one, one.gold, head, labels)


def _given(one: Prediction, value: Any, head: str, labels: Labels) -> Any:
    if head == "span":
        return {"id": one.id, "prediction_text": value or ""}
    if head in ("tagging", "choice") or labels.problem == "regression":
        return value
    if labels.problem == "multi_label_classification":
        return [int(name in value) for name in labels.names]
    number = labels.number(str(value))
    return labels.outputs if number is None else number  # a name that the data do not have is a class of its own
