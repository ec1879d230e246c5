"""Sources: layout, shares of processes, micro-batches, plans on disk, validation, labelled examples."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.labelled import LabelledSource, batches_by_tokens
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.source import BatchSource, cut_by_tokens
from bertkit.corpus.store import TokenStore
from bertkit.errors import DataError
from bertkit.notices import collecting


def source_of(store, vocabulary, *, length=64, objective="mlm+nsp", seed=3, batch_size=16, **more):
    examples = ExampleSettings(max_length=length, objective=objective)
    return PretrainingSource(store, vocabulary, examples, MaskingSettings(), seed=seed, batch_size=batch_size, **more)


def sequences(batches):
    """One tuple a sequence: ids, segments, masked places and labels, and the pair's label."""
    found = []
    for batch in batches:
        packed = batch.packed
        owner = packed.sequence_ids()[batch.masked_positions]
        for row, (low, high) in enumerate(zip(packed.boundaries[:-1].tolist(), packed.boundaries[1:].tolist(), strict=True)):
            mine = owner == row
            found.append(
                (
                    tuple(packed.input_ids[low:high].tolist()),
                    tuple(packed.token_type_ids[low:high].tolist()),
                    tuple(packed.position_ids[low:high].tolist()),
                    tuple((batch.masked_positions[mine] - low).tolist()),
                    tuple(batch.masked_labels[mine].tolist()),
                    None if batch.next_sentence_labels is None else int(batch.next_sentence_labels[row]),
                )
            )
    return found


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop", "mlm"])
def test_a_sequence_is_cls_a_sep_b_sep(prose, vocabulary, objective):
    store = prose(40)
    source = source_of(store, vocabulary, objective=objective)
    assert isinstance(source, BatchSource)
    for index in range(source.steps(0)):
        rows = source.plan(0).batch(index, 16)
        made = sequences(source.step(0, index))
        assert len(made) == len(rows)
        for row, (ids, segments, positions, places, labels, label) in zip(rows, made, strict=True):
            clean = list(ids)
            for place, original in zip(places, labels, strict=True):
                clean[place] = original
            a = store.ids[row["a"] : row["a"] + row["a_length"]].tolist()
            b = store.ids[row["b"] : row["b"] + row["b_length"]].tolist()
            expected, types = [2, *a, 3], [0] * (len(a) + 2)
            if objective != "mlm":
                expected, types = [*expected, *b, 3], types + [1] * (len(b) + 1)
            assert clean == expected
            assert list(segments) == types
            assert list(positions) == list(range(len(clean)))
            assert label == (None if objective == "mlm" else row["label"])


@pytest.mark.parametrize("world", [2, 3, 20])
@pytest.mark.parametrize("micro_tokens", [None, 150])
def test_processes_and_micro_batches_share_the_same_sequences(prose, vocabulary, world, micro_tokens):
    store = prose(40)
    whole = source_of(store, vocabulary)
    parts = source_of(store, vocabulary, micro_tokens=micro_tokens)
    for index in (0, 1, whole.steps(0) - 1):
        one = sequences(whole.step(0, index))
        shares = [parts.step(0, index, rank, world) for rank in range(world)]
        assert [sequence for share in shares for sequence in sequences(share)] == one
        if world > len(one):
            assert any(share == [] for share in shares)
        if micro_tokens:
            batches = [batch for share in shares for batch in share]
            assert all(batch.tokens <= micro_tokens or batch.packed.sequences == 1 for batch in batches)


def test_an_epoch_is_a_pure_function_of_its_settings(prose, vocabulary):
    store = prose(40)
    plan = source_of(store, vocabulary).plan(1).examples
    assert np.array_equal(plan, source_of(store, vocabulary, batch_size=5).plan(1).examples)
    assert not np.array_equal(plan[:50], source_of(store, vocabulary).plan(0).examples[:50])
    assert not np.array_equal(plan[:50], source_of(store, vocabulary, seed=4).plan(1).examples[:50])
    source = source_of(store, vocabulary)
    sizes = [len(sequences(source.step(1, index))) for index in range(source.steps(1))]
    assert sum(sizes) == len(plan)
    assert set(sizes[:-1]) == {16}
    with pytest.raises(IndexError, match="no batch"):
        source.step(1, source.steps(1))


