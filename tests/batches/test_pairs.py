"""Sentence pairs: coverage, labels, twins, and that lengths and borders tell nothing."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_pairs import drawn, given_away, uncovered

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import Text
from bertkit.errors import DataError
from bertkit.notices import collecting


@pytest.mark.parametrize("length", [16, 64, 128, 512])
def test_every_token_is_in_an_a_or_a_true_b(prose, vocabulary, length):
    store = prose(120)
    _, a, n, b, m, label = drawn(store, vocabulary, length)
    true = label == 0
    assert not len(uncovered(store, np.concatenate([a, b[true]]), np.concatenate([n, m[true]])))


@pytest.mark.parametrize("length", [8, 16, 128])
def test_pairs_are_what_their_labels_say(prose, vocabulary, length):
    text, a, n, b, m, label = drawn(prose(120), vocabulary, length)
    assert (n >= 1).all()
    assert (m >= 1).all()
    assert (n + m <= length - 3).all()
    true = label == 0
    assert (b[true] == (a + n)[true]).all()
    assert (text.document(a) == text.document(a + n - 1)).all(), "an A crosses documents"
    assert (text.document(b) == text.document(b + m - 1)).all(), "a B crosses documents"
    assert (text.document(a) == text.document(b))[true].all()
    assert (text.document(a) != text.document(b))[~true].all()


@pytest.mark.parametrize("words", [2, 6, 10, 20])
def test_half_of_the_pairs_of_one_sentence_documents_are_next(lines, vocabulary, words):
    store = lines(1500, words)
    _, a, n, b, m, label = drawn(store, vocabulary)
    sigma = 0.5 / np.sqrt(len(label))
    assert abs((label == 0).mean() - 0.5) < 3 * sigma
    true = label == 0
    assert not len(uncovered(store, np.concatenate([a, b[true]]), np.concatenate([n, m[true]])))


def test_half_of_ten_thousand_pairs_are_next(prose, vocabulary):
    *_, label = drawn(prose(400), vocabulary, 64, epochs=4)
    assert len(label) > 10_000
    assert abs((label[:10_000] == 0).mean() - 0.5) < 3 * 0.5 / np.sqrt(10_000)


def test_a_twin_has_the_length_and_the_borders_of_the_true_rest(prose, vocabulary):
    # A store with enough text has a twin for every pair, so kinds of edges come out equally often under both labels.
    text, _, _, b, m, label = drawn(prose(2000), vocabulary)
    for feature in (text.kind(b), text.kind(b + m), (text.sentence(b) == text.sentence(b + m - 1)).astype(int)):
        for value in np.unique(feature):
            rows = label[feature == value]
            assert abs(rows.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(rows)), (value, len(rows))


def test_the_twin_finder_gives_exact_twins_and_says_where_there_are_none(make_store, vocabulary):
    from bertkit.batches.twins import find_twins

    # Documents: [3, 4], [3], [5] tokens in sentences. The twin of a whole sentence of 3 in document 0 is document 1.
    store = make_store([[[5, 6, 7], [8, 9, 10, 11]], [[5, 6, 7]], [[20, 21, 22, 23, 24]]])
    text = Text.of(store, vocabulary.continues, 13)
    everything = np.ones(3, dtype=bool)

    def twin(start, end, room=13, seed=0):
        found = find_twins(text, everything, *(np.array([x]) for x in (start, end, room)), np.random.default_rng(seed))
        return int(found[0][0]), int(found[1][0])

    assert {twin(0, 3, seed=s) for s in range(20)} == {(7, 10)}
    # From its second word to its end: both others have such an end of two words.
    assert {twin(1, 3, seed=s) for s in range(40)} == {(8, 10), (13, 15)}
    # Two whole sentences of 7 tokens: no other document has 7; the nearest whole run is the sentence of 5.
    assert {twin(0, 7, seed=s) for s in range(20)} == {(10, 15)}
    # The same with room for 4 tokens only: the sentence of 3.
    assert {twin(0, 7, room=4, seed=s) for s in range(20)} == {(7, 10)}


@pytest.mark.slow
def test_the_classifier_of_this_test_can_see(prose, vocabulary):
    text, a, n, b, m, label = drawn(prose(300), vocabulary, epochs=2)
    area, sigma = given_away(text, a, n, b, np.maximum(1, m - 3 * label), label)  # a B of tails three tokens shorter
    assert area > 0.5 + 10 * sigma


@pytest.mark.slow
@pytest.mark.parametrize(("length", "documents"), [(128, 1500), (512, 1500), (32, 300)])
def test_only_the_words_give_the_label_away(prose, vocabulary, length, documents):
    text, a, n, b, m, label = drawn(prose(documents, sentences=30.0), vocabulary, length, epochs=3)
    area, sigma = given_away(text, a, n, b, m, label)
    assert abs(area - 0.5) < 4 * sigma, f"{area:.4f}, {(area - 0.5) / sigma:.1f} sigma of {len(label)} pairs"


@pytest.mark.slow
def test_only_the_words_give_the_label_away_in_many_blocks(prose, vocabulary, monkeypatch):
    monkeypatch.setattr("bertkit.batches.stripes.STRIPE", 1 << 15)
    monkeypatch.setattr("bertkit.batches.stripes.BLOCK", 8)
    store = prose(2500, sentences=30.0)
    assert len(store.ids) > 6 << 18, "six blocks or more"
    text, a, n, b, m, label = drawn(store, vocabulary, epochs=3)
    area, sigma = given_away(text, a, n, b, m, label)
    assert abs(area - 0.5) < 4 * sigma, f"{area:.4f}, {(area - 0.5) / sigma:.1f} sigma of {len(label)} pairs"
    assert abs((label == 0).mean() - 0.5) < 3 * 0.5 / np.sqrt(len(label))


def test_the_walk_cuts_long_sentences_between_words(make_store, vocabulary):
    # 40 words of two pieces: with room for 13 tokens a unit is 6 words, and no edge stands inside a word.
    store = make_store([[[10, 310] * 40]] * 4)
    text, a, n, b, m, _ = drawn(store, vocabulary, 16, epochs=3)
    assert np.diff(np.concatenate([[0], text.unit_ends[text.unit_ends <= 80]])).tolist() == [12] * 6 + [8]
    for edge in (a, a + n, b, b + m):
        assert (text.kind(edge) != 2).all()
    assert (n + m <= 13).all()


def test_a_word_longer_than_the_room_is_cut_inside(make_store, vocabulary):
    store = make_store([[[10] + [310] * 30, [20, 21, 22]], [[10, 11], [12] + [310] * 20]])
    _, a, n, b, m, label = drawn(store, vocabulary, 16, epochs=5)
    true = label == 0
    assert (n + m <= 13).all()
    assert not len(uncovered(store, np.concatenate([a, b[true]]), np.concatenate([n, m[true]])))


def test_documents_of_one_word_take_no_part_and_are_counted(make_store, vocabulary):
    store = make_store([[[5, 300, 301]], [[6, 7, 8]], [[9]], [[10, 11], [12]]])
    source = PretrainingSource(store, vocabulary, ExampleSettings(), MaskingSettings(), seed=1, batch_size=4)
    text, a, _, b, _, _ = drawn(store, vocabulary, epochs=20)
    assert set(text.document(np.concatenate([a, b])).tolist()) == {1, 3}
    assert "2 documents of one word" in "".join(notice.message for notice in heard(source))


def heard(source):
    with collecting() as notices:
        source.steps(0)
    return notices


def test_one_document_is_refused_with_both_ways_out(make_store, vocabulary):
    store = make_store([[[5], [6, 7], [8, 9, 10]]])
    with pytest.raises(DataError, match="needs two documents") as refused:
        PretrainingSource(store, vocabulary, ExampleSettings(), MaskingSettings(), seed=1, batch_size=4)
    assert refused.value.exit_code == 3
    assert "--objective mlm" in str(refused.value)
    assert "--documents line" in str(refused.value)
    only = PretrainingSource(store, vocabulary, ExampleSettings(objective="mlm"), MaskingSettings(), seed=1, batch_size=4)
    assert only.steps(0) == 1


def test_one_sentence_documents_are_said_with_the_share_of_each_label(lines, prose, vocabulary):
    source = PretrainingSource(lines(100, 8), vocabulary, ExampleSettings(), MaskingSettings(), seed=1, batch_size=16)
    said = [notice for notice in heard(source) if notice.kind == "one-sentence-documents"]
    share = source.plan(0).share_of_next()
    assert len(said) == 1
    assert said[0].message.startswith("100 of 100 documents hold one sentence")
    assert f"{share:.1%} of the pairs are next (label 0)" in said[0].message
    assert f"{1 - share:.1%} are not (label 1)" in said[0].message
    assert "--objective mlm" in said[0].message
    assert heard(source) == [], "said once"
    proper = PretrainingSource(prose(50), vocabulary, ExampleSettings(), MaskingSettings(), seed=1, batch_size=16)
    assert heard(proper) == []


def test_a_long_document_walked_in_parts_loses_nothing(make_store, vocabulary, monkeypatch):
    monkeypatch.setattr("bertkit.batches.pairs.SEGMENT", 300)
    rng = np.random.default_rng(3)
    store = make_store([[rng.integers(5, 300, 20).tolist() for _ in range(100)], [rng.integers(5, 300, 30).tolist()]])
    _, a, n, b, m, label = drawn(store, vocabulary, 64)
    true = label == 0
    assert not len(uncovered(store, np.concatenate([a, b[true]]), np.concatenate([n, m[true]])))
    _, a, n, *_ = drawn(store, vocabulary, 64, objective="mlm")
    assert not len(uncovered(store, a, n))
    assert n.sum() == len(store.ids)


@pytest.mark.parametrize("length", [8, 32, 128])
def test_runs_hold_every_token_once_and_as_much_as_fits(prose, vocabulary, length):
    store = prose(60)
    text, a, n, _, m, label = drawn(store, vocabulary, length, objective="mlm")
    assert (m == 0).all()
    assert (label == -1).all()
    assert n.sum() == len(store.ids)
    assert not len(uncovered(store, a, n))
    assert (n <= length - 2).all()
    assert (text.document(a) == text.document(a + n - 1)).all()
    following = np.argsort(a)
    ends = (a + n)[following][:-1]
    unit = text.unit_ends[np.searchsorted(text.unit_ends, ends, side="right")]
    grown = unit - a[following][:-1]
    same = text.document(a[following][:-1]) == text.document(ends)
    assert (grown[same] > length - 2).all(), "a further sentence would have fitted"


@pytest.mark.slow
@pytest.mark.data
def test_pairs_of_real_text(real_data):
    from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
    from bertkit.corpus.store import TokenStore
    from bertkit.corpus.wordpiece import load_wordpiece

    wordpiece = load_wordpiece(real_data / "data/vocab/bert-base-uncased-vocab.txt", cased=False)
    files = [real_data / "data/corpora/enwiki-valid.txt"]
    store = TokenStore.from_documents(read_documents(open_corpus(files), CorpusSettings(), ReadReport()), wordpiece)
    text, a, n, b, m, label = drawn(store, wordpiece, epochs=8)
    assert len(label) > 30_000
    assert abs((label == 0).mean() - 0.5) < 3 * 0.5 / np.sqrt(len(label))
    area, sigma = given_away(text, a, n, b, m, label)
    assert abs(area - 0.5) < 4 * sigma, f"{area:.4f}, {(area - 0.5) / sigma:.1f} sigma of {len(label)} pairs"
    true = label == 0
    assert not len(uncovered(store, np.concatenate([a, b[true]]), np.concatenate([n, m[true]])))
    assert (text.document(a) != text.document(b))[~true].all()
