"""Bootstrap intervals: how far a score could be off with as many other examples of the same kind.

Resampling N rows with replacement gives each row a multinomial weight; a score that is a function of summed counts needs
no more than the weights, and rows with equal counts share one. So an accuracy over a million rows costs what one over ten does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bertkit.randomness import stream

Interval = tuple[float, float] | None
RESAMPLES = 1000
_CELLS = 4_000_000  # weights in memory at once: 32 MB


def interval_of_counts(counts: np.ndarray, score: Callable[[np.ndarray], np.ndarray], *, seed: int = 0) -> Interval:
    """The 95 % interval of a score that is a function of the rows' summed counts.

    Args:
        counts: ``[N, C]`` numbers of each row (a mean's are the value and 1).
        score: ``[R, C]`` sums to ``[R]`` scores, NaN where undefined.
        seed: Of the resampling.
    """
    kinds, times = np.unique(np.asarray(counts, dtype=np.float64), axis=0, return_counts=True)
    return _interval(times, lambda weights: score(weights @ kinds), seed)


def interval_of_cells(times: np.ndarray, score: Callable[[np.ndarray], np.ndarray], *, seed: int = 0) -> Interval:
    """The same for U kinds of rows, met ``times`` ``[U]``: ``score`` maps how often each was drawn, ``[R, U]``, to ``[R]``."""
    return _interval(times, score, seed)


def interval_of_rows(rows: int, score: Callable[[np.ndarray], np.ndarray], *, seed: int = 0) -> Interval:
    """The 95 % interval of a score that needs each row: ``score`` maps weights ``[R, N]`` to ``[R]``, NaN where undefined."""
    return _interval(np.ones(rows, dtype=np.int64), score, seed)


def interval_of_mean(values: np.ndarray, *, seed: int = 0) -> Interval:
    """The 95 % interval of a mean of ``[N]`` values."""
    counts = np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=1)
    return interval_of_counts(counts, lambda sums: sums[:, 0] / sums[:, 1], seed=seed)


def _interval(times: np.ndarray, score: Callable[[np.ndarray], np.ndarray], seed: int) -> Interval:
    """Percentiles 2.5 and 97.5 over the resamples in which the score is defined; None where that is half of them or less."""
    total = int(times.sum())
    if not total:
        return None
    random = stream(seed, "bootstrap")
    step = max(1, min(RESAMPLES, _CELLS // len(times)))
    scores = []
    for start in range(0, RESAMPLES, step):
        weights = random.multinomial(total, times / total, size=min(step, RESAMPLES - start))
        scores.append(score(weights.astype(np.float64)))
    defined = np.concatenate(scores)
    defined = defined[np.isfinite(defined)]
    if 2 * len(defined) <= RESAMPLES:
        return None
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)
