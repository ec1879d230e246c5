"""Several token stores as one corpus: the shards of a text, or stores of different texts, one behind the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.store import TokenStore, select_documents
from bertkit.corpus.store_files import is_store, must_be_whole
from bertkit.errors import DataError, MissingError, UsageError
from bertkit.notices import say

Int64s = NDArray[np.int64]


class JoinedArray:
    """Arrays end to end, read as one ``[n]``: slices and arrays of places give arrays of their own."""

    ndim = 1

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self._parts = list(parts)
        self._edges = np.cumsum([0, *(len(part) for part in parts)])
        self.dtype = parts[0].dtype
        self.shape = (int(self._edges[-1]),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: Any) -> Any:
        if isinstance(where, slice):
            start, stop, step = where.indices(len(self))
            return self._slice(start, stop) if step == 1 else self[np.arange(start, stop, step)]
        places = np.asarray(where)
        if places.dtype == np.bool_:
            places = np.flatnonzero(places)
        return self._at(places)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole: NDArray[Any] = self[:]
        return whole if dtype is None else whole.astype(dtype)

    def _slice(self, start: int, stop: int) -> NDArray[Any]:
        found = []
        for part, edge in zip(self._parts, self._edges.tolist(), strict=False):
            low, high = max(start - edge, 0), min(stop - edge, len(part))
            if low < high:
                found.append(part[low:high])
        return found[0] if len(found) == 1 else np.concatenate([self._parts[0][:0], *found])

    def _at(self, places: NDArray[Any]) -> Any:
        wanted = np.where(places < 0, places + len(self), places).astype(np.int64)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"places reach from {places.min()} to {places.max()} in an array of {len(self)}")
        owner = np.searchsorted(self._edges, wanted, side="right") - 1
        out = np.empty(wanted.shape, dtype=self.dtype)
        for number in np.unique(owner):
            mine = owner == number
            out[mine] = self._parts[number][wanted[mine] - self._edges[number]]
        return out[()]


class JoinedStore:
    """Stores of one vocabulary, one behind the other; for batches it is a :class:`bertkit.corpus.store.TokenStore`.

    Attributes:
        stores: The stores.
        ids: ``[N]`` of all.
        document_ends: ``[D]`` int64, of all, in memory.
        counts: The sums of theirs.
        fingerprint: Of theirs, in order.

    Raises:
        UsageError: They are of different vocabularies, or only some have word boundaries.
    """

    folder = None

    def __init__(self, stores: Sequence[TokenStore]) -> None:
        self.stores = tuple(stores)
        _must_agree(self.stores)
        first = self.stores[0]
        self.vocab_size, self.tokenizer, self.has_words = first.vocab_size, first.tokenizer, first.has_words
        self.ids = JoinedArray([store.ids for store in stores])
        self._edges = np.cumsum([0, *(store.tokens for store in stores)])
        self.document_ends: Int64s = np.concatenate(
            [np.asarray(store.document_ends) + edge for store, edge in zip(stores, self._edges, strict=False)]
        )
        names = {name for store in stores for name in store.counts}
        self.counts = {name: sum(store.counts.get(name, 0) for store in stores) for name in sorted(names)}
        said = "\n".join(store.fingerprint for store in stores)
        self.fingerprint = hashlib.sha256(f"stores joined\n{said}".encode()).hexdigest()

    def __repr__(self) -> str:
        return f"JoinedStore({len(self.stores)} stores, {self.documents:,} documents, {self.tokens:,} tokens)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (JoinedStore, (self.stores,))

    @property
    def tokens(self) -> int:
        """N, the count of tokens."""
        return len(self.ids)

    @property
    def sentences(self) -> int:
        """The count of sentences."""
        return self.counts["sentences"]

    @property
    def documents(self) -> int:
        """D, the count of documents."""
        return len(self.document_ends)

    @property
    def document_hashes(self) -> NDArray[np.uint64]:
        """``[D]`` uint64 of each document's text."""
        return np.concatenate([store.document_hashes for store in self.stores])

    @property
    def folders(self) -> list[Path]:
        """The folders of all."""
        return [folder for store in self.stores for folder in store.folders]

    @property
    def plans(self) -> Path | None:
        """Where the plans of epochs may be kept: beside the first store."""
        return self.stores[0].plans

    def sentence_ends_between(self, first: int, last: int) -> Int64s:
        """As :meth:`bertkit.corpus.store.TokenStore.sentence_ends_between`."""
        found = [np.zeros(0, dtype=np.int64)]
        for store, edge in zip(self.stores, self._edges.tolist(), strict=False):
            low, high = max(first - edge, 0), min(last - edge, store.tokens)
            if low < high:
                found.append(store.sentence_ends_between(low, high) + edge)
        return np.concatenate(found)

    def word_begins(self, places: Int64s) -> NDArray[np.bool_] | None:
        """As :meth:`bertkit.corpus.store.TokenStore.word_begins`."""
        if not self.has_words:
            return None
        owner = np.searchsorted(self._edges, places, side="right") - 1
        out = np.empty(places.shape, dtype=np.bool_)
        for number in np.unique(owner):
            mine = owner == number
            out[mine] = self.stores[number].word_begins(places[mine] - self._edges[number])
        return out

    def frequencies(self) -> Int64s:
        """``[V]`` int64: how often each id stands in all of them."""
        total = np.zeros(self.vocab_size, dtype=np.int64)
        for store in self.stores:
            total += store.frequencies()
        return total

    def select(self, documents: Int64s) -> TokenStore:
        """As :meth:`bertkit.corpus.store.TokenStore.select`."""
        return select_documents(self, documents)


