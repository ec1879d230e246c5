"""Correlations of numbers: Pearson's r and Spearman's ρ, None where a side never varies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertkit.metrics.classification import check_pairs


def pearson(gold: Sequence[float], predicted: Sequence[float]) -> float | None:
    """Pearson's r; None where one side is constant (or there is one row)."""
    check_pairs(gold, predicted)
    x, y = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if x.min() == x.max() or y.min() == y.max():  # a mean is rounded, so centred values alone would not show it
        return None
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # squares of very small or large numbers would leave the floats
    value = float(_correlation(x[None], y[None], np.ones((1, len(x))))[0])
    return value if np.isfinite(value) else None


def spearman(gold: Sequence[float], predicted: Sequence[float]) -> float | None:
    """Spearman's ρ: Pearson's r of the ranks, ties at their mean rank."""
    check_pairs(gold, predicted)
    return pearson(ranks(gold).tolist(), ranks(predicted).tolist())


def ranks(values: Sequence[float]) -> np.ndarray:
    """``[N]`` float64 ranks from 1; equal values share their mean rank."""
    _, group, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[group]


def pearson_of(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Pearson of many resamples: values ``[N]``, weights ``[R, N]``, to ``[R]``; NaN where undefined."""
    return _correlation(x[None], y[None], weights)


def spearman_of(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman of many resamples, each ranked anew: values ``[N]``, weights ``[R, N]``, to ``[R]``; NaN where undefined."""
    return _correlation(_weighted_ranks(x, weights), _weighted_ranks(y, weights), weights)


def _weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``[R, N]`` ranks of values that occur ``weights`` times."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    mass = np.add.reduceat(weights[:, order], starts, axis=1)  # [R, groups]
    within: np.ndarray = mass.cumsum(1) - (mass - 1) / 2
    spread: np.ndarray = within[:, group]
    return spread


def _correlation(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True)
    x = x - (weights * x).sum(1, keepdims=True) / total
    y = y - (weights * y).sum(1, keepdims=True) / total
    spread_x, spread_y = (weights * x * x).sum(1), (weights * y * y).sum(1)
    # The product of the roots, not the root of the product: squares of small numbers would vanish.
    spread = np.sqrt(spread_x) * np.sqrt(spread_y)
    covariance = (weights * x * y).sum(1)
    values: np.ndarray = np.divide(covariance, spread, out=np.full(len(weights), np.nan), where=spread > 0)
    return values.clip(-1.0, 1.0)
