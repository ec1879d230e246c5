"""Bytes of a file in, lines of characters out, in blocks of bounded size; a bad byte is located exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertkit.corpus.unpacked import Unpacked
from bertkit.errors import DataError
from bertkit.foreign_bytes import looks_like

BLOCK = 1 << 20  # bytes read at once
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some whole lines of a file.

    Attributes:
        lines: The lines without their ends; None where a format marks that a document ends.
        first: The number of the first of them, from 1.
        bytes: Bytes of text that they take, ends included.
        taken: Bytes of the source, as it is stored, gone through with them.
        replacements: U+FFFD that stand for bytes which are not UTF-8.
        numbers: The number of each line's line or record in the source, where it is not ``first + index``.
    """

    lines: Sequence[str | None]
    first: int
    bytes: int
    taken: int
    replacements: int = 0
    numbers: Sequence[int] | None = None

    def number(self, index: int) -> int:
        """The number in the source, from 1, of the line or record of ``lines[index]``."""
        return self.first + index if self.numbers is None else self.numbers[index]


def read_spans(stream: Unpacked, *, replace: bool, block: int = BLOCK) -> Iterator[Span]:
    """Reads UTF-8 text; a line ends at ``\\n``, ``\\r\\n`` or ``\\r``, and a byte order mark at its start goes.

    Memory holds one block and one line, whichever is the longer.

    Raises:
        DataError: A byte is not UTF-8 and ``replace`` is false, or packed data are damaged.
    """
    offset, number, taken = 0, 1, 0
    for raw in _whole_lines(stream, block):
        text, replacements = _decode(raw, stream, offset, number, replace)
        lines = split_lines(text)
        if not lines[-1]:
            lines.pop()  # behind the last line end there is no further line
        more, taken = stream.taken - taken, stream.taken
        yield Span(lines=lines, first=number, bytes=len(raw), taken=more, replacements=replacements)
        offset += len(raw)
        number += len(lines)


def split_lines(text: str) -> list[str]:
    """The lines of a text; behind a last line end there is an empty one."""
    return (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")


def _whole_lines(stream: Unpacked, block: int) -> Iterator[bytes]:
    """The stream in pieces that end at line ends (the last one wherever it ends)."""
    kept: list[bytes] = []  # joined once a line end is there: a line of many blocks must not cost its square
    while data := stream.read(block):
        if data.endswith(b"\r"):
            data += stream.read(1)  # its \n may follow
            if data.endswith(b"\r"):  # \r\r: the same question again, for the next round
                data += stream.read(block)
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        if cut:
            yield b"".join([*kept, data[:cut]])
            kept = [data[cut:]]
        else:
            kept.append(data)
    if rest := b"".join(kept):
        yield rest


def _decode(raw: bytes, stream: Unpacked, offset: int, number: int, replace: bool) -> tuple[str, int]:
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
        unpacked = " of the unpacked text" if stream.packing else ""
        raise DataError(
            "The text is not UTF-8.",
            where=f"{stream.name}, line {line}, byte offset {offset + skipped + error.start}{unpacked}, byte 0x{bad:02X}",
            hint=looks_like(raw) or "Convert the file to UTF-8 (of a corpus: or give --encoding-errors replace).",
        ) from None
