from __future__ import annotations

import json
import multiprocessing
import pickle
import random
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.store import TokenStore
from bertkit.corpus.store_files import file_sizes, id_type
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.writer import StoreWriter
from bertkit.errors import DataError, MissingError

IDS, SENTENCES, DOCUMENTS = [5, 6, 7, 8, 9, 5], [2, 3, 6], [3, 6]


NOTHING = np.array([], dtype=np.int64)
FLAGS = np.isin(np.arange(1, 7), SENTENCES)


def written(folder: Path, vocab_size: int = 10) -> Path:
    with StoreWriter(folder, vocab_size) as writer:
        writer.add(np.array(IDS[:2]), FLAGS[:2], NOTHING, NOTHING.astype(np.uint64))
        writer.add(np.array(IDS[2:]), FLAGS[2:], np.array(DOCUMENTS), np.array([7, 8], dtype=np.uint64))
        writer.finish(fingerprint="abc", tokenizer="xyz", counts={"sentences": 3, "dropped": 1})
    return folder


def ends(store: TokenStore) -> list[int]:
    return store.sentence_ends_between(0, store.tokens).tolist()


def tokens_of(store: TokenStore) -> list[int]:
    return [int(i) for i in store.ids]


@pytest.mark.parametrize("vocab_size", [10, 65_536, 65_537])
def test_written_and_opened(tmp_path: Path, vocab_size: int) -> None:
    store = TokenStore.open(written(tmp_path / "s", vocab_size), checksums=True)
    assert store.ids.dtype == (np.uint16 if vocab_size <= 65_536 else np.uint32)
    assert (store.ids.tolist(), ends(store), store.document_ends.tolist()) == (IDS, SENTENCES, DOCUMENTS)
    assert (store.tokens, store.sentences, store.documents, store.fingerprint) == (6, 3, 2, "abc")
    assert store.counts == {"documents": 2, "sentences": 3, "tokens": 6, "dropped": 1}
    assert (store.document_hashes.tolist(), store.tokenizer, store.has_words) == ([7, 8], "xyz", False)
    assert store.word_begins(np.array([0, 5])) is None
    assert store.frequencies().tolist()[:10] == [0, 0, 0, 0, 0, 2, 1, 1, 1, 1]
    assert len(store.frequencies()) == vocab_size


def test_in_memory_from_documents() -> None:
    wordpiece = WordPiece([*SPECIALS, "a", "b", "!"], Flags(lowercase=True))
    store = TokenStore.from_documents([["A b! A!", "b"], ["\u200d"], ["a a", "\u200e"]], wordpiece)
    assert store.ids.tolist() == [5, 6, 7, 5, 7, 6, 5, 5]
    assert ends(store) == [3, 5, 6, 8]
    assert store.document_ends.tolist() == [6, 8]
    other = TokenStore.from_documents([["A b! A!", "b", "a a"]], wordpiece)
    assert other.fingerprint != store.fingerprint
    assert pickle.loads(pickle.dumps(store)).fingerprint == store.fingerprint


def test_a_worker_maps_the_files_itself(tmp_path: Path) -> None:
    store = TokenStore.open(written(tmp_path / "s"))
    data = pickle.dumps(store)
    assert len(data) < 1000
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(tokens_of, (store,)) == IDS


@pytest.mark.parametrize("name", ["ids.bin", "sentence_bits.bin", "document_ends.bin", "document_hashes.bin"])
def test_cut_and_missing_files_are_seen_at_once(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "s")
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=name):
        TokenStore.open(folder)
    path.unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        TokenStore.open(folder)


def test_flipped_bytes_are_seen_by_checksums(tmp_path: Path) -> None:
    folder = written(tmp_path / "s")
    data = bytearray((folder / "ids.bin").read_bytes())
    data[0] ^= 1
    (folder / "ids.bin").write_bytes(data)
    TokenStore.open(folder)
    with pytest.raises(DataError, match=r"ids\.bin have changed"):
        TokenStore.open(folder, checksums=True)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 2}', '{"format": 99}', '{"format": 2, "files": 3}'])
def test_damaged_or_foreign_facts(tmp_path: Path, damage: str) -> None:
    folder = written(tmp_path / "s")
    (folder / "store.json").write_text(damage)
    with pytest.raises(DataError, match="99" if "99" in damage else "damaged"):
        TokenStore.open(folder)


def test_a_store_without_its_last_file_is_none(tmp_path: Path) -> None:
    folder = written(tmp_path / "s")
    assert json.loads((folder / "store.json").read_bytes())["files"]["ids.bin"]["size"] == 12
    (folder / "store.json").unlink()
    with pytest.raises(MissingError):
        TokenStore.open(folder)


@pytest.mark.parametrize(
    ("ids", "sentences", "documents"),
    [
        ([5, 6], [1], [2]),
        ([5, 6], [2], [1, 2]),
        ([5, 6], [2, 2], [2]),
        ([5, 6], [0, 2], [2]),
        ([5, 10], [2], [2]),
        ([-1], [1], [1]),
    ],
)
def test_arrays_that_disagree(ids: list[int], sentences: list[int], documents: list[int]) -> None:
    with pytest.raises(DataError):
        TokenStore.from_arrays(ids, sentences, documents, vocab_size=10)