def test_a_plan_is_kept_read_again_and_made_anew_where_it_is_damaged(prose, vocabulary, tmp_path):
    store = prose(40)
    fresh = source_of(store, vocabulary).plan(0).examples
    assert np.array_equal(source_of(store, vocabulary, plans=tmp_path).plan(0).examples, fresh)
    (path,) = tmp_path.iterdir()
    again = source_of(store, vocabulary, plans=tmp_path).plan(0).examples
    assert isinstance(again, np.memmap)
    assert np.array_equal(again, fresh)
    whole = path.read_bytes()
    zeros = whole[:128] + bytes(len(whole) - 128)  # from within the head on, as a lost block of the disk reads
    for damaged in (b"", whole[:300], whole[:-22], whole + whole[-22:], zeros, b"\x80\x04K\x01."):
        path.write_bytes(damaged)
        assert np.array_equal(source_of(store, vocabulary, plans=tmp_path).plan(0).examples, fresh)
    source = source_of(store, vocabulary, plans=tmp_path)
    for epoch in range(4):
        source.plan(epoch)
    assert sorted(int(file.stem[-5:]) for file in tmp_path.iterdir()) == [2, 3]
    other = source_of(store, vocabulary, plans=tmp_path, length=32)
    assert not np.array_equal(other.plan(2).examples[:20], source.plan(2).examples[:20])


def test_a_draft_that_a_killed_process_left_goes_after_a_day(prose, vocabulary, tmp_path):
    for age in (0, 2):
        draft = tmp_path / f".plan-{'0' * 16}-00000.npy.{age}.abcd"
        draft.write_bytes(b"half")
        os.utime(draft, (time.time() - age * 86_400,) * 2)
    source_of(prose(10), vocabulary, plans=tmp_path).plan(0)
    assert [path.suffixes[-2] for path in tmp_path.glob(".plan-*")] == [".0"]


def test_a_plan_that_nobody_used_for_a_month_goes(prose, vocabulary, tmp_path):
    store = prose(10)
    for seed in (1, 2):
        source_of(store, vocabulary, plans=tmp_path, seed=seed).plan(0)
    unused, used = (next(tmp_path.glob(f"*{source_of(store, vocabulary, seed=seed).key}*")) for seed in (1, 2))
    for path in (unused, used):
        os.utime(path, (time.time() - 31 * 86_400,) * 2)
    source_of(store, vocabulary, plans=tmp_path, seed=2).plan(0)  # opened again
    source_of(store, vocabulary, plans=tmp_path, seed=3).plan(0)
    assert (unused.exists(), used.exists()) == (False, True)


def test_a_plan_that_cannot_be_kept_stays_in_memory_and_it_is_said(prose, vocabulary, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with collecting() as notices:
        source = source_of(prose(10), vocabulary, plans=tmp_path / "file" / "plans")
        assert np.array_equal(source.plan(0).examples, source_of(prose(10), vocabulary).plan(0).examples)
    assert [notice.kind for notice in notices] == ["plan-not-kept"]


def test_a_source_travels_by_pickle(prose, vocabulary):
    source = source_of(prose(40), vocabulary)
    assert sequences(pickle.loads(pickle.dumps(source)).step(2, 1)) == sequences(source.step(2, 1))


def test_validation_is_the_same_every_time_and_moves_nothing(prose, vocabulary):
    store = prose(60)
    valid = source_of(store, vocabulary, purpose="validation", limit=37)
    assert valid.steps(0) == 3
    first = [sequences(valid.step(0, index)) for index in range(3)]
    assert [len(batch) for batch in first] == [16, 16, 5]
    assert [sequences(valid.step(9, index)) for index in range(3)] == first
    training = source_of(store, vocabulary)
    assert not np.array_equal(training.plan(0).examples[:20], valid.plan(0).examples[:20])
    assert sequences(training.step(0, 0)) == sequences(source_of(store, vocabulary).step(0, 0))


def test_one_token_type_puts_everything_in_segment_0(prose, vocabulary):
    (batch,) = source_of(prose(10), vocabulary, segments=1).step(0, 0)
    assert int(batch.packed.token_type_ids.max()) == 0


def test_counts_and_moving(prose, vocabulary):
    (batch,) = source_of(prose(10), vocabulary).step(0, 0)
    assert batch.counts() == {"mlm": len(batch.masked_labels), "nsp": 16}
    moved = batch.to("cpu")
    assert sequences([moved]) == sequences([batch])
    (batch,) = source_of(prose(10), vocabulary, objective="mlm+sop").step(0, 0)
    assert set(batch.counts()) == set(batch.to("cpu").counts()) == {"mlm", "sop"}
    (batch,) = source_of(prose(10), vocabulary, objective="mlm").step(0, 0)
    assert set(batch.counts()) == {"mlm"}


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        ([], 10, []),
        ([3, 3, 3, 3], None, [(0, 4)]),
        ([3, 3, 3, 3], 6, [(0, 2), (2, 4)]),
        ([3, 3, 3, 3], 7, [(0, 2), (2, 4)]),
        ([3, 20, 3], 10, [(0, 1), (1, 2), (2, 3)]),
        ([20], 10, [(0, 1)]),
    ],
)
def test_micro_batches_are_cut_by_tokens(lengths, budget, expected):
    assert [(part.start, part.stop) for part in cut_by_tokens(lengths, budget)] == expected


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop", "mlm"])
def test_held_out_documents_are_in_no_example(prose, vocabulary, objective, tmp_path):
    store = prose(40)
    held = np.array([0, 3, 17, 39])
    source = source_of(store, vocabulary, objective=objective, without=held, plans=tmp_path)
    examples = source.plan(0).examples
    for place in (examples["a"], examples["b"][examples["b_length"] > 0]):
        documents = np.searchsorted(store.document_ends, place, side="right")
        assert not np.isin(documents, held).any()
    assert set(np.searchsorted(store.document_ends, examples["a"], side="right")) == set(range(40)) - set(held.tolist())
    assert source.key != source_of(store, vocabulary, objective=objective).key
    assert source.key != source_of(store, vocabulary, objective=objective, without=held[1:]).key
    assert (
        source_of(store, vocabulary, objective=objective, without=held[:0]).key
        == source_of(store, vocabulary, objective=objective).key
    )


