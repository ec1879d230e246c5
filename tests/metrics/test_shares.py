"""Which figures are shares, by name."""

from __future__ import annotations

import pytest

from bertkit.metrics.shares import is_share


@pytest.mark.parametrize(
    "name", ["accuracy", "f1", "country_f1", "account_precision", "glossary_recall", "country_f1_mean", "valid_country_f1"]
)
def test_shares(name: str) -> None:
    assert is_share(name)


@pytest.mark.parametrize(
    "name", ["mlm_loss", "examples", "train_seconds", "best_f1_thresh", "best_null_threshold", "evaluate/my_f1"]
)
def test_others(name: str) -> None:
    assert not is_share(name)
