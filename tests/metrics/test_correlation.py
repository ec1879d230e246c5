"""Correlations: scipy's, and None where they do not exist."""

import numpy as np
import pytest
from scipy import stats

from bertkit.errors import DataError
from bertkit.metrics.correlation import pearson, pearson_of, ranks, spearman, spearman_of


def test_undefined_where_a_side_never_varies() -> None:
    assert pearson([1, 2, 3], [2, 2, 2]) is None
    assert spearman([1, 2, 3], [2, 2, 2]) is None
    assert pearson([0.1, 0.1, 0.1], [1, 2, 3]) is None  # 0.1 × 3 / 3 is not 0.1
    assert pearson([1], [2]) is None
    with pytest.raises(DataError, match="empty"):
        pearson([], [])


def test_ranks_of_ties() -> None:
    assert ranks([10, 20, 20, 5]).tolist() == [2.0, 3.5, 3.5, 1.0]


@pytest.mark.parametrize("rows", [2, 3, 50, 1500])
def test_equal_to_scipy(rows: int) -> None:
    random = np.random.default_rng(rows)
    gold = np.arange(rows) + random.normal(size=rows).round(1)
    predicted = (gold + 2 * random.normal(size=rows)).round(1) + np.arange(rows) * 1e-6
    assert pearson(gold.tolist(), predicted.tolist()) == pytest.approx(stats.pearsonr(gold, predicted).statistic, abs=1e-12)
    assert spearman(gold.tolist(), predicted.tolist()) == pytest.approx(stats.spearmanr(gold, predicted).statistic, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-160, 1e150])
def test_scales_at_the_ends_of_floats(scale: float) -> None:
    assert pearson([1 * scale, 2 * scale, 4 * scale], [1.0, 3.0, 2.0]) == pytest.approx(pearson([1, 2, 4], [1, 3, 2]), abs=1e-9)


def test_a_weight_is_as_many_rows() -> None:
    random = np.random.default_rng(1)
    x, y = random.integers(5, size=30).astype(float), random.integers(5, size=30).astype(float)
    weights = random.multinomial(30, np.full(30, 1 / 30), size=20)
    for ours, theirs in ((pearson_of, stats.pearsonr), (spearman_of, stats.spearmanr)):
        got = ours(x, y, weights.astype(float))
        expected = [theirs(np.repeat(x, times), np.repeat(y, times)).statistic for times in weights]
        np.testing.assert_allclose(got, expected, atol=1e-12)
