"""Accuracy over minimal pairs: how often the good sentence of two is the likelier one; a tie counts half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bertkit.metrics.bootstrap import Resampled


def credit(good: float, bad: float) -> float:
    """1 where the good sentence has the higher score, 0 where the bad one has, 0.5 where they are equal."""
    return 1.0 if good > bad else 0.5 if good == bad else 0.0


def accuracies(credits: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The accuracy of each set, of its pairs' credits."""
    return {name: float(np.mean(found)) for name, found in credits.items()}


def average(found: Mapping[str, float]) -> float:
    """The mean over sets, as BLiMP reports it: each set counts the same, however many pairs it has."""
    return float(np.mean(list(found.values())))


def resampled(credits: Mapping[str, Sequence[float]]) -> Resampled:
    """The average over sets as a function of how often each pair is drawn: of other pairs in the same sets."""
    rows = np.array([(number, value) for number, found in enumerate(credits.values()) for value in found]).reshape(-1, 2)
    sets = np.eye(len(credits))

    def score(kinds: np.ndarray, weights: np.ndarray) -> np.ndarray:
        own = sets[kinds[:, 0].astype(np.int64)]  # [U, sets]
        with np.errstate(invalid="ignore"):  # a set of few pairs may have none in a draw
            means: np.ndarray = ((weights @ (own * kinds[:, 1:])) / (weights @ own)).mean(axis=1)
        return means

    return Resampled(rows=rows, score=score)
