"""Tagged sentences as records (JSON lines, Parquet, hub data): words and tags as lists, or a raw text with spans.

In come records, out go :class:`TaggedRow`. A text's words are found by whoever knows how a model reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled.cells import check_columns, id_of, of_characters, plain
from bertkit.labelled.columns import Columns
from bertkit.labelled.rows import Place, RowReport, TaggedRow
from bertkit.labelled.tags import Entity, iob2

Offsets = Sequence[tuple[int, int]]
_ALSO = {"tags": ("ner_tags", "labels"), "ner_tags": ("tags",), "tokens": ("words", "text")}
"""Usual names of a column that stand for the task's own where that one is not there."""


def tagged_records(
    records: Iterable[tuple[Place, Mapping[str, Any]]], columns: Columns, *, source: str, split: Callable[[str], Offsets]
) -> tuple[list[TaggedRow], RowReport]:
    """Rows of records; those without tags have no gold.

    Args:
        records: With their places.
        columns: ``text`` names a list of words or a raw text, ``label`` a list of tags or, of a text, spans as CLUENER has
            them: ``{type: {entity: [[first, last]]}}``, the last character included.
        source: Their file or data set.
        split: The words of a raw text, as characters (first, behind the last).

    Raises:
        DataError: A column is not there, words are no texts, tags are not as many as words, or a span lies outside of its text.
    """
    report = RowReport()
    return list(each_record(records, columns, report, source=source, split=split)), report


def each_record(
    records: Iterable[tuple[Place, Mapping[str, Any]]],
    columns: Columns,
    report: RowReport,
    *,
    source: str,
    split: Callable[[str], Offsets],
) -> Iterator[TaggedRow]:
    """The same one by one; ``report`` grows with them."""
    for number, (place, record) in enumerate(records):
        if not number:
            report.columns = tuple(record)
            columns = Columns(text=_there(columns.text, record), label=_there(columns.label or "tags", record), id=columns.id)
            check_columns(tuple(record), Columns(text=columns.text, label=None), source)
        report.rows += 1
        yield _row(record, columns, place, id_of(record, columns, place, number), split)


def text_row(text: str, *, identity: str, place: Place, split: Callable[[str], Offsets]) -> TaggedRow:
    """The words of a raw text, without tags."""
    offsets = tuple(split(text))
    words = tuple(text[start:end] for start, end in offsets)
    return TaggedRow(id=identity, words=words, columns=((),) * len(words), text=text, offsets=offsets, place=place)


def characters(text: str) -> Offsets:
    """Every character but white space is a word."""
    return [(place, place + 1) for place, character in enumerate(text) if not character.isspace()]


def span_tags(spans: Any, row: TaggedRow) -> tuple[str, ...]:
    """IOB2 tags of the words of a raw text by CLUENER's spans; of spans that share a character the longest is taken.

    Raises:
        DataError: They are no such spans, or one holds no word or a part of one.
    """
    found = []
    for kind, start, end in _spans(spans, row):
        inside = [at for at, (first, last) in enumerate(row.offsets) if first < end and last > start]
        if not inside or row.offsets[inside[0]][0] < start or row.offsets[inside[-1]][1] > end:
            raise DataError(
                f"The {kind} at the characters {start} to {end - 1} is not made of whole words.", where=str(row.place)
            )
        found.append(Entity(inside[0], inside[-1] + 1, kind))
    taken: list[Entity] = []
    for one in sorted(set(found), key=lambda each: (each.start - each.end, each.start)):
        if all(one.end <= other.start or one.start >= other.end for other in taken):
            taken.append(one)
    return tuple(iob2(taken, len(row.words)))


def _spans(spans: Any, row: TaggedRow) -> Iterable[tuple[str, int, int]]:
    try:
        listed = [
            (str(kind), int(start), int(last) + 1)
            for kind, of_kind in spans.items()
            for places in of_kind.values()
            for start, last in places
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            "The spans cannot be read.",
            where=str(row.place),
            hint='They are {"name": {"叶老桂": [[9, 11]]}}: type, entity, places.',
        ) from error
    for kind, start, end in listed:
        if not 0 <= start < end <= len(row.text or ""):
            raise DataError(
                f"The {kind} at the characters {start} to {end - 1} lies outside of the text, which has {len(row.text or '')}.",
                where=str(row.place),
            )
    return listed


def _there(name: str, record: Mapping[str, Any]) -> str:
    return name if name in record else next((other for other in _ALSO.get(name, ()) if other in record), name)


def _row(record: Mapping[str, Any], columns: Columns, place: Place, identity: str, split: Callable[[str], Offsets]) -> TaggedRow:
    found, gold = record.get(columns.text), record.get(str(columns.label))
    if isinstance(found, str):
        text = of_characters(found, columns.text, place)
        row = text_row(text, identity=identity, place=place, split=characters if isinstance(gold, Mapping) else split)
    elif isinstance(found, Sequence) and all(isinstance(word, str) for word in found):
        words = tuple(of_characters(word, columns.text, place) for word in found)
        row = TaggedRow(id=identity, words=words, columns=((),) * len(words), place=place)
    else:
        raise DataError(f"The column {columns.text!r} holds no list of words and no text.", where=str(place))
    if gold is None:
        return row
    tags = span_tags(gold, row) if isinstance(gold, Mapping) and row.text is not None else _tags(gold, columns, row)
    return TaggedRow(id=row.id, words=row.words, tags=tags, columns=row.columns, text=row.text, offsets=row.offsets, place=place)


def _tags(gold: Any, columns: Columns, row: TaggedRow) -> tuple[str, ...]:
    listed = gold if isinstance(gold, Sequence) and not isinstance(gold, str) else ()
    if len(listed) != len(row.words) or not all(isinstance(tag, str | int) for tag in listed):
        raise DataError(
            f"The column {columns.label!r} does not hold one tag name for each of the {len(row.words)} words.",
            where=str(row.place),
        )
    return tuple(of_characters(plain(tag), str(columns.label), row.place) for tag in listed)
