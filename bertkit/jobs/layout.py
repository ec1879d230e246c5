"""What a terminal of some width can show of a text or of counts: texts cut to it, bars, histograms, columns."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import TextIO

from bertkit.jobs.columns import shown_width

COLUMNS = 80  # of a page that is no terminal
_BLOCKS = " ▏▎▍▌▋▊▉█"


def page_width(stream: TextIO) -> int:
    """The width to write to: a terminal's (80 at least, 100 at most: longer lines are hard to read), else 80."""
    if not stream.isatty():
        return COLUMNS
    return min(max(shutil.get_terminal_size((COLUMNS, 24)).columns, COLUMNS), 100)


def shows_blocks(encoding: str | None) -> bool:
    """Whether a stream can show block characters."""
    try:
        _BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return os.environ.get("TERM") != "dumb"


def cut(text: str, width: int, *, at_end: bool = True) -> str:
    """The text on one line, its spaces single, cut to ``width`` columns at its end (or its start), with … for what is missing."""
    text = " ".join(text.split())
    if shown_width(text) <= width:
        return text
    kept: list[str] = []
    room = width - 1
    for c in text if at_end else reversed(text):
        room -= shown_width(c)
        if room < 0:
            break
        kept.append(c)
    return "".join(kept).rstrip() + "…" if at_end else "…" + "".join(reversed(kept)).lstrip()


def bar(share: float, width: int, *, blocks: bool) -> str:
    """A bar of ``share`` of ``width`` columns; what is not 0 shows something."""
    if not blocks:
        return "#" * max(round(share * width), 1 if share > 0 else 0)
    eighths = max(round(8 * share * width), 1 if share > 0 else 0)
    return "█" * (eighths // 8) + (_BLOCKS[eighths % 8] if eighths % 8 else "")


def histogram(counts: Sequence[int], labels: Sequence[str], width: int, *, blocks: bool) -> list[str]:
    """One line a class: its label, its share of all, and a bar as long as the largest class allows."""
    total, most = max(1, sum(counts)), max([1, *counts])
    wide = max(map(len, labels), default=0)
    room = width - wide - 10
    lines = []
    for label, count in zip(labels, counts, strict=True):
        share = 100 * count / total
        shown = f"{share:5.1f}" if count == 0 or share >= 0.1 else " <0.1"
        lines.append(f"{label:>{wide}} {shown} %  {bar(count / most, room, blocks=blocks)}".rstrip())
    return lines


def beside(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Two columns of lines, the right one from ``width`` on."""
    rows = max(len(left), len(right))
    padded = [*left, *[""] * (rows - len(left))], [*right, *[""] * (rows - len(right))]
    return [f"{a}{' ' * (width - shown_width(a))}{b}".rstrip() for a, b in zip(*padded, strict=True)]
