"""The files of a token store: their names and types, and how they are mapped and checked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.bits import packed_size
from bertkit.errors import DataError, MissingError

STORE_FORMAT = 2
"""Raised whenever the files of a store would be read otherwise."""

FACTS = "store.json"
IDS, SENTENCE_BITS, WORD_BITS = "ids.bin", "sentence_bits.bin", "word_bits.bin"
DOCUMENT_ENDS, DOCUMENT_HASHES = "document_ends.bin", "document_hashes.bin"


def id_type(vocab_size: int) -> np.dtype[Any]:
    """The dtype of ids: two bytes each where they fit."""
    return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def file_types(vocab_size: int, *, words: bool) -> dict[str, np.dtype[Any]]:
    """The files of arrays and the type of each; those of bits are bytes."""
    types = {
        IDS: id_type(vocab_size),
        SENTENCE_BITS: np.dtype("u1"),
        DOCUMENT_ENDS: np.dtype("<i8"),
        DOCUMENT_HASHES: np.dtype("<u8"),
    }
    return types | ({WORD_BITS: np.dtype("u1")} if words else {})


def file_sizes(vocab_size: int, *, words: bool, tokens: int, documents: int) -> dict[str, int]:
    """How many bytes each file of arrays has."""
    count = {IDS: tokens, SENTENCE_BITS: packed_size(tokens), WORD_BITS: packed_size(tokens)}
    return {name: kind.itemsize * count.get(name, documents) for name, kind in file_types(vocab_size, words=words).items()}


def is_store(folder: Path) -> bool:
    """Whether a folder holds a whole token store."""
    return (folder / FACTS).is_file()


def must_be_whole(folder: Path) -> None:
    """Refuses a folder that holds a store's arrays without store.json: it is neither a store nor a folder of texts.

    Raises:
        DataError: It is such a folder.
    """
    if (folder / IDS).exists() and (folder / SENTENCE_BITS).exists() and not is_store(folder):
        raise damaged(folder, "store.json is missing")


def open_arrays(folder: Path, *, checksums: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts of a store and its arrays, mapped.

    Raises:
        MissingError: There is no store.
        DataError: It is damaged, or of a format that this version does not read.
    """
    facts = read_facts(folder)
    words = WORD_BITS in facts["files"]
    counts = facts["counts"]
    sizes = file_sizes(facts["vocab_size"], words=words, tokens=counts["tokens"], documents=counts["documents"])
    arrays: dict[str, NDArray[Any]] = {}
    for name, kind in file_types(facts["vocab_size"], words=words).items():
        path, expected = folder / name, facts["files"][name]
        if not path.is_file() or not path.stat().st_size == expected["size"] == sizes[name]:
            found = f"{path.stat().st_size} bytes" if path.is_file() else "missing"
            raise damaged(folder, f"{name} is {found}, not {sizes[name]} bytes")
        if checksums and file_digest(path) != expected["sha256"]:
            raise damaged(folder, f"the bytes of {name} have changed")
        arrays[name] = np.memmap(path, dtype=kind, mode="r") if sizes[name] else np.zeros(0, dtype=kind)
    return facts, arrays


def read_facts(folder: Path) -> dict[str, Any]:
    """What store.json says, its fields checked.

    Raises:
        MissingError: There is none.
        DataError: It is damaged, or of another format.
    """
    path = folder / FACTS
    if not path.is_file():
        raise MissingError(
            f"{folder} holds no token store.",
            where=str(folder),
            hint="`bertkit pretrain --corpus FILE` builds the one of a text.",
        )
    try:
        facts = json.loads(path.read_bytes())
        known = facts["format"]
        if known == STORE_FORMAT and not _whole(facts):
            raise KeyError("a field")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(folder, "store.json is damaged") from None
    if known != STORE_FORMAT:
        raise damaged(folder, f"it is of format {known}, and this bertkit reads format {STORE_FORMAT}")
    return dict(facts)


def _whole(facts: dict[str, Any]) -> bool:
    types = file_types(2, words=WORD_BITS in facts["files"])
    sizes = [type(facts["files"][name]["size"]) is int and type(facts["files"][name]["sha256"]) is str for name in types]
    counts = [type(facts["counts"][name]) is int for name in ("documents", "sentences", "tokens")]
    names = [type(facts[name]) is str for name in ("fingerprint", "tokenizer")]
    return all(sizes) and all(counts) and all(names) and type(facts["vocab_size"]) is int


def damaged(folder: Path, why: str) -> DataError:
    """The error for a store that cannot be used."""
    return DataError(
        f"The token store cannot be used: {why}.", where=str(folder), hint="Remove the folder; the next build makes it anew."
    )


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
