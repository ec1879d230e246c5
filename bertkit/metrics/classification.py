"""Scores of classes: accuracy, F1 and Matthews, as scikit-learn counts them; plain arithmetic, since its import takes seconds.

Golds and predictions are names or numbers of classes, one a row; of several labels a row, sets of them. Every figure is
a fraction in 0–1 (Matthews in −1…1), None where it is undefined.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from bertkit.errors import DataError


def check_pairs(gold: Sequence[object], predicted: Sequence[object]) -> None:
    """Is there a prediction for every gold, and at least one?

    Raises:
        DataError: The set is empty or the counts differ (exit 3).
    """
    if len(gold) != len(predicted):
        raise DataError(f"There are {len(gold)} golds, but {len(predicted)} predictions.")
    if not len(gold):
        raise DataError("There is nothing to score: the set is empty.")


def confusion(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> tuple[np.ndarray, list[Hashable]]:
    """``[K, K]`` int64 counts, rows gold and columns predicted, and the K classes that occur, golds first.

    Raises:
        DataError: As :func:`check_pairs`.
    """
    check_pairs(gold, predicted)
    classes = {name: number for number, name in enumerate(dict.fromkeys([*gold, *predicted]))}
    size = len(classes)
    cells = np.fromiter((classes[g] * size + classes[p] for g, p in zip(gold, predicted, strict=True)), np.int64, len(gold))
    return np.bincount(cells, minlength=size * size).reshape(size, size), list(classes)


def accuracy(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The share of rows whose prediction is their gold."""
    check_pairs(gold, predicted)
    return sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)


def f1(gold: Sequence[Hashable], predicted: Sequence[Hashable], *, positive: Hashable) -> float | None:
    """Binary F1 of the positive class, 2tp / (2tp + fp + fn); None where that class is neither gold nor predicted."""
    check_pairs(gold, predicted)
    hits = sum(g == positive and p == positive for g, p in zip(gold, predicted, strict=True))
    marked = sum(g == positive for g in gold) + sum(p == positive for p in predicted)
    return 2 * hits / marked if marked else None


def f1_macro(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The mean of each class's F1 over the classes that occur as gold or as prediction."""
    counts, _ = confusion(gold, predicted)
    return float(np.mean(2 * counts.diagonal() / (counts.sum(0) + counts.sum(1))))


def f1_micro(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """F1 over all decisions; with one label a row that is the accuracy."""
    return accuracy(gold, predicted)


def matthews(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """The correlation coefficient of Matthews for any count of classes (R_K of Gorodkin 2004); 0.0 with an empty margin."""
    counts, _ = confusion(gold, predicted)
    return float(matthews_of(counts[None])[0])


def matthews_of(counts: np.ndarray) -> np.ndarray:
    """Matthews of many confusion matrices at once: ``[R, K, K]`` to ``[R]`` float64."""
    tables = counts.astype(np.float64)
    return matthews_of_margins(tables.sum(2), tables.sum(1), np.trace(tables, axis1=1, axis2=2))


def matthews_of_margins(golds: np.ndarray, predictions: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """The same, ``[R]``, of how often each class is gold and predicted, ``[R, K]`` each, and of the right ones, ``[R]``."""
    rows = golds.sum(1)
    covariance = hits * rows - (golds * predictions).sum(1)
    spread = (rows**2 - (golds**2).sum(1)) * (rows**2 - (predictions**2).sum(1))
    scores: np.ndarray = np.divide(covariance, np.sqrt(spread), out=np.zeros_like(covariance), where=spread > 0)
    return scores


def exact_match(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> float:
    """Of several labels a row: the share of rows whose whole set is right."""
    return accuracy(gold, predicted)


def f1_of_sets(
    gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]], names: Sequence[str]
) -> tuple[float | None, float | None]:
    """Micro and macro F1 of several labels a row; a label that never occurs counts 0 in macro, as scikit-learn counts it."""
    check_pairs(gold, predicted)
    pairs = list(zip(gold, predicted, strict=True))
    hits = np.array([sum(name in g and name in p for g, p in pairs) for name in names], dtype=np.float64)
    marked = np.array([sum((name in g) + (name in p) for g, p in pairs) for name in names], dtype=np.float64)
    if not marked.sum():
        return None, None
    each = np.divide(2 * hits, marked, out=np.zeros_like(hits), where=marked > 0)
    return float(2 * hits.sum() / marked.sum()), float(each.mean())
