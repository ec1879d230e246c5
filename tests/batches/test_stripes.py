"""Stripes and blocks: parted anywhere, everything is walked once, and giants are given others' sentences."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from drawn_pairs import examples_of, uncovered
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.batches import stripes as stripes_module
from bertkit.batches.census import take_census
from bertkit.batches.examples import ExampleSettings, draw_examples
from bertkit.batches.stripes import Stripes
from bertkit.batches.text import Text, VocabularyFacts
from bertkit.errors import DataError


@pytest.fixture
def small(monkeypatch):
    """Sets the sizes of stripes and blocks, so that a small store has many."""

    def of(stripe, block=4):
        monkeypatch.setattr(stripes_module, "STRIPE", stripe)
        monkeypatch.setattr(stripes_module, "BLOCK", block)

    return of


def columns(examples):
    return tuple(examples[name].astype(np.int64) for name in ("a", "b", "a_length", "b_length", "label"))


def test_stripes_are_whole_documents_and_parts_of_giants_cut_at_sentences(make_store, vocabulary, small):
    small(100)
    sentence = [5] * 10
    store = make_store([[sentence] * 3] * 8 + [[sentence] * 47] + [[sentence] * 2])
    stripes = Stripes(store, vocabulary.continues)
    assert stripes.edges.tolist() == [0, 120, 210, 240, 340, 440, 540, 640, 710, 730]
    assert stripes.first.tolist() == [0, 4, 7, 8, 8, 8, 8, 8, 9]
    assert stripes.last.tolist() == [3, 6, 7, 8, 8, 8, 8, 8, 9]


def test_a_giant_sentence_is_cut_between_words(make_store, vocabulary, small):
    small(100)
    store = make_store([[[5, 300, 300] * 200]] * 2)
    edges = Stripes(store, vocabulary.continues).edges
    assert len(edges) > 10
    assert (edges % 3 == 0).all()
    assert (np.diff(edges) <= 200).all()


@pytest.mark.parametrize("stripe", [50, 400, 1 << 18])
def test_blocks_hold_every_stripe_once_and_differ_by_epoch(prose, vocabulary, small, stripe):
    small(stripe, 5)
    stripes = Stripes(prose(40), vocabulary.continues)
    blocks = stripes.blocks(3, "training", 0)
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(len(stripes)))
    assert max(map(len, blocks)) <= 5
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    if len(stripes) > 5:
        assert [block.tolist() for block in blocks] != [block.tolist() for block in stripes.blocks(3, "training", 1)]


def test_a_text_of_spans_is_that_part_of_the_whole(prose, vocabulary):
    store = prose(30)
    whole = Text.of(store, vocabulary.continues, 60)
    ends = store.document_ends
    long = int(np.flatnonzero(whole.sentences_per_document() > 3)[-1])
    inside = int(whole.edges[whole.sentence(ends[long - 1 : long])[0] + 1])  # where its first sentence ends
    some = Text.gathered(store, vocabulary.continues, 60, [(int(ends[2]), int(ends[5])), (inside, int(ends[long]))])
    assert some.owner.tolist() == [3, 4, 5, long]
    places = np.arange(some.tokens)
    there = some.traced(places)
    assert np.array_equal(there, np.concatenate([np.arange(ends[2], ends[5]), np.arange(inside, ends[long])]))
    assert np.array_equal(some.begins, whole.begins[there])
    assert np.array_equal(some.kind(places), whole.kind(there))
    assert np.array_equal(some.traced(some.unit_ends - 1) + 1, whole.unit_ends[np.isin(whole.unit_ends - 1, there)])
    rows = np.array([True, False, True, False])
    less = some.only(rows)
    assert less.owner.tolist() == [3, 5]
    assert np.array_equal(some.kind(less.traced(np.arange(less.tokens))), less.kind(np.arange(less.tokens)))
    assert np.array_equal(np.diff(less.edges), np.diff(some.edges)[rows[some.document(some.edges[:-1])]])


documents = st.lists(
    st.one_of(
        st.tuples(st.just(1), st.integers(1, 20)),  # one sentence
        st.tuples(st.integers(1, 6), st.integers(1, 40)),
        st.tuples(st.integers(20, 120), st.integers(1, 30)),  # a giant beside the others
        st.tuples(st.just(1), st.integers(300, 900)),  # a giant sentence
    ),
    min_size=2,
    max_size=12,
)


asked = given(
    documents=documents,
    stripe=st.sampled_from([40, 150, 1000]),
    length=st.sampled_from([8, 16, 64]),
    objective=st.sampled_from(["mlm+nsp", "mlm+sop", "mlm"]),
    held=st.integers(0, 3),
    seed=st.integers(0, 5),
)


@settings(max_examples=20, deadline=None)
@asked
def test_any_corpus_is_covered_and_labelled_rightly(make_store, vocabulary, **corpus):
    draw_any(make_store, vocabulary, **corpus)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@asked
def test_many_a_corpus_is_covered_and_labelled_rightly(make_store, vocabulary, **corpus):
    draw_any(make_store, vocabulary, **corpus)


def draw_any(make_store, vocabulary, *, documents, stripe, length, objective, held, seed):
    rng = np.random.default_rng(seed)
    store = make_store(
        [
            [[int(rng.integers(5, 300)), *rng.integers(5, 400, size - 1).tolist()] for size in rng.integers(1, most + 1, count)]
            for count, most in documents
        ]
    )
    facts = VocabularyFacts.of(vocabulary)
    without = rng.permutation(len(documents))[: min(held, len(documents) - 2)]
    chosen = ExampleSettings(max_length=length, objective=objective)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stripes_module, "STRIPE", stripe)
        patch.setattr(stripes_module, "BLOCK", 3)
        census = take_census(store, vocabulary.continues, without)
        if census.pairable < {"mlm": 0, "mlm+sop": 1, "mlm+nsp": 2}[objective]:
            with pytest.raises(DataError, match=f"this text has {census.pairable}"):
                examples_of(store, facts, chosen, seed=seed, epoch=1, without=without)
            return
        examples = examples_of(store, facts, chosen, seed=seed, epoch=1, without=without)
        again = examples_of(store, facts, chosen, seed=seed, epoch=1, without=without)
    assert np.array_equal(examples, again)
    check(store, vocabulary, chosen, without, examples)


def check(store, vocabulary, chosen, without, examples):
    """What holds for every corpus."""
    text = Text.of(store, vocabulary.continues, chosen.room)
    a, b, n, m, label = columns(examples)
    assert (n >= 1).all()
    assert (n + m <= chosen.room).all()
    own = text.document(a)
    assert np.array_equal(own, text.document(a + n - 1)), "an A crosses documents"
    assert not np.isin(own, without).any()
    wanted = text.taken(without) if chosen.objective == "mlm" else text.taken(without) & text.usable()
    true = (label == 0) | (chosen.objective == "mlm+sop")
    missed = uncovered(store, np.append(a, b[true]), np.append(n, m[true]))
    assert not wanted[text.document(missed)].any(), "tokens in no A and no true B"
    if chosen.objective == "mlm":
        assert n.sum() == np.diff(text.document_edges)[wanted].sum(), "a token twice"
        return
    assert (m >= 1).all()
    assert np.array_equal(text.document(b), text.document(b + m - 1)), "a B crosses documents"
    assert np.array_equal(text.document(b) == own, true)
    if chosen.objective == "mlm+sop":
        assert np.array_equal(a[label == 1], (b + m)[label == 1])
    assert np.array_equal(b[label == 0], (a + n)[label == 0])
    assert wanted[text.document(b)].all()


def test_a_giant_among_a_few_takes_its_wrong_sentences_from_all_of_the_others(make_store, vocabulary, small):
    small(500, 3)
    rng = np.random.default_rng(1)
    made = [[rng.integers(5, 300, size).tolist() for size in rng.integers(2, 30, count)] for count in (600, 20, 30, 25)]
    store = make_store(made)
    facts = VocabularyFacts.of(vocabulary)
    blocks = list(draw_examples(store, facts, ExampleSettings(max_length=64), seed=0, epoch=0))
    assert len(blocks) > 5
    text = Text.of(store, vocabulary.continues, 61)
    a, b, n, m, label = columns(np.concatenate(blocks))
    giant, wrong = text.document(a) == 0, label == 1
    assert set(text.document(b[giant & wrong])) == {1, 2, 3}
    assert abs(wrong[giant].mean() - 0.5) < 3 * 0.5 / np.sqrt(giant.sum())
    # A giant's wrong B is as long as its true one wherever a run of that length exists, so the lengths agree within chance.
    right, other = m[giant & ~wrong], m[giant & wrong]
    assert abs(right.mean() - other.mean()) < 4 * m[giant].std() * np.sqrt(1 / len(right) + 1 / len(other))
    assert len(uncovered(store, np.append(a, b[~wrong]), np.append(n, m[~wrong]))) == 0


def test_two_documents_of_very_different_size(make_store, vocabulary, small):
    small(2000, 4)
    rng = np.random.default_rng(2)
    store = make_store([[rng.integers(5, 300, 12).tolist() for _ in range(4000)], [[5, 6, 7], [8, 9, 10, 11]]])
    chosen = ExampleSettings(max_length=128)
    examples = examples_of(store, VocabularyFacts.of(vocabulary), chosen)
    check(store, vocabulary, chosen, None, examples)
    assert (examples["b"][examples["label"] == 1] < len(store.ids)).all()


def test_stores_one_behind_the_other_give_the_examples_of_one(prose, vocabulary, small):
    from bertkit.corpus.joined import JoinedStore
    from bertkit.corpus.store import TokenStore

    small(500, 4)
    made = prose(60)
    cut = int(made.document_ends[22])

    def part(first, last):
        sentences = made.sentence_ends_between(first, last) - first
        documents = made.document_ends[(made.document_ends > first) & (made.document_ends <= last)] - first
        return TokenStore.from_arrays(made.ids[first:last], sentences, documents, vocab_size=400)

    joined = JoinedStore([part(0, cut), part(cut, len(made.ids))])
    facts, chosen = VocabularyFacts.of(vocabulary), ExampleSettings(max_length=64)
    whole = examples_of(made, facts, chosen, without=np.array([3, 40]))
    assert np.array_equal(whole, examples_of(joined, facts, chosen, without=np.array([3, 40])))


def test_documents_in_parts_are_counted_once(make_store, vocabulary, small):
    small(100)
    sentence = [5] * 10
    store = make_store([[sentence]] * 3 + [[sentence] * 90, [[5]], [[5, 300]], [[5, 6] * 200]])
    census = take_census(store, vocabulary.continues)
    assert (census.documents, census.pairable) == (7, 5)
    assert census.single == 5, "a sentence of four stripes counts as several"
    assert take_census(store, vocabulary.continues, np.array([1, 3])).documents == 5
    assert take_census(store, vocabulary.continues, enough=2).documents < 7


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm"])
def test_progress_is_told_block_by_block_to_the_last_token(prose, vocabulary, small, objective):
    small(500, 4)
    store, told = prose(60), []
    facts, chosen = VocabularyFacts.of(vocabulary), ExampleSettings(objective=objective)
    blocks = list(draw_examples(store, facts, chosen, seed=1, epoch=0, progress=lambda done, total: told.append((done, total))))
    assert len(told) == len(blocks) > 2
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (len(store.ids), len(store.ids))


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop", "mlm"])
def test_memory_does_not_grow_with_the_text(prose, vocabulary, small, objective):
    from bertkit.corpus.store import TokenStore

    small(1 << 13, 4)
    made, facts, chosen = prose(300), VocabularyFacts.of(vocabulary), ExampleSettings(objective=objective)

    def peak(times):
        shifts = np.repeat(np.arange(times) * len(made.ids), len(made.sentence_ends))
        ends = np.tile(made.sentence_ends, times) + shifts
        documents = ends[np.isin(ends % len(made.ids), made.document_ends % len(made.ids))]
        store = TokenStore.from_arrays(np.tile(made.ids, times), ends, documents, vocab_size=400)
        tracemalloc.start()
        blocks = sum(1 for _ in draw_examples(store, facts, chosen, seed=1, epoch=0))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return blocks, found

    peak(1)  # what is made once and for all does not count
    (few, before), (many, after) = peak(2), peak(16)
    assert many > 6 * few
    assert after < 1.15 * before
