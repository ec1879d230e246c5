"""Figures of labels: by hand at the edges, scikit-learn's everywhere else."""

import math

import numpy as np
import pytest
from sklearn import metrics as reference

from bertkit.errors import DataError
from bertkit.metrics import classification as ours


def test_by_hand() -> None:
    gold, predicted = [1, 1, 1, 0, 0, 1], [1, 1, 0, 0, 1, 0]  # tp 2, fn 2, tn 1, fp 1
    assert ours.accuracy(gold, predicted) == 0.5
    assert ours.f1(gold, predicted, positive=1) == pytest.approx(4 / 7)
    assert ours.f1(gold, predicted, positive=0) == pytest.approx(2 / 5)
    assert ours.f1_macro(gold, predicted) == pytest.approx((4 / 7 + 2 / 5) / 2)
    assert ours.f1_micro(gold, predicted) == 0.5
    assert ours.matthews(gold, predicted) == pytest.approx((2 * 1 - 1 * 2) / math.sqrt(3 * 4 * 2 * 3), abs=1e-12)


def test_matthews_is_zero_with_an_empty_margin() -> None:
    assert ours.matthews([1, 0, 1, 1], [1, 1, 1, 1]) == 0.0
    assert ours.matthews([1, 1, 1], [1, 1, 1]) == 0.0
    assert ours.matthews([1, 1, 1], [0, 1, 1]) == 0.0


def test_an_empty_set_or_other_counts() -> None:
    for figure in (ours.accuracy, ours.f1_macro, ours.f1_micro, ours.matthews, ours.confusion):
        with pytest.raises(DataError, match="empty"):
            figure([], [])  # type: ignore[operator]
        with pytest.raises(DataError, match="2 golds, but 1 predictions"):
            figure([1, 2], [1])  # type: ignore[operator]


def test_f1_without_a_positive_is_undefined() -> None:
    assert ours.f1(["a", "a"], ["a", "a"], positive="b") is None
    assert ours.f1(["a", "b"], ["a", "a"], positive="b") == 0.0


@pytest.mark.parametrize("classes", [2, 3, 15])
@pytest.mark.parametrize("rows", [1, 2, 40, 1000])
def test_equal_to_scikit_learn(classes: int, rows: int) -> None:
    random = np.random.default_rng([classes, rows])
    gold = random.integers(classes, size=rows)
    predicted = np.where(random.random(rows) < 0.6, gold, random.integers(classes, size=rows))
    names, guesses = [f"c{n}" for n in gold], [f"c{n}" for n in predicted]
    assert ours.accuracy(names, guesses) == pytest.approx(reference.accuracy_score(gold, predicted), abs=1e-12)
    assert ours.f1_macro(names, guesses) == pytest.approx(reference.f1_score(gold, predicted, average="macro"), abs=1e-12)
    assert ours.f1_micro(names, guesses) == pytest.approx(reference.f1_score(gold, predicted, average="micro"), abs=1e-12)
    if len(set(gold) | set(predicted)) > 1:  # scikit-learn warns of a single class
        assert ours.matthews(names, guesses) == pytest.approx(reference.matthews_corrcoef(gold, predicted), abs=1e-12)
    if classes == 2 and 1 in set(gold) | set(predicted):
        assert ours.f1(names, guesses, positive="c1") == pytest.approx(
            reference.f1_score(gold, predicted, pos_label=1), abs=1e-12
        )


def test_sets_equal_to_scikit_learn() -> None:
    random = np.random.default_rng(5)
    names = ["a", "b", "c", "never"]
    gold = np.concatenate([random.random((60, 3)) < 0.4, np.zeros((60, 1), bool)], axis=1)
    predicted = np.concatenate([random.random((60, 3)) < 0.4, np.zeros((60, 1), bool)], axis=1)
    golds = [frozenset(n for n, there in zip(names, row, strict=True) if there) for row in gold]
    guesses = [frozenset(n for n, there in zip(names, row, strict=True) if there) for row in predicted]
    micro, macro = ours.f1_of_sets(golds, guesses, names)
    assert micro == pytest.approx(reference.f1_score(gold, predicted, average="micro", zero_division=0), abs=1e-12)
    assert macro == pytest.approx(reference.f1_score(gold, predicted, average="macro", zero_division=0), abs=1e-12)
    assert ours.exact_match(golds, guesses) == pytest.approx(reference.accuracy_score(gold, predicted), abs=1e-12)
