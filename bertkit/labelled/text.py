"""A whole task file as text: UTF-8 with its faults located, a byte order mark taken off, lines as bertkit counts them."""

from __future__ import annotations

import re
from pathlib import Path

from bertkit.errors import DataError, MissingError

_ENDS = re.compile("\r\n|\n|\r")


def read_text(path: Path) -> str:
    """The file's text without its byte order mark; line ends stay as they are.

    Raises:
        MissingError: There is no such file.
        DataError: It is a folder or cannot be read, or a byte is no UTF-8: file, line and byte offset are named.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise MissingError("There is no such file.", where=str(path), hint="Check the path.") from None
    except OSError as error:
        raise DataError(f"The file cannot be read: {error.strerror}.", where=str(path)) from error
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        # latin-1 keeps one character a byte, so that lines are counted in what could not be decoded.
        line = len(_ENDS.findall(raw[: error.start].decode("latin-1"))) + 1
        raise DataError(
            f"Byte 0x{raw[error.start]:02X} is no UTF-8.",
            where=f"{path}, line {line}, byte offset {error.start}",
            hint="Convert the file to UTF-8, say with iconv.",
        ) from None


def text_lines(text: str) -> list[str]:
    """Lines without their ends; a line ends at ``\\n``, ``\\r\\n`` or ``\\r`` and nowhere else (not at U+2028)."""
    lines = _ENDS.split(text)
    return lines[:-1] if lines[-1] == "" else lines
