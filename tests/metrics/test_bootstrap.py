"""Bootstrap intervals: against plain resampling written apart, and what a binomial says; of one score and of a difference."""

import math
import time

import numpy as np
import pytest

from bertkit.metrics.bootstrap import Resampled, distinct


def plain(values: np.ndarray, resamples: int, seed: int) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    means = [values[random.integers(len(values), size=len(values))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def test_a_mean_as_by_plain_resampling() -> None:
    values = np.random.default_rng(0).random(300) ** 3
    interval = Resampled.of_mean(values).interval()
    assert interval is not None
    # An end is the percentile of 1 000 draws: its error is about sqrt(p (1 - p) / 1000) / density, with the normal's
    # density at 1.96 deviations 0.0584 / deviation: 0.0845 deviations. Both sides have it: 3σ is 0.36 deviations.
    deviation = values.std() / math.sqrt(300)
    for got, expected in zip(interval, plain(values, 1000, 1), strict=True):
        assert abs(got - expected) < 0.36 * deviation


def test_an_accuracy_has_the_binomial_width() -> None:
    right = np.arange(1000) < 800
    interval = Resampled.of_mean(right).interval()
    assert interval is not None
    deviation = math.sqrt(0.8 * 0.2 / 1000)
    assert interval[0] == pytest.approx(0.8 - 1.96 * deviation, abs=0.26 * deviation + 0.001)
    assert interval[1] == pytest.approx(0.8 + 1.96 * deviation, abs=0.26 * deviation + 0.001)


def test_seeded() -> None:
    score = Resampled.of_mean(np.random.default_rng(0).random(50))
    assert score.interval(seed=4) == score.interval(seed=4)
    assert score.interval(seed=4) != score.interval(seed=5)


def test_chunks_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    score = Resampled.of_mean(np.random.default_rng(0).random(50))
    whole = score.interval()
    monkeypatch.setattr("bertkit.metrics.bootstrap._CELLS", 50 * 70)
    assert score.interval() == whole


def test_edges() -> None:
    assert Resampled.of_mean(np.array([])).interval() is None
    assert Resampled.of_mean(np.array([0.5])).interval() == (0.5, 0.5)
    undefined = Resampled(rows=np.zeros((4, 1)), score=lambda kinds, weights: np.full(len(weights), np.nan))
    assert undefined.interval() is None


def test_a_million_rows_of_few_kinds_take_no_time() -> None:
    started = time.process_time()
    interval = Resampled.of_mean(np.arange(1_000_000) < 900_000).interval()
    assert interval is not None
    assert interval[0] < 0.9 < interval[1]
    assert time.process_time() - started < 2


def test_distinct_rows_as_numpy_finds_them() -> None:
    random = np.random.default_rng(3)
    rows = random.integers(0, 3, (500, 4)).astype(np.float64) / 7
    expected, times = np.unique(rows, axis=0, return_counts=True)
    found, counts = distinct(rows)
    assert np.array_equal(found, expected)
    assert np.array_equal(counts, times)


# Two systems on the same rows


def test_a_difference_as_by_plain_resampling_of_pairs() -> None:
    random = np.random.default_rng(7)
    hard = random.random(400)
    ours, theirs = random.random(400) < hard, random.random(400) < 0.9 * hard
    interval = Resampled.of_mean(ours).minus(Resampled.of_mean(theirs)).interval()
    assert interval is not None
    differences = ours.astype(float) - theirs
    deviation = differences.std() / math.sqrt(400)
    for got, expected in zip(interval, plain(differences, 1000, 1), strict=True):
        assert abs(got - expected) < 0.36 * deviation + 1 / 400  # as above, and a step of the score


def test_the_difference_of_equals_is_nothing() -> None:
    same = Resampled.of_mean(np.random.default_rng(0).random(30))
    assert same.minus(same).interval() == (0.0, 0.0)


def test_the_interval_of_a_difference_covers_the_true_one() -> None:
    """Two systems that are right in 70 % and 64 % of all rows, 200 of which are seen: how often does the interval hold 0.06?"""
    random, trials, true = np.random.default_rng(11), 300, 0.06
    held = 0
    for trial in range(trials):
        draw = random.random((200, 2))
        ours, theirs = draw[:, 0] < 0.7, np.where(draw[:, 1] < 0.5, draw[:, 0] < 0.64, random.random(200) < 0.64)
        interval = Resampled.of_mean(ours).minus(Resampled.of_mean(theirs)).interval(seed=trial)
        assert interval is not None
        held += interval[0] <= true <= interval[1]
    # Of 300 intervals that hold it with probability 0.95, 285 do, with a deviation of sqrt(300 · 0.95 · 0.05) = 3.77.
    # That is the normal's promise; percentiles of n rows fall short of it by a share of the order of 1/n (0.005: 1.5 more).
    assert trials * 0.95 - 3 * 3.77 - 1.5 <= held
    assert held <= trials * 0.95 + 3 * 3.77
