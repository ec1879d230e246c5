"""Whole words and spans: taken together, the share that was asked for, every token as likely as any other."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertkit.batches.collator import PretrainingCollator
from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings, quotas
from bertkit.batches.pretraining import PretrainingExamples, PretrainingSource
from bertkit.batches.text import VocabularyFacts
from bertkit.batches.whole import Words, cut_spans, fill_quotas
from bertkit.errors import DataError
from bertkit.notices import collecting

WHOLE = ("word", "span")
LENGTHS, SHARES = np.array([1, 2, 3, 5]), np.array([0.6, 0.2, 0.12, 0.08])  # pieces of the words that tests make up


def made_words(lengths, rng):
    """Words of one to five pieces that fill texts of ``lengths`` tokens; the last of a text is cut with it."""
    firsts = np.cumsum(rng.choice(LENGTHS, p=SHARES, size=int(lengths.sum()) + 1))
    begins = np.zeros(int(lengths.sum()), dtype=bool)
    begins[firsts[firsts < len(begins)]] = True
    return Words.of(begins, lengths)


def sizes(firsts, tokens):
    return np.diff(np.append(firsts, tokens))


def filled(words, counts, kind, rng, probability=0.15):
    """What is chosen of some sequences, the units it is chosen of, and the quotas."""
    rows = np.concatenate([[0], np.cumsum(counts)])
    wanted = quotas(counts, probability, rng)
    units = words.firsts
    if kind == "span":
        longest = np.clip(wanted[np.searchsorted(rows, units, side="right") - 1], 1, 10)
        units = cut_spans(units, words.edges, longest, 0.2, rng.random(len(units)))
    chosen = fill_quotas(units, rows, wanted, rng.random(int(rows[-1])), rng.random(len(counts)))
    return chosen, units, wanted


# The units


def test_no_word_crosses_two_texts():
    words = Words.of(np.array([0, 0, 1, 0, 0, 1, 0], dtype=bool), np.array([4, 0, 3]))
    assert words.firsts.tolist() == [0, 2, 4, 5]
    assert words.edges.tolist() == [0, 4]


@given(lengths=st.lists(st.integers(0, 40), min_size=1, max_size=12), most=st.integers(1, 12), seed=st.integers(0, 9))
def test_spans_are_whole_words_of_one_text(lengths, most, seed):
    rng = np.random.default_rng(seed)
    lengths = np.array(lengths)
    words = made_words(lengths, rng)
    spans = cut_spans(words.firsts, words.edges, np.full(len(words.firsts), most), 0.2, rng.random(len(words.firsts)))
    assert np.isin(spans, words.firsts).all()
    assert np.isin(words.edges, spans).all()
    assert (np.diff(spans) > 0).all()
    if len(spans):
        assert np.diff(np.append(np.searchsorted(words.firsts, spans), len(words.firsts))).max() <= most


@pytest.mark.parametrize(("p", "most"), [(0.2, 10), (0.2, 3), (0.5, 40), (1.0, 10)])
def test_the_lengths_of_spans_are_geometric(p, most):
    words = np.arange(0, 400_000, 2)  # one text of 200 000 words of two pieces
    rng = np.random.default_rng(0)
    spans = cut_spans(words, np.zeros(1, np.int64), np.full(len(words), most), p, rng.random(len(words)))
    lengths = np.diff(spans) // 2  # but the last, which the text's end may cut
    expected = p * (1 - p) ** np.arange(most) / (1 - (1 - p) ** most)
    assert abs(expected.sum() - 1) < 1e-12
    got = np.bincount(lengths - 1, minlength=most) / len(lengths)
    assert len(got) == most
    assert (abs(got - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / len(lengths)) + 1e-12).all()
    if (p, most) == (0.2, 10):
        assert abs(lengths.mean() - 3.8) < 0.03  # the mean that the paper gives


@given(
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=20),
    kind=st.sampled_from(WHOLE),
    probability=st.sampled_from([0.01, 0.15, 0.5, 1.0]),
    seed=st.integers(0, 9),
)
def test_whole_units_and_at_least_one_of_each_sequence(counts, kind, probability, seed):
    rng = np.random.default_rng(seed)
    counts = np.array(counts)
    words = made_words(counts, rng)
    chosen, units, wanted = filled(words, counts, kind, rng, probability)
    assert len(chosen) == counts.sum()
    assert (np.repeat(chosen[units], sizes(units, len(chosen))) == chosen).all(), "a unit was taken in part"
    owner = np.repeat(np.arange(len(counts)), counts)
    assert (np.bincount(owner[chosen], minlength=len(counts))[counts > 0] >= 1).all()
    if probability == 1.0:
        assert chosen.all()
    assert (wanted[counts > 0] >= 1).all()


@pytest.mark.parametrize("kind", WHOLE)
def test_what_is_taken_too_much_is_owed_by_the_next_sequences(kind):
    rng = np.random.default_rng(3)
    counts = rng.integers(80, 126, 3_000)
    chosen, units, wanted = filled(made_words(counts, rng), counts, kind, rng)
    owner = np.repeat(np.arange(len(counts)), counts)
    owed = np.cumsum(np.bincount(owner[chosen], minlength=len(counts)) - wanted)
    # Every quota (12 at least) is above what can be owed but for the longest spans, so no sequence adds to the debt of another.
    assert np.abs(owed).max() < sizes(units, len(chosen)).max()


@pytest.mark.parametrize(("kind", "length"), [("word", 40), ("word", 125), ("word", 509), ("span", 125), ("span", 509)])
def test_every_token_is_as_likely_as_any_other(kind, length):
    """By the length of its word, and by its place in the sequence: 15 % each."""
    rng = np.random.default_rng(length)
    draws, rows = 120, max(4, 16_000 // length)
    counts = np.full(rows, length)
    hits, tokens = np.zeros(6), np.zeros(6)
    squares = np.zeros(6)  # of the tokens of one unit: they come and go together
    places = np.zeros(length)
    for _ in range(draws):
        words = made_words(counts, rng)
        chosen, units, _ = filled(words, counts, kind, rng)
        pieces = sizes(words.firsts, len(chosen))
        size = np.repeat(pieces, pieces)
        hits += np.bincount(size[chosen], minlength=6)
        tokens += np.bincount(size, minlength=6)
        unit = np.repeat(np.arange(len(units)), sizes(units, len(chosen)))
        for kinds in LENGTHS:
            squares[kinds] += (np.bincount(unit[size == kinds]) ** 2).sum()
        places += chosen.reshape(rows, length).sum(0)
    sigma = np.sqrt(0.15 * 0.85 * squares[LENGTHS]) / tokens[LENGTHS]
    assert (abs(hits[LENGTHS] / tokens[LENGTHS] - 0.15) < 4 * sigma).all()
    assert (
        abs(hits.sum() / tokens.sum() - 0.15) < 0.0005
    )  # the quotas' own draws: 0.25 / (draws rows length^2) at most, in squares
    # At one place: 0.15 within 4.5 sigma, for 509 places a false alarm in 300 runs; the seeds are fixed.
    assert (abs(places / (draws * rows) - 0.15) < 4.5 * np.sqrt(0.15 * 0.85 / (draws * rows))).all()


def test_every_unit_of_a_short_sequence_is_as_likely_as_any_other():
    """At least one has to be chosen, so long words have more than 15 %, but none more than another of its sequence."""
    rng = np.random.default_rng(8)
    rows = 20_000
    pieces = np.array([5, 1, 1, 2])
    firsts = np.cumsum(np.tile(pieces, rows)) - np.tile(pieces, rows)
    counts = np.full(rows, 9)
    chosen, _, wanted = filled(Words(firsts=firsts, edges=np.arange(0, 9 * rows, 9)), counts, "word", rng)
    hits = chosen[firsts].reshape(rows, 4).sum(0)
    share = hits.mean() / rows
    assert 1 / 4 <= share < 0.3  # one of the four where one is wanted (1.35 tokens are, on the average)
    assert abs(wanted.mean() - 1.35) < 0.02
    assert (abs(hits - hits.mean()) < 4 * (rows * share * (1 - share)) ** 0.5).all()


def test_a_short_sequence_is_not_one_span(vocabulary):
    collator = PretrainingCollator(vocabulary, MaskingSettings(kind="span"), seed=1)
    for _ in range(300):
        batch = collator.packed([{"a": [10, 11, 12, 13, 14, 15]}])
        assert len(batch.masked_positions) == 1


# The batches


def word_of(batch, vocabulary):
    """Which word each token of a packed batch belonged to before it was masked, and the ids."""
    ids = batch.packed.input_ids.clone()
    ids[batch.masked_positions] = batch.masked_labels
    begins = ~torch.from_numpy(vocabulary.continues)[ids]
    return begins.cumsum(0), ids


@pytest.mark.parametrize("kind", WHOLE)
def test_the_words_of_real_batches_are_taken_together_and_the_share_stays(prose, vocabulary, kind):
    source = PretrainingSource(
        prose(150), vocabulary, ExampleSettings(), MaskingSettings(kind=kind), seed=5, batch_size=64, micro_tokens=2000
    )
    chosen, wanted, variance = 0, 0.0, 0.0
    for index in range(source.steps(0)):
        for batch in source.step(0, index):
            word, ids = word_of(batch, vocabulary)
            picked = torch.zeros(len(ids), dtype=torch.bool)
            picked[batch.masked_positions] = True
            text = (ids != 2) & (ids != 3)
            assert text[batch.masked_positions].all(), "a special token was chosen"
            whole = torch.zeros(int(word.max()) + 1).index_add_(0, word[text], picked[text].float())
            pieces = torch.bincount(word[text], minlength=len(whole))
            assert ((whole == 0) | (whole == pieces)).all(), "a word was taken in part"
            per_sequence = torch.bincount(batch.packed.sequence_ids()[batch.masked_positions], minlength=batch.packed.sequences)
            assert (per_sequence >= 1).all()
            n = batch.packed.boundaries.diff().double() - 3
            chosen += int(picked.sum())
            wanted += float(torch.clamp(0.15 * n, min=1).sum())
            fraction = torch.where(n < 7, 0.0, 0.15 * n % 1)
            variance += float((fraction * (1 - fraction)).sum())
    # Only what the last sequences of a batch owe, or are owed, is lost: a word of 4 pieces, a span of 13 (the mean in
    # these words is below 1.4 pieces), either way.
    lost = {"word": 4, "span": 13}[kind]
    assert abs(chosen - wanted) < 3 * (variance + source.steps(0) * lost**2 / 4) ** 0.5


@pytest.mark.parametrize("kind", WHOLE)
def test_a_share_of_the_masks_is_the_whole_batch_of_masks(prose, vocabulary, kind):
    def source(micro):
        return PretrainingSource(
            prose(30), vocabulary, ExampleSettings(), MaskingSettings(kind=kind), seed=5, batch_size=32, micro_tokens=micro
        )

    (whole,) = source(None).step(0, 0)
    for world in (2, 3):
        parts = [batch for rank in range(world) for batch in pickle.loads(pickle.dumps(source(600))).step(0, 0, rank, world)]
        assert torch.equal(torch.cat([part.packed.input_ids for part in parts]), whole.packed.input_ids)
        assert torch.equal(torch.cat([part.masked_labels for part in parts]), whole.masked_labels)


def test_nothing_is_taken_together_across_the_separator(vocabulary):
    collator = PretrainingCollator(vocabulary, MaskingSettings(kind="word", mask_share=1.0, random_share=0.0))
    for _ in range(50):  # one word, cut between A and B: two words for masking, one target each time
        batch = collator.packed([{"a": [10, 310], "b": [311, 312], "next_sentence_label": 0}])
        assert batch.masked_positions.tolist() in ([1, 2], [4, 5])
    collator = PretrainingCollator(vocabulary, MaskingSettings(kind="span", probability=0.3, span_p=0.01))
    lengths = set()
    for _ in range(200):  # spans of up to five or six words, two texts of four: one is taken whole, or parted at its end
        batch = collator.packed([{"a": [10, 11, 12, 13], "b": [14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]}])
        lengths.add(tuple(batch.masked_positions.tolist()))
    assert all(5 not in places for places in lengths)


def test_runs_of_masked_words_have_the_lengths_of_spans(vocabulary):
    # Two spans of the 15 % may touch; runs are then longer. With 2 % hardly any do, and the quota (10 of 500) cuts none.
    collator = PretrainingCollator(vocabulary, MaskingSettings(kind="span", probability=0.02), seed=4)
    sentence = np.random.default_rng(0).integers(10, 290, 500).tolist()
    runs = []
    for _ in range(400):
        places = collator.packed([{"a": sentence}] * 4).masked_positions.numpy()
        runs += np.diff(np.flatnonzero(np.concatenate([[True], np.diff(places) > 1, [True]]))).tolist()
    lengths = np.arange(1, 11)
    expected = 0.2 * 0.8 ** (lengths - 1) / (1 - 0.8**10)
    got = np.bincount(runs, minlength=11)[1:11] / len(runs)
    touching = 0.02 / (1 - 0.02)  # the share of spans whose neighbour is chosen too, about
    assert (abs(got - expected) < 4 * np.sqrt(expected * (1 - expected) / len(runs)) + touching).all()
    assert max(runs) <= 20 + 10


# Words that pieces do not tell


@dataclass
class Begins:
    """A store that keeps where words begin: here before every even id."""

    made: object

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    def word_begins(self, places):
        return self.made.ids[places] % 2 == 0


def test_what_the_store_keeps_of_words_decides(prose, vocabulary):
    store = Begins(prose(30))
    settings = MaskingSettings(kind="word", mask_share=1.0, random_share=0.0)
    source = PretrainingSource(store, vocabulary, ExampleSettings(), settings, seed=5, batch_size=32)
    together = 0
    for index in range(4):
        (batch,) = source.step(0, index)
        ids = batch.packed.input_ids.clone()
        picked = ids == vocabulary.mask_id
        ids[batch.masked_positions] = batch.masked_labels
        inside = (ids[1:] % 2 == 1) & (ids[1:] != vocabulary.sep_id) & (ids[:-1] != vocabulary.cls_id) & (ids[:-1] != 3)
        assert (picked[1:] == picked[:-1])[inside].all()
        together += int((inside & picked[1:]).sum())
    assert together > 50
    plain = PretrainingSource(prose(30), vocabulary, ExampleSettings(), settings, seed=5, batch_size=32)
    assert not torch.equal(plain.step(0, 0)[0].packed.input_ids, source.step(0, 0)[0].packed.input_ids)


def test_others_loops_have_the_words_of_the_store(prose, vocabulary):
    examples = PretrainingExamples(Begins(prose(10)), vocabulary)
    example = examples[0]
    ids = np.concatenate([example["a"], example["b"]])
    assert (example["begins"] == (ids % 2 == 0)).all()
    assert "begins" not in PretrainingExamples(prose(10), vocabulary)[0]
    collator = PretrainingCollator(vocabulary, MaskingSettings(kind="word", mask_share=1.0, random_share=0.0))
    for _ in range(50):
        batch = collator.packed([{"a": [10, 12, 14, 16], "begins": [True, False, True, False]}, {"a": [10, 310]}])
        assert batch.masked_positions.tolist() in ([1, 2, 7, 8], [3, 4, 7, 8])
    with pytest.raises(DataError, match="`begins` has 1 entries, but A and B have 3 ids") as caught:
        collator.packed([{"a": [10]}, {"a": [10, 12], "b": [14], "begins": [True]}])
    assert caught.value.where == "example 1 of the batch"


@pytest.mark.parametrize(("kind", "chinese", "purpose", "told"), [
    ("word", 0.3, "training", 1),
    ("span", 0.3, "training", 1),
    ("token", 0.3, "training", 0),
    ("word", 0.3, "validation", 0),
    ("word", 0.005, "training", 0),
])  # fmt: skip
def test_it_is_said_once_that_chinese_is_masked_by_character(prose, vocabulary, kind, chinese, purpose, told):
    facts = VocabularyFacts.of(vocabulary)
    characters = np.zeros(400, dtype=bool)
    characters[: int(400 * chinese)] = True
    facts = VocabularyFacts(**{name: getattr(facts, name) for name in facts.__slots__ if name != "chinese"}, chinese=characters)
    masking = MaskingSettings(kind=kind)
    with collecting() as heard:
        source = PretrainingSource(prose(30), facts, ExampleSettings(), masking, seed=5, batch_size=32, purpose=purpose)
        source.step(0, 0)
        pickle.loads(pickle.dumps(source)).step(1, 0)
    assert [notice.kind for notice in heard].count("chinese-by-character") == told
    if told:
        with collecting() as heard:
            PretrainingSource(Begins(prose(30)), facts, ExampleSettings(), masking, seed=5, batch_size=32)
        assert "chinese-by-character" not in {notice.kind for notice in heard}
