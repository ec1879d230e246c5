"""TokenStore: a corpus as ids, sentence ends and document ends, memory-mapped from a folder or held in memory.

ids.bin            uint16 (vocabularies up to 65 536) or uint32, little-endian, [N]
sentence_ends.bin  int64 [#sentences], token offsets, strictly rising, the last one N
document_ends.bin  int64 [#documents], token offsets, each one a sentence end too
store.json         format, fingerprint, counts, and each file's size and SHA-256; written last
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.sentences import split_sentences
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError, MissingError

STORE_FORMAT = 1
"""Raised whenever the files of a store would be read otherwise."""

FILES = ("ids.bin", "sentence_ends.bin", "document_ends.bin")
_BLOCK = 1 << 22  # ids looked at in one go

Int64s = NDArray[np.int64]


def id_type(vocab_size: int) -> np.dtype[Any]:
    """The dtype of ids: two bytes each where they fit."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


class TokenStore:
    """A corpus in ids.

    Attributes:
        folder: Where the files are; None for a store in memory.
        ids: ``[N]`` uint16 or uint32, every token of every sentence, end to end, no special tokens.
        sentence_ends: ``[#sentences]`` int64, how many tokens end with each sentence; no sentence is empty.
        document_ends: ``[#documents]`` int64, how many tokens end with each document; no document is empty.
        vocab_size: V; every id is below it.
        fingerprint: Hex digest of what the store was made from; equal fingerprints are equal stores.
        counts: What the build counted, by name.
    """

    def __init__(
        self,
        ids: NDArray[Any],
        sentence_ends: Int64s,
        document_ends: Int64s,
        *,
        vocab_size: int,
        fingerprint: str,
        counts: dict[str, int] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.ids = ids
        self.sentence_ends = sentence_ends
        self.document_ends = document_ends
        self.vocab_size = vocab_size
        self.fingerprint = fingerprint
        self.counts = dict(counts or {})
        self.folder = folder

    def __repr__(self) -> str:
        return f"TokenStore({self.documents:,} documents, {self.sentences:,} sentences, {self.tokens:,} tokens)"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:  # a worker maps the files itself
            return (TokenStore.open, (self.folder,))
        return (_rebuild, (self.ids, self.sentence_ends, self.document_ends, self.vocab_size, self.fingerprint, self.counts))

    @property
    def tokens(self) -> int:
        """N, the count of tokens."""
        return int(self.ids.shape[0])

    @property
    def sentences(self) -> int:
        """The count of sentences."""
        return int(self.sentence_ends.shape[0])

    @property
    def documents(self) -> int:
        """The count of documents."""
        return int(self.document_ends.shape[0])

    @cached_property
    def document_sentences(self) -> Int64s:
        """``[#documents + 1]`` int64: document d holds the sentences from entry d up to entry d + 1."""
        bounds = np.zeros(self.documents + 1, dtype=np.int64)
        bounds[1:] = np.searchsorted(self.sentence_ends, self.document_ends, side="left") + 1
        return bounds

    def sentence_ends_between(self, first: int, last: int) -> Int64s:
        """int64: how many tokens of the store end with each sentence that ends behind token ``first`` and up to ``last``."""
        low, high = np.searchsorted(self.sentence_ends, [first, last], side="right")
        return np.asarray(self.sentence_ends[low:high])

    def word_begins(self, places: Int64s) -> NDArray[np.bool_] | None:
        """Does a word begin at each place? None: word boundaries are not kept."""
        return None

    def frequencies(self) -> Int64s:
        """``[V]`` int64: how often each id stands in the store."""
        total = np.zeros(self.vocab_size, dtype=np.int64)
        for start in range(0, self.tokens, _BLOCK):
            total += np.bincount(self.ids[start : start + _BLOCK], minlength=self.vocab_size)
        return total

    @staticmethod
    def from_arrays(
        ids: NDArray[Any] | Sequence[int],
        sentence_ends: Int64s | Sequence[int],
        document_ends: Int64s | Sequence[int],
        *,
        vocab_size: int,
    ) -> TokenStore:
        """A store in memory; its fingerprint is that of its contents.

        Raises:
            DataError: The ends do not rise, do not end with the ids, or a document ends inside a sentence; an id is out of range.
        """
        wide = np.asarray(ids, dtype=np.int64)
        if wide.size and (wide.min() < 0 or wide.max() >= vocab_size):
            raise DataError(f"Ids reach from {wide.min()} to {wide.max()}, but the vocabulary has {vocab_size} entries.")
        narrow = wide.astype(id_type(vocab_size))
        sentences, documents = np.asarray(sentence_ends, dtype=np.int64), np.asarray(document_ends, dtype=np.int64)
        check_ends(sentences, documents, narrow.shape[0], "the arrays")
        digest = hashlib.sha256(f"arrays {vocab_size} {narrow.shape[0]} {sentences.shape[0]}\n".encode())
        for array in (narrow, sentences.astype("<i8"), documents.astype("<i8")):
            digest.update(array.tobytes())
        counts = {"documents": len(documents), "sentences": len(sentences), "tokens": len(narrow)}
        return TokenStore(narrow, sentences, documents, vocab_size=vocab_size, fingerprint=digest.hexdigest(), counts=counts)

    @staticmethod
    def from_documents(documents: Iterable[Sequence[str]], wordpiece: WordPiece) -> TokenStore:
        """A store in memory of documents given as their lines, each cut into sentences as the build does; for small texts."""
        ids: list[int] = []
        sentence_ends: list[int] = []
        document_ends: list[int] = []
        for document in documents:
            for sentence in wordpiece.encode([s for line in document for s in split_sentences(line)]):
                if len(sentence):
                    ids += sentence.tolist()
                    sentence_ends.append(len(ids))
            if len(ids) > (document_ends[-1] if document_ends else 0):
                document_ends.append(len(ids))
        return TokenStore.from_arrays(ids, sentence_ends, document_ends, vocab_size=wordpiece.size)

    @staticmethod
    def open(folder: Path, *, checksums: bool = False) -> TokenStore:
        """Maps a store's files, checking sizes and ends always, and every byte where ``checksums`` is set.

        Raises:
            MissingError: There is no store.
            DataError: It is damaged, or of a format that this version does not read.
        """
        facts = _read_facts(folder)
        vocab_size, dtype = facts["vocab_size"], id_type(facts["vocab_size"])
        arrays = []
        for name, kind in zip(FILES, (dtype, np.dtype("<i8"), np.dtype("<i8")), strict=True):
            path, expected = folder / name, facts["files"][name]
            if not path.is_file() or path.stat().st_size != expected["size"] or expected["size"] % kind.itemsize:
                found = f"{path.stat().st_size} bytes" if path.is_file() else "missing"
                raise _damaged(folder, f"{name} is {found}, not {expected['size']} bytes")
            if checksums and file_digest(path) != expected["sha256"]:
                raise _damaged(folder, f"the bytes of {name} have changed")
            arrays.append(np.memmap(path, dtype=kind, mode="r") if expected["size"] else np.zeros(0, dtype=kind))
        ids, sentence_ends, document_ends = arrays
        check_ends(sentence_ends, document_ends, ids.shape[0], str(folder), all_of_them=checksums)
        return TokenStore(
            ids,
            sentence_ends,
            document_ends,
            vocab_size=vocab_size,
            fingerprint=facts["fingerprint"],
            counts=facts["counts"],
            folder=folder.absolute(),
        )


def _rebuild(
    ids: NDArray[Any], sentence_ends: Int64s, document_ends: Int64s, vocab_size: int, fingerprint: str, counts: dict[str, int]
) -> TokenStore:
    return TokenStore(ids, sentence_ends, document_ends, vocab_size=vocab_size, fingerprint=fingerprint, counts=counts)


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / "store.json"
    if not path.is_file():
        raise MissingError(
            f"{folder} holds no token store.",
            where=str(folder),
            hint="`bertkit pretrain --corpus FILE` builds the one of a text.",
        )
    try:
        facts = json.loads(path.read_bytes())
        known = facts["format"]
        if known == STORE_FORMAT:
            sizes = [type(facts["files"][name]["size"]) is int and type(facts["files"][name]["sha256"]) is str for name in FILES]
            whole = type(facts["vocab_size"]) is int and type(facts["fingerprint"]) is str and type(facts["counts"]) is dict
            if not (whole and all(sizes)):
                raise KeyError("a field")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(folder, "store.json is damaged") from None
    if known != STORE_FORMAT:
        raise _damaged(folder, f"it is of format {known}, and this bertkit reads format {STORE_FORMAT}")
    return dict(facts)


def _damaged(folder: Path, why: str) -> DataError:
    return DataError(
        f"The token store cannot be used: {why}.", where=str(folder), hint="Remove the folder; the next build makes it anew."
    )


def check_ends(sentence_ends: Int64s, document_ends: Int64s, tokens: int, where: str, *, all_of_them: bool = True) -> None:
    """Do the ends rise, end with the last token, and documents end with sentences? The last ones only, or all of them.

    Raises:
        DataError: They do not.
    """
    for name, ends in (("sentence ends", sentence_ends), ("document ends", document_ends)):
        last = int(ends[-1]) if len(ends) else 0
        if last != tokens:
            raise DataError(f"The {name} stop at {last}, but there are {tokens} tokens.", where=where)
        if all_of_them and len(ends) and (ends[0] < 1 or bool((np.diff(ends) < 1).any())):
            raise DataError(f"The {name} do not rise from one to the next.", where=where)
    if all_of_them and not np.isin(document_ends, sentence_ends).all():
        raise DataError("A document ends inside a sentence.", where=where)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
