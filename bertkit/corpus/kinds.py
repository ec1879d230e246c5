"""Which format a file of text has, by its ending or by how it begins; and its lines, whatever the format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Literal

from bertkit.corpus.lines import BOM, Span, read_spans
from bertkit.corpus.records import json_spans
from bertkit.corpus.unpacked import PACKED, Unpacked
from bertkit.corpus.wikiextractor import begins_article, part_articles
from bertkit.errors import DataError

Kind = Literal["text", "wikiextractor", "jsonl", "parquet"]

ENDINGS: dict[str, Kind] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
"""Endings that say what a file is; a file of any other ending is known by its content."""

WORDS: dict[Kind, str] = {
    "wikiextractor": "WikiExtractor's: their <doc> lines part documents",
    "jsonl": "JSON lines: each object is a document",
    "parquet": "Parquet: each row is a document",
}
"""How a format is named where it was known by the content."""

LOOKED_AT = 4096  # bytes of a file's beginning
_OBJECT = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:')


def inner_name(name: str) -> str:
    """The name without the ending of a packed file: ``a.txt`` for ``a.txt.gz``."""
    path = PurePath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in PACKED else name


def ending(name: str) -> str:
    """The ending below that of a packed file, in small letters: ``.txt`` for ``a.TXT.gz``; empty where there is none."""
    return PurePath(inner_name(name)).suffix.lower()


def kind_by_name(name: str) -> Kind | None:
    """The format that an ending says; None where the content has to."""
    return ENDINGS.get(ending(name))


def kind_by_content(start: bytes) -> Kind:
    """The format of a file that begins so."""
    if start.startswith(b"PAR1"):
        return "parquet"
    text = start.removeprefix(BOM).decode(errors="replace").lstrip()
    if begins_article(re.split("[\r\n]", text, maxsplit=1)[0]):
        return "wikiextractor"
    return "jsonl" if _OBJECT.match(text) else "text"


def stream_spans(stream: Unpacked, kind: Kind, field: str, *, replace: bool) -> Iterator[Span]:
    """The lines of a stream of any format but Parquet, which has to be able to seek.

    Raises:
        DataError: The text, a record or packed data are wrong; or it is Parquet.
    """
    if kind == "parquet":
        raise DataError(
            "Parquet cannot be read from a pipe or out of another packing.",
            where=stream.name,
            hint="Give it as a file of its own.",
        )
    spans = read_spans(stream, replace=replace)
    if kind == "wikiextractor":
        return part_articles(spans)
    return spans if kind == "text" else json_spans(spans, field, stream.name, replace=replace)