def test_id_type() -> None:
    assert id_type(65_536).itemsize == 2
    assert id_type(65_537).itemsize == 4


Drawn = st.lists(st.lists(st.lists(st.integers(5, 9), min_size=1, max_size=12), min_size=1, max_size=5), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(Drawn, st.lists(st.booleans(), min_size=400, max_size=400), st.randoms(use_true_random=False))
def test_bits_say_what_lists_say(documents: list[list[list[int]]], words: list[bool], rng: random.Random) -> None:
    sentences = [sentence for document in documents for sentence in document]
    sentence_ends = np.cumsum([len(sentence) for sentence in sentences])
    document_ends = sentence_ends[np.cumsum([len(document) for document in documents]) - 1]
    ids = [token for sentence in sentences for token in sentence]
    begins = words[: len(ids)]
    store = TokenStore.from_arrays(ids, sentence_ends, document_ends, vocab_size=10, word_begins=begins)
    for _ in range(5):
        first, last = sorted((rng.randint(0, len(ids)), rng.randint(0, len(ids))))
        expected = [end for end in sentence_ends.tolist() if first < end <= last]
        assert store.sentence_ends_between(first, last).tolist() == expected
    places = np.array([rng.randrange(len(ids)) for _ in range(20)])
    found = store.word_begins(places)
    assert found is not None
    assert found.tolist() == [begins[place] for place in places]
    chosen = np.array([d for d in range(len(documents)) if rng.random() < 0.5], dtype=np.int64)
    some = store.select(chosen)
    assert some.ids.tolist() == [token for d in chosen for sentence in documents[d] for token in sentence]
    assert np.diff(ends(some), prepend=0).tolist() == [len(sentence) for d in chosen for sentence in documents[d]]
    assert some.document_hashes.tolist() == chosen.tolist()
    assert (some.documents, some.sentences, some.tokens) == (len(chosen), sum(len(documents[d]) for d in chosen), len(some.ids))
    spans = list(pairwise([0, *document_ends.tolist()]))
    expected_words = [word for d in chosen for word in begins[slice(*spans[d])]]
    kept = some.word_begins(np.arange(some.tokens))
    assert kept is not None
    assert kept.tolist() == expected_words
    again = pickle.loads(pickle.dumps(some))
    assert (again.fingerprint, ends(again)) == (some.fingerprint, ends(some))
    everything = store.select(np.arange(len(documents)))
    assert (everything.fingerprint != store.fingerprint, ends(everything)) == (True, ends(store))


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=8),
    st.integers(0, 200),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_a_writer_goes_back_and_on(sizes: list[int], cut: int, others: int, rng: random.Random) -> None:
    total = sum(sizes)
    ids, flags = np.arange(total) % 9, np.array([rng.random() < 0.3 for _ in range(total)])
    begins = np.array([rng.random() < 0.7 for _ in range(total)])
    cut = min(cut, total)
    with tempfile.TemporaryDirectory() as name:
        whole, parts = Path(name) / "whole", Path(name) / "parts"
        with StoreWriter(whole, 10, words=True) as writer:
            writer.add(ids, flags, np.array([total]), np.array([1], dtype=np.uint64), begins)
            writer.finish(fingerprint="a", tokenizer="t", counts={"sentences": 1})
        writer = StoreWriter(parts, 10, words=True)
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            place = slice(end - size, end)
            writer.add(ids[place], flags[place], np.array([end]), np.array([end], dtype=np.uint64), begins[place])
        if others:  # other processes go on from what the first one put on disk, all but the last killed before they add any
            writer.sync()
            for _ in range(others):
                writer.close()
                writer = StoreWriter(parts, 10, words=True, tokens=cut, documents=0)
        else:
            writer.rewind(cut, 0)
        with writer:
            writer.add(ids[cut:], flags[cut:], np.array([total]), np.array([1], dtype=np.uint64), begins[cut:])
            writer.finish(fingerprint="a", tokenizer="t", counts={"sentences": 1})
        assert {p.name: p.read_bytes() for p in whole.iterdir()} == {p.name: p.read_bytes() for p in parts.iterdir()}


def test_a_writer_asks_for_no_more_than_there_is(tmp_path: Path) -> None:
    written(tmp_path / "s")
    with pytest.raises(DataError, match=r"ids\.bin should have 14 bytes"):
        StoreWriter(tmp_path / "s", 10, tokens=7, documents=2)


@pytest.mark.parametrize(("words", "limit"), [(False, 2.2), (True, 2.4)])
def test_bytes_a_token(words: bool, limit: float) -> None:
    """Of documents of 300 tokens, which is short; English Wikipedia's have 1 500."""
    documents = 1000
    sizes = file_sizes(30_522, words=words, tokens=300 * documents, documents=documents)
    assert 2.1 < sum(sizes.values()) / (300 * documents) < limit
