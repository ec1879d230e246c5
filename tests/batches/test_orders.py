"""Order prediction: neighbours of one document, swapped by a fair coin, alike in length in both orders."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_pairs import area_under_the_curve, drawn, given_away, uncovered

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.errors import DataError


@pytest.mark.parametrize("length", [8, 16, 128, 512])
def test_both_runs_stand_side_by_side_in_the_order_that_the_label_says(prose, vocabulary, length):
    store = prose(120)
    text, a, n, b, m, label = drawn(store, vocabulary, length, objective="mlm+sop")
    assert (n >= 1).all()
    assert (m >= 1).all()
    assert (n + m <= length - 3).all()
    assert np.array_equal(b[label == 0], (a + n)[label == 0])
    assert np.array_equal(a[label == 1], (b + m)[label == 1])
    for start, size in ((a, n), (b, m)):
        assert np.array_equal(text.document(start), text.document(start + size - 1))
    assert np.array_equal(text.document(a), text.document(b))
    assert not len(uncovered(store, np.append(a, b), np.append(n, m)))


def test_half_of_ten_thousand_pairs_are_in_order(prose, lines, vocabulary):
    for store in (prose(400), lines(1500, 6)):
        *_, label = drawn(store, vocabulary, 64, epochs=8, objective="mlm+sop")
        assert len(label) > 10_000
        assert abs((label[:10_000] == 0).mean() - 0.5) < 3 * 0.5 / np.sqrt(10_000)


def test_sentences_stay_whole_where_two_fit(make_store, vocabulary):
    # Every two neighbouring sentences fit the 61 tokens; a short target of 2 would take one alone.
    rng = np.random.default_rng(0)
    store = make_store([[rng.integers(5, 300, size).tolist() for size in rng.integers(3, 30, 9)] for _ in range(200)])
    text, a, n, b, m, _ = drawn(store, vocabulary, 64, epochs=2, objective="mlm+sop", short_share=0.5)
    for edge in (a, a + n, b, b + m):
        assert (text.kind(edge) == 0).all()
    seen = np.bincount(np.append(a, b), minlength=text.tokens)
    assert seen.max() > 2, "a sentence left over is taken with its neighbour"


@pytest.mark.parametrize("length", [64, 128, 512])
def test_lengths_are_alike_in_both_orders(prose, vocabulary, length):
    store = prose(1500, scale=2.5)
    _, _, n, _, m, label = drawn(store, vocabulary, length, epochs=2, objective="mlm+sop")
    area, sigma = area_under_the_curve((n - m).astype(float), label)
    assert abs(area - 0.5) < 4 * sigma, f"{area:.4f}, {(area - 0.5) / sigma:.1f} sigma of {len(label)} pairs"


@pytest.mark.slow
def test_only_words_give_the_order_of_whole_sentences_away(prose, vocabulary):
    text, a, n, b, m, label = drawn(prose(1500, sentences=30.0, scale=2.5), vocabulary, epochs=2, objective="mlm+sop")
    whole = np.all([text.kind(edge) == 0 for edge in (a, a + n, b, b + m)], axis=0)
    assert whole.mean() > 0.99
    area, sigma = given_away(text, *(column[whole] for column in (a, n, b, m, label)))
    assert abs(area - 0.5) < 4 * sigma, f"{area:.4f}, {(area - 0.5) / sigma:.1f} sigma of {whole.sum()} pairs"


def test_one_document_is_enough_but_it_needs_two_words(make_store, vocabulary):
    asked = ExampleSettings(objective="mlm+sop")
    source = PretrainingSource(make_store([[[5, 6, 7]]]), vocabulary, asked, MaskingSettings(), seed=1, batch_size=4)
    assert source.steps(0) == 1
    with pytest.raises(DataError, match="Order prediction needs a document of at least two words, and this text has 0"):
        PretrainingSource(make_store([[[5, 300]], [[6]]]), vocabulary, asked, MaskingSettings(), seed=1, batch_size=4)