@pytest.mark.parametrize("objective", ["mlm", "mlm+sop", "mlm+nsp"])
def test_a_text_without_a_document_is_refused(prose, vocabulary, objective):
    for store, held in ((TokenStore.from_arrays([], [], [], vocab_size=400), None), (prose(3), np.arange(3))):
        with pytest.raises(DataError, match="no document to learn from"):
            source_of(store, vocabulary, objective=objective, without=held)


def test_one_document_beside_the_held_out_ones_is_refused(prose, vocabulary):
    with pytest.raises(DataError, match="needs two documents"):
        source_of(prose(3), vocabulary, without=np.array([0, 2]))


@dataclass
class Made:
    number: int
    length: int


def numbers(examples):
    return [example.number for example in examples]


def test_labelled_epochs_are_permutations():
    source = LabelledSource([Made(n, 4) for n in range(11)], numbers, seed=3, batch_size=4)
    assert isinstance(source, BatchSource)
    epochs = []
    for epoch in range(3):
        batches = [source.step(epoch, index) for index in range(source.steps(epoch))]
        assert [len(step[0]) for step in batches] == [4, 4, 3]
        epochs.append([number for step in batches for batch in step for number in batch])
        assert sorted(epochs[-1]) == list(range(11))
    assert epochs[0] != epochs[1]
    again = LabelledSource([Made(n, 4) for n in range(11)], numbers, seed=3, batch_size=4)
    assert again.step(2, 1) == source.step(2, 1)
    plain = LabelledSource([Made(n, 4) for n in range(11)], numbers, seed=3, batch_size=4, shuffle=False)
    assert [plain.step(1, index) for index in range(3)] == [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9, 10]]]


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_labelled_shares_are_one_batch(world):
    source = LabelledSource([Made(n, 5) for n in range(11)], numbers, seed=3, batch_size=5, micro_tokens=10)
    whole = LabelledSource([Made(n, 5) for n in range(11)], numbers, seed=3, batch_size=5)
    for index in range(3):
        shares = [source.step(0, index, rank, world) for rank in range(world)]
        assert [[n for share in shares for batch in share for n in batch]] == whole.step(0, index)
        assert all(len(batch) <= 2 for share in shares for batch in share)


@pytest.mark.parametrize("window", [1, 8, 1000])
def test_every_example_is_in_one_batch_of_those_that_are_evaluated(window):
    lengths = np.random.default_rng(0).integers(1, 60, 50).tolist()
    batches = batches_by_tokens(lengths, 100, window=window)
    assert all(sum(lengths[place] for place in places) <= 100 for places in batches)
    assert sorted(place for places in batches for place in places) == list(range(50))
    assert batches_by_tokens([], 10) == []


def test_sorting_by_length_saves_nothing_but_order_of_equal_lengths():
    assert batches_by_tokens([3] * 6, 6, window=6) == [[0, 1], [2, 3], [4, 5]]


def test_global_torch_and_numpy_randomness_is_not_touched(prose, vocabulary):
    torch.manual_seed(1)
    before, state = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    source_of(prose(10), vocabulary).step(0, 0)
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(state, np.random.get_state()[1])


def test_a_store_on_disk_travels_as_its_folder(tmp_path, vocabulary):
    from bertkit.corpus.build import build_store
    from bertkit.corpus.documents import CorpusSettings, open_corpus
    from bertkit.corpus.wordpiece import load_wordpiece

    vocab = tmp_path / "vocab.txt"
    words = ["low", "lower", "new", "wide", "##st", "##r", "."]
    vocab.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]) + "\n")
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(["New low wide. Lower new.\nWidest low newst lower."] * 400))
    wordpiece = load_wordpiece(vocab, cased=False)
    store, _ = build_store(open_corpus([text]), wordpiece, CorpusSettings(), cache=tmp_path / "cache")
    source = source_of(store, wordpiece, plans=store.folder / "plans")
    source.plan(0)
    travelling = pickle.dumps(source)
    assert len(travelling) < 4_000 < store.tokens * 2 + len(source.plan(0)) * 22
    assert sequences(pickle.loads(travelling).step(0, 3)) == sequences(source.step(0, 3))