CorpusStore = TokenStore | JoinedStore


def store_folders(path: Path) -> list[Path]:
    """The stores that ``path`` names: itself, or those in the folder that it is, by name; none where it is something else.

    Raises:
        DataError: One of them has lost its store.json.
    """
    if is_store(path):
        return [path]
    if not path.is_dir():
        return []
    must_be_whole(path)
    children = [child for child in path.iterdir() if not child.name.startswith(".")]
    for child in children:
        must_be_whole(child)
    return sorted(child for child in children if is_store(child))


def open_stores(folders: Sequence[Path], *, checksums: bool = False) -> CorpusStore:
    """Opens stores as one corpus; each counts once, and shards must be all there. ``checksums``: every byte is checked.

    Raises:
        MissingError: A shard is missing.
        DataError: A store is damaged, or shards are of different texts.
        UsageError: They are of different vocabularies, or only some have word boundaries.
    """
    opened: dict[str, TokenStore] = {}
    for folder in folders:
        store = TokenStore.open(folder, checksums=checksums)
        if store.fingerprint in opened:
            say("store-twice", f"{folder} is the same store as {opened[store.fingerprint].folder}; it is read once.")
        opened.setdefault(store.fingerprint, store)
    stores = list(opened.values())
    _check_shards(stores)
    return stores[0] if len(stores) == 1 else JoinedStore(stores)


def _check_shards(stores: Sequence[TokenStore]) -> None:
    """Are the shards of each text all there?"""
    texts: dict[tuple[str, int], dict[int, TokenStore]] = {}
    for store in stores:
        if store.facts.get("shard"):
            number, count = store.facts["shard"]
            texts.setdefault((store.facts["whole"], count), {})[number] = store
    for (whole, count), shards in texts.items():
        missing = [number for number in range(1, count + 1) if number not in shards]
        if not missing:
            continue
        some = next(iter(shards.values()))
        for (other_whole, other_count), others in texts.items():
            if other_count == count and other_whole != whole:
                raise DataError(
                    "These shards are not of one text, tokenizer and settings.",
                    where=f"{some.folder} and {next(iter(others.values())).folder}",
                    hint="Build all shards of the text as it is now.",
                )
        numbers = ", ".join(map(str, missing[:8])) + (" and more" if len(missing) > 8 else "")
        raise MissingError(
            f"Shard {numbers} of {count} is missing." if len(missing) == 1 else f"Shards {numbers} of {count} are missing.",
            where=str(some.folder and some.folder.parent),
            hint=f"bertkit corpus build … --shard {missing[0]}/{count}",
        )


def _must_agree(stores: Sequence[TokenStore]) -> None:
    first = stores[0]
    for store in stores[1:]:
        if store.tokenizer != first.tokenizer or store.vocab_size != first.vocab_size:
            raise UsageError(
                "These token stores were made with different vocabularies, so they are no one corpus.",
                where=f"{first.folder} and {store.folder}",
                hint="Build one of them anew with the other's: bertkit corpus build … --tokenizer "
                f"{first.folder if first.folder else 'PATH'}",
            )
        if store.has_words != first.has_words:
            with_words, without = (first, store) if first.has_words else (store, first)
            raise UsageError(
                f"{with_words.folder} has the boundaries of Chinese words, and {without.folder} has not.",
                where=f"{first.folder} and {store.folder}",
                hint="Build both with the same --words.",
            )
