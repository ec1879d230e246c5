"""Shapes of text that is no plain prose: markup left in it, bytes read in a wrong encoding, sentences broken over lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TAGS = "p|div|span|br|a|li|ul|ol|td|tr|table|h[1-6]|script|style|ref|html|head|body|meta|link|img|b|i|em|strong"
_MARKUP = re.compile(rf"</?(?:{_TAGS})\b[^<>]*>|&(?:nbsp|amp|lt|gt|quot|#\d+);|\{{\{{|\}}\}}|\[\[|\]\]|^\{{\"", re.IGNORECASE)
# What UTF-8 looks like when it was read as Latin-1 or Windows-1252, and what stands for a byte that nobody could read.
_MISREAD = re.compile("[ÃÂÅÄ][\u0080-\u00bf]|â€|ï¿½|\ufffd")


def _around(line: str, found: re.Match[str]) -> str:
    return line[max(0, found.start() - 20) : found.end() + 60]


@dataclass(slots=True)
class Shapes:
    """Counts over the lines of a corpus.

    Attributes:
        lines: All lines.
        markup: Lines with HTML or wiki markup, or that begin like JSON.
        misread: Lines with characters that a wrong encoding leaves.
        joins: Neighbouring lines of one document.
        broken: Those where a sentence goes on: the first ends in a letter or a comma, the second begins with a small letter.
        examples: The first place of each kind, with some characters around it.
    """

    lines: int = 0
    markup: int = 0
    misread: int = 0
    joins: int = 0
    broken: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    _last: str = ""

    def add(self, line: str) -> None:
        """The next line, without spaces around it."""
        self.lines += 1
        if found := _MARKUP.search(line):
            self.markup += 1
            self.examples.setdefault("markup", _around(line, found))
        if not line.isascii() and (found := _MISREAD.search(line)):
            self.misread += 1
            self.examples.setdefault("misread", _around(line, found))
        if self._last:
            self.joins += 1
            if line[0].islower() and (self._last[-1].isalpha() or self._last[-1] == ","):
                self.broken += 1
                self.examples.setdefault("broken", f"{self._last[-50:]} | {line[:50]}")
        self._last = line

    def end_document(self) -> None:
        """The next line belongs to another document."""
        self._last = ""
