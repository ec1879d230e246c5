"""Predictions of labels and numbers to a task's figures, by its keys, with the interval of the primary one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertkit.errors import DataError
from bertkit.labelled.rows import TextRow
from bertkit.metrics import classification as counted
from bertkit.metrics.bootstrap import Interval, interval_of_cells, interval_of_counts, interval_of_rows
from bertkit.metrics.correlation import pearson, pearson_of, spearman, spearman_of
from bertkit.notices import say
from bertkit.tasks.kinds import Labels, Prediction, Scores
from bertkit.tasks.task import Task

_REGRESSION = ("pearson", "spearman")
Resampled = Callable[[np.ndarray], np.ndarray]


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
        values, interval = _numbers(gold, predicted, task, seed)
    elif labels.problem == "multi_label_classification":
        values, interval = _several(gold, predicted, task, labels, seed)
    else:
        values, interval = _single(gold, predicted, task, labels, seed)
    for name, value in values.items():
        if value is None:
            say("undefined-score", f"{name} is undefined here (a side never varies, or nothing is positive): it is null.")
    return Scores(values=values, primary=task.primary, examples=len(predictions), interval=interval)


def _numbers(
    gold: Sequence[float], predicted: Sequence[float], task: Task, seed: int
) -> tuple[dict[str, float | None], Interval]:
    values = {name: (pearson if name == "pearson" else spearman)(gold, predicted) for name in task.metrics if name in _REGRESSION}
    x, y = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    resampled = pearson_of if task.primary == "pearson" else spearman_of
    if values[task.primary] is None:
        return values, None
    return values, interval_of_rows(len(x), lambda weights: resampled(x, y, weights), seed=seed)


def _single(
    gold: Sequence[str], predicted: Sequence[str], task: Task, labels: Labels, seed: int
) -> tuple[dict[str, float | None], Interval]:
    figures: dict[str, Callable[[], float | None]] = {
        "accuracy": lambda: counted.accuracy(gold, predicted),
        "f1": lambda: counted.f1(gold, predicted, positive=labels.positive),
        "f1_macro": lambda: counted.f1_macro(gold, predicted),
        "f1_micro": lambda: counted.f1_micro(gold, predicted),
        "matthews": lambda: counted.matthews(gold, predicted),
    }
    values = {name: figures[name]() for name in task.metrics if name != "f1" or labels.positive is not None}
    if values.get(task.primary) is None:
        return values, None
    return values, _interval(gold, predicted, task.primary, labels, seed)


def _interval(gold: Sequence[str], predicted: Sequence[str], primary: str, labels: Labels, seed: int) -> Interval:
    """Resamples cells of the confusion matrix: a row is a one in its cell, and every figure a function of the cells."""
    counts, classes = counted.confusion(gold, predicted)
    size = len(classes)
    filled = np.flatnonzero(counts.ravel())
    return interval_of_cells(counts.ravel()[filled], _table_score(primary, filled, size, classes, labels), seed=seed)


def _table_score(primary: str, filled: np.ndarray, size: int, classes: list[object], labels: Labels) -> Resampled:
    def score(cells: np.ndarray) -> np.ndarray:
        flat = np.zeros((len(cells), size * size))
        flat[:, filled] = cells
        tables = flat.reshape(-1, size, size)
        hits, marked = np.diagonal(tables, axis1=1, axis2=2), tables.sum(1) + tables.sum(2)  # [R, K]
        with np.errstate(invalid="ignore", divide="ignore"):
            if primary == "matthews":
                return counted.matthews_of(tables)
            if primary == "f1":
                at = classes.index(labels.positive)
                return np.asarray(2 * hits[:, at] / marked[:, at])
            if primary == "f1_macro":
                return np.asarray(np.nanmean(2 * hits / marked, axis=1))
            return np.asarray(hits.sum(1) / tables.sum((1, 2)))

    return score


def _several(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], task: Task, labels: Labels, seed: int
) -> tuple[dict[str, float | None], Interval]:
    golds, guesses = [frozenset(names) for names in gold], [frozenset(names) for names in predicted]
    micro, macro = counted.f1_of_sets(golds, guesses, labels.names)
    figures = {"accuracy": counted.accuracy(golds, guesses), "f1_micro": micro, "f1_macro": macro}
    values = {name: figures[name] for name in task.metrics if name in figures}
    if values.get(task.primary) is None:
        return values, None
    g = np.array([[name in names for name in labels.names] for names in golds])  # [N, K]
    p = np.array([[name in names for name in labels.names] for names in guesses])
    if task.primary == "accuracy":
        right = np.stack([(g == p).all(1), np.ones(len(g))], axis=1)
        return values, interval_of_counts(right, lambda sums: sums[:, 0] / sums[:, 1], seed=seed)
    both = np.concatenate([2 * (g & p), g.astype(int) + p], axis=1)  # [N, 2K]

    def score(sums: np.ndarray) -> np.ndarray:
        hits, marked = sums[:, : labels.outputs], sums[:, labels.outputs :]
        if task.primary == "f1_micro":
            return np.asarray(np.divide(hits.sum(1), marked.sum(1), out=np.full(len(sums), np.nan), where=marked.sum(1) > 0))
        return np.asarray(np.divide(hits, marked, out=np.zeros_like(hits), where=marked > 0).mean(1))

    return values, interval_of_counts(both, score, seed=seed)
