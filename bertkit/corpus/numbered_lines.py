"""A list of words in a file: its lines, each with its number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertkit.errors import DataError, MissingError
from bertkit.foreign_bytes import looks_like


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file that are not blank, each with its number from 1; a byte order mark goes.

    Raises:
        MissingError: The file cannot be read.
        DataError: A byte is not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise MissingError(f"The word list {path} cannot be read: {error.strerror}.", where=str(path)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(
            "The word list is not UTF-8.",
            where=f"{path}, line {line}, byte offset {error.start}, byte 0x{raw[error.start]:02X}",
            hint=looks_like(raw) or "Convert the file to UTF-8.",
        ) from None
    for number, row in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        if row.strip():
            yield number, row.strip()
