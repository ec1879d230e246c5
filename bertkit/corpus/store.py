"""TokenStore: a corpus as ids, sentence ends and document ends, memory-mapped from a folder or held in memory.

ids.bin              uint16 (vocabularies up to 65 536) or uint32, little-endian, [N]
sentence_bits.bin    one bit a token, eight to a byte, the first in the lowest: a sentence ends behind it
word_bits.bin        one bit a token: a word begins with it; only where words were found by a list or a segmenter
document_ends.bin    int64 [D], token offsets, strictly rising, the last one N, each a sentence's end too
document_hashes.bin  uint64 [D], of the text of each document (bertkit.corpus.hashes)
vocab.txt, tokenizer_config.json   the tokenizer that made it
store.json           format, fingerprints, counts, and each array's size and SHA-256; written last

2.13 bytes a token and 16 a document; 2.25 with words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus import bits
from bertkit.corpus.hashes import document_hash
from bertkit.corpus.sentences import split_sentences
from bertkit.corpus.store_files import DOCUMENT_ENDS, DOCUMENT_HASHES, IDS, SENTENCE_BITS, WORD_BITS, id_type, open_arrays
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError

_BLOCK = 1 << 20  # ids or documents looked at in one go

Int64s = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class TokenStore:
    """A corpus in ids.

    Attributes:
        folder: Where the files are; None for a store in memory.
        ids: ``[N]`` uint16 or uint32, every token of every sentence, end to end, no special tokens.
        document_ends: ``[D]`` int64, how many tokens end with each document; no document is empty.
        document_hashes: ``[D]`` uint64 of each document's text.
        vocab_size: V; every id is below it.
        fingerprint: Hex digest of what the store was made from; equal fingerprints are equal stores.
        tokenizer: The fingerprint of the tokenizer that made it.
        counts: What the build counted, by name (:class:`bertkit.corpus.report.BuildReport`).
        facts: All of store.json.
    """

    def __init__(
        self,
        ids: NDArray[Any],
        sentence_bits: NDArray[np.uint8],
        document_ends: Int64s,
        document_hashes: Hashes,
        *,
        vocab_size: int,
        fingerprint: str,
        tokenizer: str = "",
        counts: dict[str, int],
        word_bits: NDArray[np.uint8] | None = None,
        folder: Path | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        self.ids = ids
        self.document_ends = document_ends
        self.document_hashes = document_hashes
        self.vocab_size = vocab_size
        self.fingerprint = fingerprint
        self.tokenizer = tokenizer
        self.counts = dict(counts)
        self.folder = folder
        self.facts = facts or {}
        self._sentence_bits = sentence_bits
        self._word_bits = word_bits

    def __repr__(self) -> str:
        return f"TokenStore({self.documents:,} documents, {self.sentences:,} sentences, {self.tokens:,} tokens)"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:  # a worker maps the files itself
            return (TokenStore.open, (self.folder,))
        arrays = (self.ids, self._sentence_bits, self.document_ends, self.document_hashes)
        kept = {"vocab_size": self.vocab_size, "fingerprint": self.fingerprint, "tokenizer": self.tokenizer}
        return (_rebuild, (arrays, {**kept, "counts": self.counts, "word_bits": self._word_bits}))

    @property
    def tokens(self) -> int:
        """N, the count of tokens."""
        return int(self.ids.shape[0])

    @property
    def sentences(self) -> int:
        """The count of sentences."""
        return self.counts["sentences"]

    @property
    def documents(self) -> int:
        """D, the count of documents."""
        return int(self.document_ends.shape[0])

    @property
    def folders(self) -> list[Path]:
        """The folder, in a list; of a store in memory an empty one."""
        return [] if self.folder is None else [self.folder]

    @property
    def plans(self) -> Path | None:
        """Where the plans of epochs may be kept: beside the store; None for one in memory."""
        return None if self.folder is None else self.folder / "plans"

    @property
    def has_words(self) -> bool:
        """Whether word boundaries are stored; without them the pieces' ``##`` decides."""
        return self._word_bits is not None

    def sentence_ends_between(self, first: int, last: int) -> Int64s:
        """int64: how many tokens of the store end with each sentence that ends behind token ``first`` and up to ``last``."""
        return bits.ends_between(self._sentence_bits, first, last)

    def word_begins(self, places: Int64s) -> NDArray[np.bool_] | None:
        """Does a word begin with the token at each place? None where the store has no word boundaries."""
        return None if self._word_bits is None else bits.at(self._word_bits, places)

    def frequencies(self) -> Int64s:
        """``[V]`` int64: how often each id stands in the store."""
        total = np.zeros(self.vocab_size, dtype=np.int64)
        for start in range(0, self.tokens, _BLOCK):
            total += np.bincount(self.ids[start : start + _BLOCK], minlength=self.vocab_size)
        return total

    def select(self, documents: Int64s) -> TokenStore:
        """A store in memory of some documents (indices, in their order); its fingerprint is of this one's and of them.

        Its counts are ``documents``, ``sentences`` and ``tokens``.
        """
        return select_documents(self, documents)

    @staticmethod
    def from_arrays(
        ids: NDArray[Any] | Sequence[int],
        sentence_ends: Int64s | Sequence[int],
        document_ends: Int64s | Sequence[int],
        *,
        vocab_size: int,
        document_hashes: Hashes | Sequence[int] | None = None,
        word_begins: NDArray[np.bool_] | Sequence[bool] | None = None,
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
        for name, ends in (("sentence ends", sentences), ("document ends", documents)):
            check_ends(ends, len(narrow), name, "the arrays")
        if not np.isin(documents, sentences).all():
            raise DataError("A document ends inside a sentence.", where="the arrays")
        flags = np.zeros(len(narrow), dtype=np.bool_)
        flags[sentences - 1] = True
        words = None if word_begins is None else bits.packed(np.asarray(word_begins, dtype=np.bool_))
        hashes = np.arange(len(documents)) if document_hashes is None else document_hashes
        digest = hashlib.sha256(f"arrays {vocab_size} {len(narrow)} {len(sentences)}\n".encode())
        for array in (narrow, sentences.astype("<i8"), documents.astype("<i8"), *([words] if words is not None else [])):
            digest.update(array.tobytes())
        counts = {"documents": len(documents), "sentences": len(sentences), "tokens": len(narrow)}
        return TokenStore(
            narrow,
            bits.packed(flags),
            documents,
            np.asarray(hashes, dtype=np.uint64),
            vocab_size=vocab_size,
            fingerprint=digest.hexdigest(),
            counts=counts,
            word_bits=words,
        )

    @staticmethod
    def from_documents(documents: Iterable[Sequence[str]], wordpiece: WordPiece) -> TokenStore:
        """A store in memory of documents given as their lines, each cut into sentences as the build does; for small texts."""
        ids: list[int] = []
        sentence_ends: list[int] = []
        document_ends: list[int] = []
        hashes: list[int] = []
        for document in documents:
            for sentence in wordpiece.encode([s for line in document for s in split_sentences(line)]):
                if len(sentence):
                    ids += sentence.tolist()
                    sentence_ends.append(len(ids))
            if len(ids) > (document_ends[-1] if document_ends else 0):
                document_ends.append(len(ids))
                hashes.append(document_hash(document))
        store = TokenStore.from_arrays(ids, sentence_ends, document_ends, vocab_size=wordpiece.size, document_hashes=hashes)
        store.tokenizer = wordpiece.fingerprint
        return store

    @staticmethod
    def open(folder: Path, *, checksums: bool = False) -> TokenStore:
        """Maps a store's files, checking their sizes always, and every byte and end where ``checksums`` is set.

        Raises:
            MissingError: There is no store.
            DataError: It is damaged, or of a format that this version does not read.
        """
        facts, arrays = open_arrays(folder, checksums=checksums)
        store = TokenStore(
            arrays[IDS],
            arrays[SENTENCE_BITS],
            arrays[DOCUMENT_ENDS],
            arrays[DOCUMENT_HASHES],
            vocab_size=facts["vocab_size"],
            fingerprint=facts["fingerprint"],
            tokenizer=facts["tokenizer"],
            counts=facts["counts"],
            word_bits=arrays.get(WORD_BITS),
            folder=folder.absolute(),
            facts=facts,
        )
        check_ends(store.document_ends, store.tokens, "document ends", str(folder), all_of_them=checksums)
        if checksums:
            store._check_documents()
        return store

    def _check_documents(self) -> None:
        for start in range(0, self.documents, _BLOCK):
            if not bits.at(self._sentence_bits, np.asarray(self.document_ends[start : start + _BLOCK]) - 1).all():
                raise DataError("A document ends inside a sentence.", where=str(self.folder))


def _rebuild(arrays: tuple[Any, ...], kept: dict[str, Any]) -> TokenStore:
    return TokenStore(*arrays, **kept)


class Readable(Protocol):
    """What is asked of a store, or of several as one, to take documents out of it."""

    @property
    def ids(self) -> Any: ...  # noqa: D102
    @property
    def document_ends(self) -> Int64s: ...  # noqa: D102
    @property
    def document_hashes(self) -> Hashes: ...  # noqa: D102

    vocab_size: int
    fingerprint: str
    tokenizer: str

    def sentence_ends_between(self, first: int, last: int) -> Int64s: ...  # noqa: D102
    def word_begins(self, places: Int64s) -> NDArray[np.bool_] | None: ...  # noqa: D102


def select_documents(store: Readable, documents: Int64s) -> TokenStore:
    """See :meth:`TokenStore.select`."""
    chosen = np.asarray(documents, dtype=np.int64)
    ends = np.asarray(store.document_ends[chosen])
    starts = np.where(chosen > 0, np.asarray(store.document_ends[np.maximum(chosen - 1, 0)]), 0)
    spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    ids = np.concatenate([store.ids[:0], *(store.ids[a:b] for a, b in spans)])
    sentences = np.zeros(len(ids), dtype=np.bool_)
    begins = store.word_begins(np.zeros(0, dtype=np.int64))
    words = None if begins is None else [begins]
    place = 0
    for first, last in spans:
        sentences[store.sentence_ends_between(first, last) - first + place - 1] = True
        place += last - first
        if words is not None:
            words += [_begins(store, at, min(at + _BLOCK, last)) for at in range(first, last, _BLOCK)]
    digest = hashlib.sha256(f"documents of {store.fingerprint}\n".encode())
    digest.update(chosen.astype("<i8").tobytes())
    return TokenStore(
        ids,
        bits.packed(sentences),
        np.cumsum(ends - starts),
        np.asarray(store.document_hashes[chosen]),
        vocab_size=store.vocab_size,
        fingerprint=digest.hexdigest(),
        tokenizer=store.tokenizer,
        counts={"documents": len(chosen), "sentences": int(sentences.sum()), "tokens": len(ids)},
        word_bits=None if words is None else bits.packed(np.concatenate(words)),
    )


def _begins(store: Readable, first: int, last: int) -> NDArray[np.bool_]:
    begins = store.word_begins(np.arange(first, last))
    assert begins is not None, "this store keeps where words begin"
    return begins


def check_ends(ends: Int64s, tokens: int, name: str, where: str, *, all_of_them: bool = True) -> None:
    """Do the ends rise, and end with the last token? The last one only, or all of them.

    Raises:
        DataError: They do not.
    """
    last = int(ends[-1]) if len(ends) else 0
    if last != tokens:
        raise DataError(f"The {name} stop at {last}, but there are {tokens} tokens.", where=where)
    for start in range(0, len(ends) if all_of_them else 0, _BLOCK):
        some = np.asarray(ends[max(0, start - 1) : start + _BLOCK])
        if some[0] < 1 or bool((np.diff(some) < 1).any()):
            raise DataError(f"The {name} do not rise from one to the next.", where=where)
