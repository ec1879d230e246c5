"""Bootstrap intervals: how far a score, or the difference of two, could be off with as many other examples of the same kind.

Resampling N rows with replacement gives each row a multinomial weight, and rows of which a score needs to know the same share
one. So an accuracy over a million rows costs what one over ten does. Two systems are compared on the same draws: what makes
a row hard for both of them goes out of the difference (the paired bootstrap of Efron and Tibshirani 1993, Koehn 2004).

Shapes: N rows, U kinds of rows, C columns, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bertkit.randomness import stream

Interval = tuple[float, float] | None
RESAMPLES = 1000
_CELLS = 400_000  # weights in memory at once: 3.2 MB, which a cache holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """A score as a function of how often each row is drawn.

    Attributes:
        rows: ``[N, C]`` numbers: what the score needs to know of each row.
        score: ``[U, C]`` kinds of rows and weights ``[R, U]`` (how often each was drawn) to ``[R]`` scores, NaN where undefined.
    """

    rows: np.ndarray
    score: Callable[[np.ndarray, np.ndarray], np.ndarray]

    @classmethod
    def of_counts(cls, counts: np.ndarray, score: Callable[[np.ndarray], np.ndarray]) -> Resampled:
        """A score that is a function of the rows' summed counts: ``[N, C]``, and ``[R, C]`` sums to ``[R]`` scores."""
        return cls(rows=np.asarray(counts, dtype=np.float64), score=lambda kinds, weights: score(weights @ kinds))

    @classmethod
    def of_mean(cls, values: np.ndarray) -> Resampled:
        """The mean of ``[N]`` values."""
        counts = np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=1)
        return cls.of_counts(counts, lambda sums: sums[:, 0] / sums[:, 1])

    @property
    def value(self) -> float | None:
        """The score of the rows themselves; None where it is undefined."""
        score = float(self.score(self.rows, np.ones((1, len(self.rows))))[0]) if len(self.rows) else np.nan
        return score if np.isfinite(score) else None

    def minus(self, other: Resampled) -> Resampled:
        """The difference to another score of the same rows, in the same order."""
        ours, split = self, self.rows.shape[1]
        return Resampled(
            rows=np.concatenate([self.rows, other.rows], axis=1),
            score=lambda kinds, weights: (
                ours.score(kinds[:, :split], weights) - other.score(kinds[:, split:], weights)  # on the same draws
            ),
        )

    def interval(self, *, seed: int = 0) -> Interval:
        """The 95 % interval: percentiles 2.5 and 97.5 over the resamples in which the score is defined.

        None without rows, and where the score is undefined in half of the resamples or more.
        """
        total = len(self.rows)
        if not total:
            return None
        kinds, times = distinct(self.rows)
        random = stream(seed, "bootstrap")
        step = max(1, min(RESAMPLES, _CELLS // len(times)))
        scores = []
        for start in range(0, RESAMPLES, step):
            weights = random.multinomial(total, times / total, size=min(step, RESAMPLES - start))
            scores.append(self.score(kinds, weights.astype(np.float64)))
        defined = np.concatenate(scores)
        defined = defined[np.isfinite(defined)]
        if 2 * len(defined) <= RESAMPLES:
            return None
        low, high = np.percentile(defined, [2.5, 97.5])
        return float(low), float(high)


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of ``[N, C]`` numbers, ``[U, C]``, ordered by their columns, and how often each occurs, ``[U]``."""
    codes = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:  # column by column: many times as fast as numpy's own comparing of whole rows
        values, inverse = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * len(values) + inverse, return_inverse=True)
    _, firsts, times = np.unique(codes, return_index=True, return_counts=True)
    return rows[firsts], times
