"""People's own questions on contexts: tables (CSV, TSV, JSON lines, Parquet) and SQuAD's JSON to question rows.

A table has a question and a context a row, and where there is gold an answer with the character at which it starts: texts or
lists of as many; without a start the first place where it stands. An empty answer says that the context has none, a missing
cell that nobody knows. SQuAD's own ``answers`` (texts and starts) are taken too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled.cells import check_columns, id_of, of_characters, plain, text_of
from bertkit.labelled.columns import Columns
from bertkit.labelled.files import read_lines
from bertkit.labelled.rows import Answer, Place, QuestionRow, RowReport
from bertkit.labelled.squad import misplaced, of_one_file, read_squad, short, shown, squad_record, unique
from bertkit.labelled.tables import open_table

QUESTIONS = Columns(text="question", pair="context", label="answer", id="id", start="answer_start")
"""The columns of a table of questions where nobody names others."""
_LISTED = 5
_LONGEST_LINE = 1 << 20  # characters: the JSON of one question is shorter, SQuAD's on one line longer

Records = Iterable[tuple[Place, Mapping[str, Any]]]


def read_questions(path: Path, columns: Columns, *, strict: bool = False) -> tuple[list[QuestionRow], RowReport]:
    """The questions of a file, by its ending and, of ``.json``, by its first line.

    Raises:
        MissingError: There is no such file (exit 4).
        DataError: As :func:`bertkit.labelled.squad.read_squad`; of a table a column that is not there, a cell that is no text,
            and answers that do not stand where their row says, with the rows (exit 3).
    """
    if not _is_table(path):
        return read_squad(path, strict=strict)
    report = RowReport()
    rows = list(stream_questions(path, columns, report))
    _check_answers(rows, str(path))
    if not rows:
        raise DataError("There is no question in the file.", where=str(path))
    return rows, report


def stream_questions(path: Path, columns: Columns, report: RowReport) -> Iterator[QuestionRow]:
    """The same one by one, a table in the memory of a row; where answers stand is not asked."""
    if not _is_table(path):
        for row in read_squad(path)[0]:
            report.rows += 1
            yield row
        return
    known, records = open_table(path)
    check_columns(known, columns, str(path))
    report.columns = tuple(known)
    # Whether questions may have no answer is a fact of the whole file, whichever of its rows are at hand.
    nullable = any(row.impossible for row in _rows(open_table(path)[1], columns)) if _has_gold(known, columns) else False
    for row in unique(_rows(records, columns), set()) if columns.id in known else _rows(records, columns):
        report.rows += 1
        yield replace(row, nullable=nullable)


def question_records(
    records: Iterable[Mapping[str, Any]], columns: Columns, *, source: str
) -> tuple[list[QuestionRow], RowReport]:
    """Rows of hub data. Errors as :func:`read_questions`."""
    report = RowReport()
    found = _rows(((Place(source, n, "record"), each) for n, each in enumerate(records, 1)), columns)
    rows = of_one_file(list(unique(found, set())))
    _check_answers(rows, source)
    report.rows = len(rows)
    return rows, report


def _is_table(path: Path) -> bool:
    """Whether a file is a table: any but ``.json``, and that where its first line is an object of its own without ``data``."""
    if path.suffix.lower() != ".json":
        return True
    first = next((line for line in read_lines(path) if line.strip()), "")
    try:
        record = json.loads(first) if len(first) < _LONGEST_LINE else None
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "data" not in record


def _has_gold(known: Sequence[str], columns: Columns) -> bool:
    return columns.label in known or "answers" in known


def _rows(records: Records, columns: Columns) -> Iterator[QuestionRow]:
    for number, (place, cells) in enumerate(records):
        yield _row(cells, columns, place, number)


def _row(cells: Mapping[str, Any], columns: Columns, place: Place, number: int) -> QuestionRow:
    named = id_of(cells, columns, place, number)
    question, context = (text_of(cells, str(name), columns.joined, place) for name in (columns.text, columns.pair))
    if cells.get(str(columns.label)) is None and cells.get("answers") is not None:
        official = {"id": named, "question": question, "context": context, "answers": _official(cells["answers"], place)}
        return squad_record(official, str(place), place)
    answers = _answers(cells, columns, context, place)
    return QuestionRow(
        id=named,
        question=question,
        context=context,
        answers=answers or (),
        impossible=answers == (),
        labelled=answers is not None,
        place=place,
    )


def _answers(cells: Mapping[str, Any], columns: Columns, context: str, place: Place) -> tuple[Answer, ...] | None:
    """The row's gold; none where its answer is empty, None where the cell is missing."""
    value = cells.get(str(columns.label))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    given = value if isinstance(value, list | tuple) else [value]
    texts = [of_characters(plain(text), str(columns.label), place) for text in given]
    if not any(texts):
        return ()
    starts = cells.get(columns.start) if columns.start else None
    listed = starts if isinstance(starts, list | tuple) else [starts] * len(texts)
    if len(listed) != len(texts):
        raise DataError(f"The row has {len(texts)} answers, but {len(listed)} starts.", where=str(place))
    return tuple(
        Answer(text, context.find(text) if (at := _start(start, columns, place)) is None else at)
        for text, start in zip(texts, listed, strict=True)
    )


def _start(value: Any, columns: Columns, place: Place) -> int | None:
    """A place in the context; None where the cell is empty."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not number.is_integer():
        raise DataError(f"Column {columns.start!r} should be a whole number, but holds {plain(value)!r}.", where=str(place))
    return int(number)


def _official(answers: Any, place: Place) -> Any:
    """SQuAD's ``answers`` with starts as numbers, which tables of JSON lines keep as they are spelled."""
    if isinstance(answers, Mapping) and isinstance(answers.get("answer_start"), list):
        return {**answers, "answer_start": [_start(start, QUESTIONS, place) for start in answers["answer_start"]]}
    if isinstance(answers, list):
        return [
            {**each, "answer_start": _start(each.get("answer_start"), QUESTIONS, place)} if isinstance(each, Mapping) else each
            for each in answers
        ]
    return answers


def _check_answers(rows: Sequence[QuestionRow], source: str) -> None:
    """Does every answer stand where its row says?

    Raises:
        DataError: Some do not; the first are listed, each with where it does stand.
    """
    astray = [(row, answer) for row in rows for answer in row.answers if not shown(row.context, answer)]
    if not astray:
        return
    more = f"; and {len(astray) - _LISTED} more" if len(astray) > _LISTED else ""
    raise DataError(
        f"{len(astray)} answers do not stand where their rows say: "
        f"{'; '.join(_told(row, answer) for row, answer in astray[:_LISTED])}{more}.",
        where=source,
        hint="A start counts characters of the context from 0; without one the first place of the text is taken.",
    )


def _told(row: QuestionRow, answer: Answer) -> str:
    there = row.context.find(answer.text)
    where = f"it stands at {there}" if there >= 0 else "the context does not have it"
    fault = "" if there < 0 and answer.start < 0 else f"{misplaced(row.context, answer)}: "
    return f"{row.place.unit} {row.place.line}, {short(answer.text)}: {fault}{where}"
