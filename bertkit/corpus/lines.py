"""Bytes of a file in, lines of characters out, in blocks of bounded size; a bad byte is located exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import DataError, MissingError
from bertkit.foreign_bytes import looks_like

BLOCK = 1 << 20  # bytes read at once
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some whole lines of a file.

    Attributes:
        lines: The lines without their ends.
        first: The number of the first of them, from 1.
        bytes: Bytes that they take in the file, ends included.
        replacements: U+FFFD that stand for bytes which are not UTF-8.
    """

    lines: list[str]
    first: int
    bytes: int
    replacements: int


def read_spans(path: Path, *, replace: bool, block: int = BLOCK) -> Iterator[Span]:
    """Reads a UTF-8 file; a line ends at ``\\n``, ``\\r\\n`` or ``\\r``, and a byte order mark at its start goes.

    Memory holds one block and one line, whichever is the longer.

    Raises:
        MissingError: The file cannot be opened.
        DataError: A byte is not UTF-8 and ``replace`` is false.
    """
    offset, number = 0, 1
    for raw in _whole_lines(path, block):
        text, replacements = _decode(raw, path, offset, number, replace)
        text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # behind the last line end there is no further line
        yield Span(lines=lines, first=number, bytes=len(raw), replacements=replacements)
        offset += len(raw)
        number += len(lines)


def _whole_lines(path: Path, block: int) -> Iterator[bytes]:
    """The file in pieces that end at line ends (the last one wherever it ends)."""
    try:
        with path.open("rb") as file:
            kept: list[bytes] = []  # joined once a line end is there: a line of many blocks must not cost its square
            while data := file.read(block):
                if data.endswith(b"\r"):
                    data += file.read(1)  # its \n may follow
                    if data.endswith(b"\r"):  # \r\r: the same question again, for the next round
                        data += file.read(block)
                cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
                if cut:
                    yield b"".join([*kept, data[:cut]])
                    kept = [data[cut:]]
                else:
                    kept.append(data)
            if rest := b"".join(kept):
                yield rest
    except OSError as error:
        raise MissingError(f"{path} cannot be read: {error.strerror}.", where=str(path)) from error


def _decode(raw: bytes, path: Path, offset: int, number: int, replace: bool) -> tuple[str, int]:
    skipped = len(BOM) if offset == 0 and raw.startswith(BOM) else 0
    body = raw[skipped:]
    try:
        return body.decode("utf-8"), 0
    except UnicodeDecodeError as error:
        if replace:
            text = body.decode("utf-8", errors="replace")
            return text, text.count("\ufffd") - body.count(b"\xef\xbf\xbd")
        before = body[: error.start]
        line = number + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
        bad = body[error.start]
        raise DataError(
            "The text is not UTF-8.",
            where=f"{path}, line {line}, byte offset {offset + skipped + error.start}, byte 0x{bad:02X}",
            hint=looks_like(raw) or "Convert the file to UTF-8, or give --encoding-errors replace.",
        ) from None
