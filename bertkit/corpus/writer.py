"""The writing side of a token store: arrays appended to files as they come; it can go back to an earlier length.

What is on disk is a function of (tokens, documents) and of what was added, never of the pieces in which it came. So a
build that was killed goes on from the last lengths that it noted, and the files end as if nothing had happened.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus import bits
from bertkit.corpus.store_files import (
    DOCUMENT_ENDS,
    DOCUMENT_HASHES,
    FACTS,
    IDS,
    SENTENCE_BITS,
    STORE_FORMAT,
    WORD_BITS,
    file_digest,
    file_sizes,
    file_types,
)
from bertkit.errors import DataError

Bools = NDArray[np.bool_]


class StoreWriter:
    """Writes one store into a folder; ``finish`` writes store.json last, so that a store without it is none.

    Args:
        folder: Made where it is not there.
        vocab_size: V.
        words: Word boundaries are stored too.
        tokens: Of the files that are there already, go on behind so many tokens …
        documents: … and so many documents; what stands behind them goes.

    Raises:
        DataError: The files that are there are shorter than that.
    """

    def __init__(self, folder: Path, vocab_size: int, *, words: bool = False, tokens: int = 0, documents: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FACTS).unlink(missing_ok=True)
        self.folder = folder
        self.vocab_size = vocab_size
        self.tokens, self.documents = tokens, documents
        self._types = file_types(vocab_size, words=words)
        self._words = words
        self._files: dict[str, BinaryIO] = {}
        self._waiting: dict[str, Bools] = {}  # bits that do not fill a byte yet
        try:
            for name in self._types:
                (folder / name).open("ab").close()
                self._files[name] = (folder / name).open("r+b")
            self._check_lengths()
            self.rewind(tokens, documents)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()

    def add(
        self,
        ids: NDArray[Any],
        sentence_ends: Bools,
        document_ends: NDArray[np.int64],
        document_hashes: NDArray[np.uint64],
        word_begins: Bools | None = None,
    ) -> None:
        """Appends ids, their bits, and the documents that end among them (offsets in the whole store)."""
        for name, array in ((IDS, ids), (DOCUMENT_ENDS, document_ends), (DOCUMENT_HASHES, document_hashes)):
            if len(array):
                self._files[name].write(np.ascontiguousarray(array, dtype=self._types[name]).data.cast("B"))
        self._add_bits(SENTENCE_BITS, sentence_ends)
        if self._words:
            assert word_begins is not None
            self._add_bits(WORD_BITS, word_begins)
        self.tokens += len(ids)
        self.documents += len(document_ends)

    def _add_bits(self, name: str, new: Bools) -> None:
        waiting = np.concatenate([self._waiting[name], new])
        whole = len(waiting) // 8 * 8
        self._files[name].write(bits.packed(waiting[:whole]).tobytes())
        self._waiting[name] = waiting[whole:]

    def rewind(self, tokens: int, documents: int) -> None:
        """Goes back to where the store had so many tokens and documents."""
        self._settle()
        self.tokens, self.documents = tokens, documents
        for name, size in self._sizes().items():
            file = self._files[name]
            if file.seek(0, os.SEEK_END) > size:
                file.truncate(size)
            if name in (SENTENCE_BITS, WORD_BITS):
                size = tokens >> 3  # the last byte, where it is not full, stays until it is written over: a kill may come first
                file.seek(size)
                self._waiting[name] = bits.between(np.frombuffer(file.read(1), dtype=np.uint8), 0, tokens & 7)
            file.seek(size)

    def sync(self) -> None:
        """Puts everything on disk: from here another writer can go on."""
        self._settle()
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())

    def _settle(self) -> None:
        """Writes the bits of the last byte without going on behind it."""
        for name, waiting in self._waiting.items():
            file = self._files[name]
            place = file.tell()
            file.write(bits.packed(waiting).tobytes())
            file.seek(place)

    def finish(self, *, fingerprint: str, tokenizer: str, counts: dict[str, int], **more: Any) -> None:
        """Flushes the files, sums them and writes store.json."""
        self.sync()
        sizes = self._sizes()
        facts = {
            "format": STORE_FORMAT,
            "fingerprint": fingerprint,
            "tokenizer": tokenizer,
            "vocab_size": self.vocab_size,
            "counts": {**counts, "documents": self.documents, "tokens": self.tokens},
            **more,
            "files": {name: {"size": sizes[name], "sha256": file_digest(self.folder / name)} for name in self._types},
        }
        write_json(self.folder / FACTS, facts)
        flush_folder(self.folder)

    def _sizes(self) -> dict[str, int]:
        return file_sizes(self.vocab_size, words=self._words, tokens=self.tokens, documents=self.documents)

    def _check_lengths(self) -> None:
        for name, size in self._sizes().items():
            if (self.folder / name).stat().st_size < size:
                raise DataError(f"{name} should have {size:,} bytes and has fewer.", where=str(self.folder))


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes a JSON file under another name, flushes it and renames it: it is whole or it is not there."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("wb") as file:
        file.write(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace") + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def flush_folder(folder: Path) -> None:
    """Flushes a folder's list of names, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # not on Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
