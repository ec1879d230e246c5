"""Task files as text: UTF-8, a byte order mark taken away, a bad byte named by line and offset; written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bertkit.errors import DataError, MissingError
from bertkit.foreign_bytes import looks_like

_BOM = b"\xef\xbb\xbf"


def read_bytes(path: Path) -> bytes:
    """The file's bytes without a byte order mark.

    Raises:
        MissingError: It is not there, or no file (exit 4).
        DataError: It cannot be read (exit 3).
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    return raw.removeprefix(_BOM)


def _unreadable(path: Path, error: OSError) -> MissingError | DataError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingError("There is no such file.", where=str(path), hint="Check the path.")
    return DataError(f"The file cannot be read: {error.strerror}.", where=str(path))


def read_utf8(path: Path) -> str:
    """The file's text, letter for letter, without a byte order mark.

    Raises:
        MissingError: It is not there (exit 4).
        DataError: It is not UTF-8 (exit 3); the line, the offset in the file and the byte are named.
    """
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + path.stat().st_size - len(raw)
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"Byte 0x{raw[error.start]:02X} is not UTF-8.",
            where=f"{path}, line {line}, byte offset {at}",
            hint=looks_like(raw) or f"Convert the file first, say `iconv -f ISO-8859-1 -t UTF-8 {path.name}`.",
        ) from error


def read_lines(path: Path, *, end: str = "\n") -> Iterator[str]:
    r"""The file's lines with their ends, one after the other: a file of any length takes the memory of a line.

    Args:
        path: The file.
        end: ``\n`` alone ends a line or, where it is empty, ``\r`` and ``\r\n`` do too.

    Raises:
        MissingError, DataError: As :func:`read_utf8`, when the reading comes there.
    """
    try:
        with path.open(encoding="utf-8-sig", newline=end) as file:
            yield from file
    except UnicodeDecodeError:
        read_utf8(path)  # which names the byte
        raise
    except OSError as error:
        raise _unreadable(path, error) from error


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A UTF-8 file to write into, which gets its name when all of it is there."""
    unfinished = path.with_name(path.name + ".tmp")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    unfinished.replace(path)


def no_character(text: str) -> str | None:
    """What in a text of JSON's is no character and cannot be written, in words: half a surrogate pair; None where nothing is."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            return f"half a surrogate pair (U+{ord(text[error.start]):04X}), which is no character"
    return None


def lines_of(text: str) -> list[str]:
    r"""Lines, cut at ``\n`` alone (a ``\r`` before it goes): U+2028 and the like are characters of a text."""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
