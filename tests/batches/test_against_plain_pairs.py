"""Pairs drawn in blocks beside pairs drawn one after another: the same distribution; and what google's code has otherwise."""

from __future__ import annotations

import random

import numpy as np
import plain_pairs
import pytest
from drawn_pairs import drawn


@pytest.fixture(scope="module")
def words(make_store):
    """600 documents of sentences of 2 to 40 words of one piece each: their lengths, and their store."""
    rng = np.random.default_rng(8)
    documents = [rng.integers(2, 41, count).tolist() for count in rng.geometric(1 / 12, 600)]
    return documents, make_store([[rng.integers(5, 300, size).tolist() for size in document] for document in documents])


def distance(ours, others):
    """Kolmogorov's and Smirnov's distance of two samples, and how far it may be by chance once in 1 000 times."""
    from scipy.stats import ks_2samp

    return ks_2samp(ours, others).statistic, 1.95 * np.sqrt(1 / len(ours) + 1 / len(others))


@pytest.mark.parametrize("length", [48, 128])
@pytest.mark.parametrize("blocks", ["one", "many"])
def test_lengths_and_labels_are_those_of_the_plain_way(words, vocabulary, monkeypatch, length, blocks):
    if blocks == "many":
        monkeypatch.setattr("bertkit.batches.stripes.STRIPE", 8_000)
        monkeypatch.setattr("bertkit.batches.stripes.BLOCK", 4)
    documents, store = words
    _, _, n, _, m, label = drawn(store, vocabulary, length, epochs=2)
    rng = random.Random(1)
    by_document = [[plain_pairs.ours(document, length, 0.1, rng) for document in documents] for _ in range(2)]
    plain = [pair for epoch in by_document for pairs in epoch for pair in pairs]
    a, b, is_next = (np.array(column) for column in list(zip(*plain, strict=True))[:3])
    for name, (drawn_, plain_) in {"A": (n, a), "B": (m, b), "both": (n + m, a + b), "ratio": (n / (n + m), a / (a + b))}.items():
        found, bound = distance(drawn_, plain_)
        assert found < bound, name
    spread = np.sqrt(1 / len(label) + 1 / len(is_next))
    assert abs((label == 0).mean() - is_next.mean()) < 3 * 0.5 * spread
    full = length - 3 - 40  # a chunk that has not met its document's end is at most a sentence short of its target
    assert abs((n + m > full).mean() - (a + b > full).mean()) < 3 * 0.5 * spread
    once, again = ([len(pairs) for pairs in epoch] for epoch in by_document)
    variance = np.sum(np.subtract(once, again) ** 2)  # of the count of one draw, twice; both sides have drawn twice
    assert abs(len(label) - len(plain)) < 3 * np.sqrt(2 * variance)


def test_what_google_does_otherwise(words, vocabulary):
    """Its share of next pairs is below a half, it cuts text away, and its lengths differ between the labels."""
    documents, store = words
    rng = random.Random(2)
    google = [pair for number in range(len(documents)) for pair in plain_pairs.google(documents, number, 128, 0.1, rng)]
    _, _, n, _, m, label = drawn(store, vocabulary, 128)
    share, sigma = np.mean([pair.is_next for pair in google]), 0.5 / np.sqrt(len(google))
    assert share < 0.5 - 4 * sigma
    assert abs((label == 0).mean() - 0.5) < 3 * 0.5 / np.sqrt(len(label))
    lengths = {flag: np.array([pair.a + pair.b for pair in google if pair.is_next == flag]) for flag in (True, False)}
    found, bound = distance(lengths[True], lengths[False])
    assert found > bound
    found, bound = distance((n + m)[label == 0], (n + m)[label == 1])
    assert found < bound
    missed = 0
    for number, document in enumerate(documents):
        seen = np.zeros(sum(document), bool)
        for pair in plain_pairs.google(documents, number, 128, 0.1, rng):
            for begin, end in pair.seen:
                seen[begin:end] = True
        missed += int((~seen).sum())
    assert missed > 0.005 * len(store.ids)
