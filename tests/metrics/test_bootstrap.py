"""Bootstrap intervals: against plain resampling written apart, and what a binomial says."""

import math
import time

import numpy as np
import pytest

from bertkit.metrics.bootstrap import interval_of_cells, interval_of_counts, interval_of_mean, interval_of_rows


def plain(values: np.ndarray, resamples: int, seed: int) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    means = [values[random.integers(len(values), size=len(values))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def test_a_mean_as_by_plain_resampling() -> None:
    values = np.random.default_rng(0).random(300) ** 3
    interval = interval_of_mean(values)
    assert interval is not None
    # An end is the percentile of 1 000 draws: its error is about sqrt(p (1 - p) / 1000) / density, with the normal's
    # density at 1.96 deviations 0.0584 / deviation: 0.0845 deviations. Both sides have it: 3σ is 0.36 deviations.
    deviation = values.std() / math.sqrt(300)
    for got, expected in zip(interval, plain(values, 1000, 1), strict=True):
        assert abs(got - expected) < 0.36 * deviation


def test_an_accuracy_has_the_binomial_width() -> None:
    right = np.arange(1000) < 800
    interval = interval_of_cells(np.array([800, 200]), lambda cells: cells[:, 0] / cells.sum(1))
    assert interval is not None
    deviation = math.sqrt(0.8 * 0.2 / 1000)
    assert interval[0] == pytest.approx(0.8 - 1.96 * deviation, abs=0.26 * deviation + 0.001)
    assert interval[1] == pytest.approx(0.8 + 1.96 * deviation, abs=0.26 * deviation + 0.001)
    # The same rows, each on its own, fold into the same two kinds.
    assert interval_of_counts(np.stack([right, ~right], axis=1), lambda sums: sums[:, 0] / sums.sum(1)) is not None


def test_seeded() -> None:
    values = np.random.default_rng(0).random(50)
    assert interval_of_mean(values, seed=4) == interval_of_mean(values, seed=4)
    assert interval_of_mean(values, seed=4) != interval_of_mean(values, seed=5)


def test_chunks_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random(50)
    whole = interval_of_mean(values)
    monkeypatch.setattr("bertkit.metrics.bootstrap._CELLS", 50 * 70)
    assert interval_of_mean(values) == whole


def test_edges() -> None:
    assert interval_of_mean(np.array([])) is None
    assert interval_of_mean(np.array([0.5])) == (0.5, 0.5)
    assert interval_of_rows(4, lambda weights: np.full(len(weights), np.nan)) is None


def test_a_million_rows_of_few_kinds_take_no_time() -> None:
    started = time.process_time()
    interval = interval_of_cells(np.array([900_000, 100_000]), lambda cells: cells[:, 0] / cells.sum(1))
    assert interval is not None
    assert interval[0] < 0.9 < interval[1]
    assert time.process_time() - started < 2
