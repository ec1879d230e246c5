"""WikiExtractor's files: ``<doc id=… url=… title=…>`` and ``</doc>`` on lines of their own around each article."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bertkit.corpus.lines import Span

# The title stands last, and its own quotes are not escaped: title=""Weird Al" Yankovic">
_OPENING = re.compile(r"<doc (?=[\w:-]+=)(?:(?!title=)[\w:-]+=\"[^\"]*\"\s*)*(?:title=\".*\"\s*)?>\s*")
_CLOSING = "</doc>"


def begins_article(line: str) -> bool:
    """Whether a line is one that WikiExtractor writes before an article."""
    return line.startswith("<doc ") and _OPENING.fullmatch(line) is not None


def part_articles(spans: Iterator[Span]) -> Iterator[Span]:
    """The lines with None in the place of every ``<doc …>`` and ``</doc>``; the title, an article's first line, is text."""
    for span in spans:
        marked = [None if line is not None and line[:5] in ("<doc ", "</doc") and _is_mark(line) else line for line in span.lines]
        yield replace(span, lines=marked)


def _is_mark(line: str) -> bool:
    return line.rstrip() == _CLOSING or begins_article(line)
