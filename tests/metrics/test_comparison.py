"""Is one system worse than another? By hand, against plain resampling, and how often it is said wrongly."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.comparison import LEAST, compare
from bertkit.metrics.correlation import pearson_of, spearman_of


def rights(right: int, wrong: int) -> Resampled:
    return Resampled.of_mean(np.arange(right + wrong) < right)


def test_equal_answers_pass() -> None:
    found = compare(rights(70, 30), rights(70, 30))
    assert (found.outcome, found.interval, found.differing, found.difference) == ("pass", (0.0, 0.0), 0, 0.0)


def test_a_clear_loss_fails_and_a_clear_gain_passes() -> None:
    # 20 of 100 rows are lost and none is won: the interval of the difference is -0.2 ± 1.96 · sqrt(0.2 · 0.8 / 100) = ±0.08.
    found = compare(rights(60, 40), rights(80, 20))
    assert (found.outcome, found.differing, found.examples) == ("fail", 20, 100)
    assert found.difference == pytest.approx(-0.2)
    assert found.interval == pytest.approx((-0.28, -0.12), abs=0.02)
    assert compare(rights(80, 20), rights(60, 40)).outcome == "pass"


def test_noise_is_inconclusive() -> None:
    random = np.random.default_rng(5)
    ours, theirs = random.random(200) < 0.7, random.random(200) < 0.7
    found = compare(Resampled.of_mean(ours), Resampled.of_mean(theirs))
    assert found.outcome == "inconclusive"
    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]


@pytest.mark.parametrize(
    ("margin", "outcome"), [(0.0, "fail"), (0.1, "fail"), (0.2, "inconclusive"), (0.3, "pass"), (1.0, "pass")]
)
def test_a_margin_moves_the_border(margin: float, outcome: str) -> None:
    assert compare(rights(60, 40), rights(80, 20), margin=margin).outcome == outcome


@pytest.mark.parametrize(("lost", "outcome"), [(0, "pass"), (1, "inconclusive"), (5, "inconclusive"), (6, "fail")])
def test_fewer_than_six_examples_prove_no_loss(lost: int, outcome: str) -> None:
    assert next(n for n in range(1, 20) if 2 * 0.5**n < 0.05) == LEAST  # the sign test of n that fall alike
    for rows in (lost or 1, 50):
        assert compare(rights(rows - lost, lost), rights(rows, 0)).outcome == outcome


def test_what_is_undefined_is_worse() -> None:
    values = np.arange(20.0)

    def correlation(said: np.ndarray) -> Resampled:
        rows = np.stack([values, said], axis=1)
        return Resampled(rows=rows, score=lambda kinds, weights: pearson_of(kinds[:, 0], kinds[:, 1], weights))

    constant, right = correlation(np.zeros(20)), correlation(values)
    assert [compare(a, b).outcome for a, b in ((constant, right), (right, constant), (constant, constant))] == [
        "fail", "pass", "inconclusive"
    ]  # fmt: skip
    assert compare(right, right).outcome == "pass"


def test_seldom_is_an_equal_system_said_to_be_worse() -> None:
    """Two systems with the same chance of being right: 'fail' is wrong, and so is 'pass' of a worse one."""
    random, trials = np.random.default_rng(23), 200
    said = {"pass": 0, "fail": 0, "inconclusive": 0}
    for trial in range(trials):
        both = random.random(300)
        ours = np.where(random.random(300) < 0.7, both, random.random(300)) < 0.8
        said[compare(Resampled.of_mean(ours), Resampled.of_mean(both < 0.8), seed=trial).outcome] += 1
    # Each tail of a 95 % interval is 2.5 %: of 200, 5, with a deviation of sqrt(200 · 0.025 · 0.975) = 2.2. An interval may also
    # end at 0 itself, a step of the score (1/300, of a deviation of 0.018: 0.19 of them, where the normal's density is 0.058):
    # another 0.011 of the trials, 2.2, which pass.
    assert said["fail"] <= 5 + 3 * 2.2
    assert said["pass"] <= 5 + 2.2 + 3 * math.sqrt(7.2)
    assert said["inconclusive"] >= 180


@pytest.mark.slow
def test_ten_thousand_examples_take_seconds() -> None:
    random = np.random.default_rng(2)
    gold = random.random(10_000)
    systems = [
        Resampled(
            rows=np.stack([gold, gold + random.random(10_000)], axis=1),
            score=lambda kinds, weights: spearman_of(kinds[:, 0], kinds[:, 1], weights),
        )
        for _ in range(2)
    ]
    started = time.process_time()
    assert compare(*systems).outcome in ("pass", "inconclusive", "fail")
    assert time.process_time() - started < 20  # 2.4 s on a free core; each other figure takes less
