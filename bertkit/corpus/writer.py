"""The writing side of a token store: arrays appended to files as they come, each flushed to disk and summed at the end."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.store import FILES, STORE_FORMAT, id_type


class StoreWriter:
    """Writes one store into a new folder; ``finish`` writes store.json last, so that a store without it is none."""

    def __init__(self, folder: Path, vocab_size: int) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.vocab_size = vocab_size
        self.tokens = self.sentences = self.documents = 0
        self._types = dict(zip(FILES, (id_type(vocab_size), np.dtype("<i8"), np.dtype("<i8")), strict=True))
        self._sums = {name: hashlib.sha256() for name in FILES}
        self._files = {name: (folder / name).open("wb") for name in FILES}

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()

    def add(self, ids: NDArray[Any], sentence_ends: NDArray[np.int64], document_ends: NDArray[np.int64]) -> None:
        """Appends ids and the ends among them (offsets in the whole store)."""
        for name, array in zip(FILES, (ids, sentence_ends, document_ends), strict=True):
            data = np.ascontiguousarray(array, dtype=self._types[name]).data.cast("B") if len(array) else b""
            self._files[name].write(data)
            self._sums[name].update(data)
        self.tokens += len(ids)
        self.sentences += len(sentence_ends)
        self.documents += len(document_ends)

    def finish(self, fingerprint: str, **counts: int) -> None:
        """Flushes the files and writes store.json."""
        files = {}
        for name, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            files[name] = {"size": file.tell(), "sha256": self._sums[name].hexdigest()}
        facts = {
            "format": STORE_FORMAT,
            "fingerprint": fingerprint,
            "vocab_size": self.vocab_size,
            "counts": {"documents": self.documents, "sentences": self.sentences, "tokens": self.tokens, **counts},
            "files": files,
        }
        write_json(self.folder / "store.json", facts)
        flush_folder(self.folder)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes and flushes a JSON file."""
    with path.open("wb") as file:
        file.write(json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


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
