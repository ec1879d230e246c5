"""Rows of cells in, aligned lines out: numbers to the right, and the last column wrapped where there is a width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

_LEAST = 20  # columns that the last cell must have to be wrapped; below that a long line is easier to read


def lines(rows: Sequence[Sequence[str]], *, heading: bool = False, width: int | None = None) -> Iterator[str]:
    """The lines of a table.

    Args:
        rows: Cells, as many in each row.
        heading: The first row names the columns.
        width: Columns of the terminal; None leaves each row one line.
    """
    if not rows:
        return
    widths = [max(map(shown_width, column)) for column in zip(*rows, strict=True)]
    numeric = [all(map(_is_number, column)) for column in zip(*rows[heading:], strict=True)] or [False] * len(widths)
    for row in rows:
        *before, last = [
            (" " * (room - shown_width(cell)) + cell) if right else cell + " " * (room - shown_width(cell))
            for cell, room, right in zip(row, widths, numeric, strict=True)
        ]
        yield from _wrapped("".join(f"{cell}  " for cell in before), last.rstrip(), width)


def _wrapped(before: str, last: str, width: int | None) -> Iterator[str]:
    indent = shown_width(before)
    room = 0 if width is None else width - indent
    if room < _LEAST or shown_width(last) <= room:
        yield (before + last).rstrip()
        return
    first, *rest = textwrap.wrap(last, room, break_long_words=False, break_on_hyphens=False)
    yield before + first
    yield from (" " * indent + line for line in rest)


def _is_number(text: str) -> bool:
    return text in ("", "-") or text.replace(",", "").replace(".", "", 1).replace("-", "", 1).isdigit()


def shown_width(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters (Chinese) take two."""
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
