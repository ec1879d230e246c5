"""Accuracy over minimal pairs: how often the good sentence of two is the likelier one; a tie counts half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bertkit.metrics.bootstrap import Interval, interval_of_rows


def credit(good: float, bad: float) -> float:
    """1 where the good sentence has the higher score, 0 where the bad one has, 0.5 where they are equal."""
    return 1.0 if good > bad else 0.5 if good == bad else 0.0


def accuracies(credits: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The accuracy of each set, of its pairs' credits."""
    return {name: float(np.mean(found)) for name, found in credits.items()}


def average(found: Mapping[str, float]) -> float:
    """The mean over sets, as BLiMP reports it: each set counts the same, however many pairs it has."""
    return float(np.mean(list(found.values())))


def interval(credits: Mapping[str, Sequence[float]]) -> Interval:
    """The 95 % bootstrap interval of the average over sets, of other pairs in the same sets."""
    values = np.concatenate([np.asarray(found, dtype=np.float64) for found in credits.values()])
    edges = np.cumsum([0, *(len(found) for found in credits.values())])[:-1]

    def score(weights: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # a set of few pairs may have none in a draw
            shares = np.add.reduceat(weights * values, edges, axis=1) / np.add.reduceat(weights, edges, axis=1)  # [R, sets]
        means: np.ndarray = shares.mean(axis=1)
        return means

    return interval_of_rows(len(values), score)
