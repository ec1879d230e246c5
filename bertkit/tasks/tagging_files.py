"""The files of tagging tasks: CoNLL columns, records or running text in, rows out; the official files out, and predictions of
any system in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

from bertkit.corpus.basic_words import basic_words
from bertkit.errors import DataError, UsageError
from bertkit.labelled.cells import id_of
from bertkit.labelled.columns import Columns
from bertkit.labelled.conll import as_cell, each_sentence, is_running_text, row_lines, tagged_lines
from bertkit.labelled.files import read_lines, writing
from bertkit.labelled.rows import Place, RowReport, TaggedRow
from bertkit.labelled.tables import open_table
from bertkit.labelled.tagged_records import Offsets, characters, each_record, span_tags, tagged_records, text_row
from bertkit.labelled.tags import CONVERTED, Scheme, entities, recognise, stray_tags, to_iob2
from bertkit.notices import say
from bertkit.tasks.clue_files import clue_id
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.tagging_labels import gold_tags, scheme_of
from bertkit.tasks.task import Task

RECORDS = (".json", ".jsonl", ".parquet")
_IDS = Columns(text="text", id="id")
_DEFAULTS = ("tokens", "tags", "ner_tags", "text", "label")  # names of a declaration, which columns without names do not have


def columns_of(task: Task) -> Columns:
    """The columns of the task, or those that hub data of tags have."""
    return task.columns or Columns(text="tokens", label="ner_tags")


def read_tagged(path: Path, task: Task) -> tuple[list[TaggedRow], RowReport]:
    """Sentences of one file, by its ending; says the scheme of its tags where that is not IOB2.

    Raises:
        UsageError: A CoNLL column is named by other than its number (exit 2).
        MissingError, DataError: As the readers.
    """
    report = RowReport()
    rows = list(_each(path, task, report))
    _tell_scheme(rows, path)
    return rows, report


def stream_tagged(path: Path, task: Task, report: RowReport) -> Iterator[TaggedRow]:
    """The same one by one, for whoever predicts; a file may also have a sentence of running text on each line, which is said.

    Where tags may be there, the file is read through once more before: all of them say the scheme together.
    """
    columns = columns_of(task)
    numbered = any((name or "").isdecimal() for name in (columns.text, columns.label))
    if path.suffix.lower() not in RECORDS and not numbered and is_running_text(path, characters=columns.characters):
        words = "characters" if columns.characters else "words and punctuation marks"
        say("running-text", f"{path}: a line is a sentence of running text, and tagged are its {words}.")
        for number, line in enumerate(read_lines(path, end=""), 1):
            report.rows += 1
            yield line_row(number, line.rstrip("\r\n"), task, source=str(path))
        return
    scheme = _tell_scheme(_each(path, task, RowReport()), path)
    for row in _each(path, task, report):
        yield replace(row, scheme=scheme)


def _each(path: Path, task: Task, report: RowReport) -> Iterator[TaggedRow]:
    columns = columns_of(task)
    if path.suffix.lower() not in RECORDS:
        for row in _columns(path, task, tag=_number(columns.label, "--label-column")):
            report.rows += 1
            yield row
        return
    yield from each_record(open_table(path)[1], columns, report, source=str(path), split=_split(columns))
    if not report.rows:
        raise DataError("There is no sentence in the file.", where=str(path))


def _split(columns: Columns) -> Callable[[str], Offsets]:
    """What finds the words of a raw text."""
    return characters if columns.characters else basic_words


def from_records(
    records: Iterable[tuple[Place, Mapping[str, Any]]], task: Task, *, source: str
) -> tuple[list[TaggedRow], RowReport]:
    """Sentences of records with their places; see :func:`bertkit.labelled.tagged_records.tagged_records`."""
    columns = columns_of(task)
    return tagged_records(records, columns, source=source, split=_split(columns))


def line_row(number: int, line: str, task: Task, *, source: str = "stdin") -> TaggedRow:
    """The words of a line of running text, of a file or piped in; lines are numbered from 1."""
    return text_row(line, identity=str(number - 1), place=Place(source, number), split=_split(columns_of(task)))


def write_tagged(path: Path, predictions: Iterable[Prediction], rows: Iterable[TaggedRow]) -> None:
    """The official file: of a name that ends in ``.json`` CLUENER's, else conlleval's columns.

    Those are the rows' own file again with a predicted tag behind each word. Rows that are not the first of one file of
    columns (held out of it, from records or of running text) are written one behind another; where there are none (texts that
    were piped in) the predictions have the words.
    """
    first = next(iter(rows), None)
    tags = (list(said.value) for said in predictions)
    if first is None:
        lines: Iterable[str] = chain.from_iterable(map(_said_lines, predictions))
    elif path.suffix == ".json":
        lines = map(_cluener_line, rows, tags)
    else:
        source = _columns_behind(first, rows)
        lines = row_lines(rows, tags) if source is None else tagged_lines(source, tags)
    with writing(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _said_lines(said: Prediction) -> Iterable[str]:
    return row_lines([TaggedRow(id=said.id, words=tuple(said.more["words"]))], [said.value])


def _columns_behind(first: TaggedRow, rows: Iterable[TaggedRow]) -> Path | None:
    """The file of columns whose first sentences these are; None where there is none."""
    if first.text is not None or first.place.unit != "line":
        return None
    source = Path(first.place.file)
    if source.suffix.lower() in RECORDS or not source.is_file():
        return None
    return source if all(row.id == str(number) for number, row in enumerate(rows)) else None


def entity_records(row: TaggedRow, tags: Sequence[str]) -> list[dict[str, Any]]:
    """Each entity: its type, its text, its words (first, behind the last) and, of a raw text, its characters likewise."""
    found: list[dict[str, Any]] = []
    for first, end, kind in entities(tags):
        if row.text is None:
            found.append({"type": kind, "text": " ".join(row.words[first:end]), "words": [first, end]})
        else:
            start, stop = row.offsets[first][0], row.offsets[end - 1][1]
            found.append({"type": kind, "text": row.text[start:stop], "start": start, "end": stop, "words": [first, end]})
    return found


def read_given(path: Path, rows: Sequence[TaggedRow], task: Task) -> list[Prediction]:
    """Predictions of any system, one a row: conlleval's columns (the predicted tag last), a tag alone on each line, or CLUENER's.

    Raises:
        DataError: The file has other words or other counts of words than the rows, or other sentences.
    """
    if path.suffix == ".json":
        return _read_cluener(path, rows)
    found = list(_columns(path, task, tag=None))
    asked = [row for row in rows if row.words]  # a record without words leaves no line in columns
    if len(found) < len(asked):
        raise DataError(f"The file has {len(found)} sentences, but {len(asked)} are to be scored.", where=str(path))
    if len(found) > len(asked):
        say("more-predictions", f"{path}: of its {len(found)} sentences only the first {len(asked)} are scored.")
    bare = all(said.tags is None for said in found)
    given = [said.words if bare else said.tags or () for said in found[: len(asked)]]
    for said, row in zip(found, asked, strict=False):
        if len(said.words) != len(row.words):
            counts = f"{len(said.words)} words, but {row.place or f'sentence {row.id}'} has {len(row.words)}"
            raise DataError(f"The sentence has {counts}.", where=str(said.place))
        if not bare and said.words != tuple(map(as_cell, row.words)):
            raise DataError(f"The sentence has other words than {row.place or row.id}.", where=str(said.place))
    # Of a file in IOB1 or IOBES the predictions are taken to be so, too, unless they are plainly IOB2: bertkit's own, in which
    # stray I- may be more than B- (of IOB1 nobody could tell those).
    scheme = scheme_of(rows)
    own = scheme in CONVERTED and recognise(given)[0] not in ({"IOB2"} if scheme == "IOB1" else {"IOB1", "IOB2"})
    tagged = iter(given)
    return [
        Prediction(
            id=row.id,
            value=to_iob2(tags) if own else list(tags),
            gold=gold,
            more={"words": list(row.words)} | ({"as_given": list(tags)} if own else {}),
        )
        for row, gold in zip(rows, gold_tags(rows), strict=True)
        for tags in [next(tagged) if row.words else ()]
    ]


def _columns(path: Path, task: Task, *, tag: int | None) -> Iterator[TaggedRow]:
    columns = columns_of(task)
    word = _number(columns.text, "--text-column") or 1
    return each_sentence(path, word=word, tag=tag, characters=columns.characters)


def _number(name: str | None, flag: str) -> int | None:
    """A column of a file without header, from 1; None where the declaration alone names it."""
    if name is None or name in _DEFAULTS:
        return None
    if not name.isdecimal() or int(name) < 1:
        raise UsageError(
            f"{name!r} is no column of a CoNLL file, whose columns have no names.",
            where=flag,
            hint="Give its number, from 1: --text-column 1 --label-column 4.",
        )
    return int(name)


def _tell_scheme(rows: Iterable[TaggedRow], path: Path) -> Scheme:
    """The scheme of all their tags, which is said where it is not IOB2."""
    seen: dict[str, None] = {}

    def tags() -> Iterator[Sequence[str]]:
        for row in rows:
            if row.tags is not None:
                seen.update(dict.fromkeys(row.tags))
                yield row.tags

    scheme, unlawful = recognise(tags())
    if scheme in CONVERTED:
        say("tag-scheme", f"{path}: its tags are {scheme}; they are trained and predicted as IOB2 and scored as entities.")
    if scheme == "plain" and (strange := stray_tags([tuple(seen)])):
        listed = ", ".join(repr(tag) for tag in strange[:5])
        verb = "is" if len(strange) == 1 else "are"
        say("tag-scheme", f"{path}: {listed} {verb} of no scheme of entities, so all tags are taken as they stand.")
    if unlawful:
        say("tag-scheme", f"{path}: {unlawful} entities do not begin as {scheme} has it; they are read as conlleval reads them.")
    return scheme


def _cluener_line(row: TaggedRow, tags: Sequence[str]) -> str:
    spans: dict[str, dict[str, list[list[int]]]] = {}
    for one in entity_records(_with_text(row), tags):
        spans.setdefault(one["type"], {}).setdefault(one["text"], []).append([one["start"], one["end"] - 1])
    return json.dumps({"id": clue_id(row.id), "label": spans}, ensure_ascii=False)


def _with_text(row: TaggedRow) -> TaggedRow:
    """A row with a raw text to count characters in: of one that came as words (in columns, say) those with nothing between."""
    if row.text is not None:
        return row
    ends = list(accumulate(map(len, row.words), initial=0))
    return replace(row, text="".join(row.words), offsets=tuple(pairwise(ends)))


def _read_cluener(path: Path, rows: Sequence[TaggedRow]) -> list[Prediction]:
    found: dict[str, Mapping[str, Any]] = {}
    for number, (place, record) in enumerate(open_table(path)[1]):
        identity = id_of(record, _IDS, place, number)
        if identity in found:
            raise DataError(f"The id {identity} comes twice.", where=str(place))
        found[identity] = record
    missing = [row.id for row in rows if row.id not in found]
    if missing:
        raise DataError(f"{len(missing)} of {len(rows)} rows have no prediction, the first is id {missing[0]}.", where=str(path))
    return [
        Prediction(
            id=row.id,
            value=list(span_tags(found[row.id].get("label") or {}, _with_text(row))),
            gold=gold,
            more={"words": list(row.words)},
        )
        for row, gold in zip(rows, gold_tags(rows), strict=True)
    ]
