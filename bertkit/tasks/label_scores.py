"""Predictions of labels and numbers to a task's figures, by its keys, with the interval of the primary one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bertkit.errors import DataError
from bertkit.labelled.rows import TextRow
from bertkit.metrics import classification as counted
from bertkit.metrics.correlation import pearson, spearman
from bertkit.notices import say
from bertkit.tasks.label_resampling import resampled_labels
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.task import Task

_REGRESSION = {"pearson": pearson, "spearman": spearman}
Figures = dict[str, float | None]


def score_labels(
    predictions: Sequence[Prediction], rows: Sequence[TextRow], task: Task, labels: Labels, *, seed: int = 0
) -> Scores:
    """Every key of the task's ``metrics``; a figure that is undefined is None, and said.

    Raises:
        DataError: Nothing to score, or a row without gold (exit 3), with its place.
    """
    if not predictions:
        raise DataError("There is nothing to score: the set is empty.")
    for prediction, row in zip(predictions, rows, strict=True):
        if prediction.gold is None:
            raise DataError("This row has no label to be scored against.", where=str(row.place) or f"row {row.id}")
    gold, predicted = [p.gold for p in predictions], [p.value for p in predictions]
    if labels.problem == "regression":
        values: Figures = {name: _REGRESSION[name](gold, predicted) for name in task.metrics if name in _REGRESSION}
    elif labels.problem == "multi_label_classification":
        values = _several(gold, predicted, task, labels)
    else:
        values = _single(gold, predicted, task, labels)
    for name, value in values.items():
        if value is None:
            say("undefined-score", f"{name} is undefined here (a side never varies, or nothing is positive): it is null.")
    known = values.get(task.primary) is not None
    interval = resampled_labels(predictions, task.primary, labels).interval(seed=seed) if known else None
    return Scores(values=values, primary=task.primary, examples=len(predictions), interval=interval)


def _single(gold: Sequence[str], predicted: Sequence[str], task: Task, labels: Labels) -> Figures:
    figures: dict[str, Callable[[], float | None]] = {
        "accuracy": lambda: counted.accuracy(gold, predicted),
        "f1": lambda: counted.f1(gold, predicted, positive=labels.positive),
        "f1_macro": lambda: counted.f1_macro(gold, predicted),
        "f1_micro": lambda: counted.f1_micro(gold, predicted),
        "matthews": lambda: counted.matthews(gold, predicted),
    }
    return {name: figures[name]() for name in task.metrics if name != "f1" or labels.positive is not None}


def _several(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], task: Task, labels: Labels) -> Figures:
    golds, guesses = [frozenset(names) for names in gold], [frozenset(names) for names in predicted]
    micro, macro = counted.f1_of_sets(golds, guesses, labels.names)
    figures = {"accuracy": counted.accuracy(golds, guesses), "f1_micro": micro, "f1_macro": macro}
    return {name: figures[name] for name in task.metrics if name in figures}
