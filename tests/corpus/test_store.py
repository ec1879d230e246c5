from __future__ import annotations

import json
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest

from bertkit.corpus.store import TokenStore, id_type
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.writer import StoreWriter
from bertkit.errors import DataError, MissingError

IDS, SENTENCES, DOCUMENTS = [5, 6, 7, 8, 9, 5], [2, 3, 6], [3, 6]


def written(folder: Path, vocab_size: int = 10) -> Path:
    with StoreWriter(folder, vocab_size) as writer:
        writer.add(np.array(IDS[:2]), np.array(SENTENCES[:1]), np.array([], dtype=np.int64))
        writer.add(np.array(IDS[2:]), np.array(SENTENCES[1:]), np.array(DOCUMENTS))
        writer.finish("abc", dropped=1)
    return folder


def tokens_of(store: TokenStore) -> list[int]:
    return [int(i) for i in store.ids]


@pytest.mark.parametrize("vocab_size", [10, 65_536, 65_537])
def test_written_and_opened(tmp_path: Path, vocab_size: int) -> None:
    store = TokenStore.open(written(tmp_path / "s", vocab_size), checksums=True)
    assert store.ids.dtype == (np.uint16 if vocab_size <= 65_536 else np.uint32)
    assert (store.ids.tolist(), store.sentence_ends.tolist(), store.document_ends.tolist()) == (IDS, SENTENCES, DOCUMENTS)
    assert (store.tokens, store.sentences, store.documents, store.fingerprint) == (6, 3, 2, "abc")
    assert store.counts == {"documents": 2, "sentences": 3, "tokens": 6, "dropped": 1}
    assert store.document_sentences.tolist() == [0, 2, 3]
    assert store.frequencies().tolist()[:10] == [0, 0, 0, 0, 0, 2, 1, 1, 1, 1]
    assert len(store.frequencies()) == vocab_size


def test_in_memory_from_documents() -> None:
    wordpiece = WordPiece([*SPECIALS, "a", "b", "!"], Flags(lowercase=True))
    store = TokenStore.from_documents([["A b! A!", "b"], ["\u200d"], ["a a", "\u200e"]], wordpiece)
    assert store.ids.tolist() == [5, 6, 7, 5, 7, 6, 5, 5]
    assert store.sentence_ends.tolist() == [3, 5, 6, 8]
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


@pytest.mark.parametrize("name", ["ids.bin", "sentence_ends.bin", "document_ends.bin"])
def test_cut_and_missing_files_are_seen_at_once(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "s")
    path = folder / name
    path.write_bytes(path.read_bytes()[:-8])
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


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', '{"format": 99}', '{"format": 1, "files": 3}'])
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
