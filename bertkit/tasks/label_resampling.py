"""A task's primary figure as a function of how often each row is drawn: for its interval, and for comparing two systems.

Rows are coded as few numbers as the figure needs, so that equal ones fall together; the figures are those of ``metrics``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertkit.metrics import classification as counted
from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.correlation import pearson_of, spearman_of
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction


def resampled_labels(predictions: Sequence[Prediction], primary: str, labels: Labels) -> Resampled:
    """The figure ``primary`` of predictions of labels, of sets of them, or of numbers; each has its gold."""
    gold, predicted = [p.gold for p in predictions], [p.value for p in predictions]
    if labels.problem == "regression":
        return _numbers(gold, predicted, pearson_of if primary == "pearson" else spearman_of)
    if labels.problem == "multi_label_classification":
        return _several([frozenset(names) for names in gold], [frozenset(names) for names in predicted], primary, labels)
    return _single(gold, predicted, primary, labels)


def _numbers(gold: Sequence[float], predicted: Sequence[float], score: Callable[..., np.ndarray]) -> Resampled:
    values = np.stack([np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)], axis=1)
    return Resampled(rows=values, score=lambda kinds, weights: score(kinds[:, 0], kinds[:, 1], weights))


def _single(gold: Sequence[str], predicted: Sequence[str], primary: str, labels: Labels) -> Resampled:
    """Rows are cells of the confusion matrix: the numbers of their gold and predicted classes, the head's own first."""
    classes = {name: number for number, name in enumerate(dict.fromkeys([*labels.names, *gold, *predicted]))}
    cells = np.array([[classes[g], classes[p]] for g, p in zip(gold, predicted, strict=True)]).reshape(-1, 2)
    if primary in ("accuracy", "f1_micro"):
        return Resampled.of_mean(cells[:, 0] == cells[:, 1])
    if primary == "f1":
        marked = cells == classes.get(str(labels.positive), -1)  # [N, 2]
        counts = np.stack([2 * marked.all(1), marked.sum(1)], axis=1)
        return Resampled.of_counts(counts, lambda sums: _shares(sums[:, 0], sums[:, 1]))
    known = np.eye(len(classes))

    def score(kinds: np.ndarray, weights: np.ndarray) -> np.ndarray:
        ours, theirs = known[kinds[:, 0].astype(np.int64)], known[kinds[:, 1].astype(np.int64)]  # [U, K]
        gold, found, hits = weights @ ours, weights @ theirs, weights @ (ours * theirs)  # [R, K]
        if primary == "matthews":
            return counted.matthews_of_margins(gold, found, hits.sum(1))
        marked = gold + found
        each = np.divide(2 * hits, marked, out=np.zeros_like(hits), where=marked > 0)
        return _shares(each.sum(1), (marked > 0).sum(1))  # a class that was not drawn at all is none

    return Resampled(rows=cells.astype(np.float64), score=score)


def _several(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]], primary: str, labels: Labels) -> Resampled:
    if primary == "accuracy":
        return Resampled.of_mean(np.array([g == p for g, p in zip(gold, predicted, strict=True)]))
    sides = [np.array([[name in names for name in labels.names] for names in side]) for side in (gold, predicted)]  # [N, K]
    both = np.concatenate([2 * (sides[0] & sides[1]), sides[0].astype(int) + sides[1]], axis=1)  # [N, 2K]

    def score(sums: np.ndarray) -> np.ndarray:
        hits, marked = sums[:, : labels.outputs], sums[:, labels.outputs :]
        if primary == "f1_micro":
            return _shares(hits.sum(1), marked.sum(1))
        return np.asarray(np.divide(hits, marked, out=np.zeros_like(hits), where=marked > 0).mean(1))

    return Resampled.of_counts(both, score)


def _shares(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """``part / whole``, NaN where there is nothing to divide by."""
    shares: np.ndarray = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return shares
