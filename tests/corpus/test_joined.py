from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.hold_out import HeldOut, held_out_documents
from bertkit.corpus.joined import JoinedArray, JoinedStore, open_stores, store_folders
from bertkit.corpus.store import TokenStore
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError, MissingError, UsageError
from bertkit.notices import collecting

LETTERS = WordPiece([*SPECIALS, *"abcdefg.", *("##" + c for c in "abcdefg")], Flags(lowercase=True))

Drawn = st.lists(st.lists(st.lists(st.integers(5, 9), min_size=1, max_size=9), min_size=1, max_size=4), max_size=4)


def store_of(documents: list[list[list[int]]], seed: int) -> TokenStore:
    sentences = [sentence for document in documents for sentence in document]
    ends = np.cumsum([0, *map(len, sentences)])[1:]
    ids = [token for sentence in sentences for token in sentence]
    begins = np.random.default_rng(seed).random(len(ids)) < 0.6
    document_ends = ends[np.cumsum([len(document) for document in documents], dtype=int) - 1] if documents else []
    hashes = np.random.default_rng(seed).integers(0, 1 << 63, len(documents))
    return TokenStore.from_arrays(ids, ends, document_ends, vocab_size=10, word_begins=begins, document_hashes=hashes)


def end_to_end(stores: list[TokenStore]) -> TokenStore:
    edges = np.cumsum([0, *(store.tokens for store in stores)])
    return TokenStore.from_arrays(
        np.concatenate([store.ids for store in stores]),
        np.concatenate([store.sentence_ends_between(0, store.tokens) + e for store, e in zip(stores, edges, strict=False)]),
        np.concatenate([store.document_ends + e for store, e in zip(stores, edges, strict=False)]),
        vocab_size=10,
        word_begins=np.concatenate([store.word_begins(np.arange(store.tokens)) for store in stores]),  # type: ignore[misc]
        document_hashes=np.concatenate([store.document_hashes for store in stores]),
    )


@settings(deadline=None)
@given(st.lists(Drawn, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_joined_stores_are_one(parts: list[list[list[list[int]]]], rng: random.Random) -> None:
    stores = [store_of(documents, seed) for seed, documents in enumerate(parts)]
    joined, one = JoinedStore(stores), end_to_end(stores)
    assert (joined.tokens, joined.documents, joined.sentences) == (one.tokens, one.documents, one.sentences)
    assert joined.document_ends.tolist() == one.document_ends.tolist()
    assert joined.frequencies().tolist() == one.frequencies().tolist()
    for _ in range(5):
        first, last = sorted((rng.randint(0, one.tokens), rng.randint(0, one.tokens)))
        assert joined.sentence_ends_between(first, last).tolist() == one.sentence_ends_between(first, last).tolist()
        assert joined.ids[first:last].tolist() == one.ids[first:last].tolist()
        assert joined.ids[first:last:2].tolist() == one.ids[first:last:2].tolist()
    assert np.asarray(joined.ids).tolist() == one.ids.tolist()
    if one.tokens:
        places = np.array([rng.randrange(one.tokens) for _ in range(30)])
        assert joined.ids[places].tolist() == one.ids[places].tolist()
        assert joined.ids[places.reshape(5, 6)].tolist() == one.ids[places.reshape(5, 6)].tolist()
        assert joined.word_begins(places).tolist() == one.word_begins(places).tolist()  # type: ignore[union-attr]
        assert (joined.ids[-1], joined.ids[0]) == (one.ids[-1], one.ids[0])
    held = held_out_documents(joined.document_hashes, HeldOut(share=0.4))
    some, expected = joined.select(held), one.select(held)
    assert (some.ids.tolist(), some.counts) == (expected.ids.tolist(), expected.counts)
    assert some.sentence_ends_between(0, some.tokens).tolist() == expected.sentence_ends_between(0, some.tokens).tolist()
    everywhere = np.arange(some.tokens)
    assert some.word_begins(everywhere).tolist() == expected.word_begins(everywhere).tolist()  # type: ignore[union-attr]
    assert pickle.loads(pickle.dumps(joined)).fingerprint == joined.fingerprint


def test_places_that_are_not_there() -> None:
    array = JoinedArray([np.arange(3), np.arange(2)])
    assert (len(array), array.shape, array[3], array[np.array([True, False, False, True, False])].tolist()) == (
        5,
        (5,),
        0,
        [0, 0],
    )
    for place in (5, -6):
        with pytest.raises(IndexError):
            array[place]


def shards(tmp_path: Path, count: int, text: str = "") -> list[Path]:
    path = tmp_path / "text.txt"
    path.write_text(text + "\n\n".join(f"{'abcdefg'[n % 7] * (n % 5 + 1)} b. c d." for n in range(30_000)), "utf-8")
    folders = [tmp_path / "stores" / f"{i}-of-{count}" for i in range(1, count + 1)]
    for i, folder in enumerate(folders, 1):
        build_store(open_corpus([path]), LETTERS, CorpusSettings(), folder=folder, shard=(i, count))
    return folders


def test_shards_are_one_corpus_when_all_are_there(tmp_path: Path) -> None:
    folders = shards(tmp_path, 3)
    assert store_folders(tmp_path / "stores") == folders
    assert store_folders(folders[0]) == [folders[0]]
    assert store_folders(tmp_path / "text.txt") == store_folders(tmp_path) == store_folders(tmp_path / "gone") == []
    joined = open_stores(folders)
    whole, _ = build_store(open_corpus([tmp_path / "text.txt"]), LETTERS, CorpusSettings(), cache=tmp_path / "cache")
    assert sorted(joined.document_hashes.tolist()) == sorted(whole.document_hashes.tolist())
    assert joined.counts["tokens"] == whole.tokens
    with collecting() as heard:
        assert open_stores([*folders, folders[1]]).fingerprint == joined.fingerprint
    assert [n.kind for n in heard] == ["store-twice"]
    with pytest.raises(MissingError, match="Shard 2 of 3 is missing"):
        open_stores([folders[0], folders[2]])


def test_shards_of_two_texts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = shards(tmp_path / "old", 2)
    (tmp_path / "new").mkdir()
    new = shards(tmp_path / "new", 2, text="g g g.\n\n")
    with pytest.raises(DataError, match="not of one text"):
        open_stores([old[0], new[1]])
    assert open_stores([*old, *new]).documents == 60_001


def test_other_vocabularies_and_words_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b.\n\nc d.\n", "utf-8")
    for name, cased in (("one", False), ("two", True)):
        wordpiece = WordPiece(LETTERS.vocabulary, Flags(lowercase=not cased))
        build_store(open_corpus([path]), wordpiece, CorpusSettings(), folder=tmp_path / name)
    with pytest.raises(UsageError, match="different vocabularies") as caught:
        open_stores([tmp_path / "one", tmp_path / "two"])
    assert str(caught.value.where) == f"{tmp_path / 'one'} and {tmp_path / 'two'}"
    ids, ends = [5, 6], [2]
    plain = TokenStore.from_arrays(ids, ends, ends, vocab_size=10)
    with_words = TokenStore.from_arrays(ids, ends, ends, vocab_size=10, word_begins=[True, False])
    with pytest.raises(UsageError, match="boundaries of Chinese words"):
        JoinedStore([plain, with_words])
    assert plain.fingerprint != with_words.fingerprint
