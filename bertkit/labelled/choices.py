"""Contexts with candidates: SWAG's table and people's own (CSV, TSV, JSON lines, Parquet, hub data) to rows.

Candidates stand in several columns, of which a row fills as many as it has, or as a list in one. Where they stand and how the
right one is named is stated (by a task's declaration, by settings) or said as it is found; what can be read in two ways is
refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertkit.errors import DataError, SettingsError, nearest
from bertkit.labelled.cells import check_columns, decided, id_of, label_of, of_characters, plain, text_of
from bertkit.labelled.columns import Columns, LabelForm
from bertkit.labelled.rows import ChoiceRow, Place, RowReport
from bertkit.labelled.tables import Records, open_table
from bertkit.notices import say

_LISTS = ("candidates", "choices", "options", "endings")
_STEMS = ("candidate", "choice", "option", "ending")
_QUESTION = "question"
_READ = {
    "number": "its number, counted from 0",
    "number_from_1": "its number, counted from 1",
    "letter": "its letter, A for the first",
    "text": "its text",
}
_HINT = "Name them with --set data.candidate_columns=a,b,c, or one column that holds a list of texts."


def read_choices(path: Path, columns: Columns) -> tuple[list[ChoiceRow], RowReport]:
    """Rows of a table, by the ending of its name. Labels are None where the label's column is not there (test parts).

    Raises:
        UsageError: The ending is not known (exit 2).
        MissingError: The file is not there (exit 4).
        DataError: A column is not there, or a row does not fit (exit 3), with the row.
        SettingsError: The labels can be read in two ways (exit 2).
    """
    report = RowReport()
    return list(stream_choices(path, columns, report)), report


def stream_choices(path: Path, columns: Columns, report: RowReport) -> Iterator[ChoiceRow]:
    """The same rows one after the other, while the file is read; ``report`` grows with them. Errors as :func:`read_choices`.

    Labels whose form nobody states are read through once more before: all of them say it together.
    """
    return _rows(lambda: open_table(path), columns, str(path), report)


def choice_records(records: Iterable[Mapping[str, Any]], columns: Columns, *, source: str) -> tuple[list[ChoiceRow], RowReport]:
    """Rows of hub data, whose classes are names already. Errors as :func:`read_choices`."""
    placed = [(Place(source, number, "row"), record) for number, record in enumerate(records, start=1)]
    report = RowReport()
    return list(_rows(lambda: (list(placed[0][1]), iter(placed)), columns, source, report)) if placed else [], report


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row, and its label as the file spells it."""

    row: ChoiceRow
    said: str | None


def _rows(
    opened: Callable[[], tuple[Sequence[str], Records]], columns: Columns, where: str, report: RowReport
) -> Iterator[ChoiceRow]:
    """The rows of what ``opened`` gives, as often as it is asked: the names of its columns, and its records from the first."""
    known, first = opened()
    check_columns(known, columns, where)
    columns = _found(known, columns, where)
    if columns.label not in known:
        columns = replace(columns, label=None, no_label=())
    report.columns = tuple(known)
    unread = [first]  # so that what has no labels is read once: it may be a pipe

    def drafts() -> Iterator[_Draft]:
        records = unread.pop() if unread else opened()[1]
        return (_draft(cells, columns, place, number) for number, (place, cells) in enumerate(records))

    form = columns.label_form
    if form is None and columns.label is not None:
        form = _form_of((draft for draft in drafts() if draft.said is not None), where)

    def rows(_: RowReport) -> Iterator[ChoiceRow]:
        for draft in drafts():
            yield draft.row if draft.said is None or form is None else _labelled(draft, draft.said, form, columns)

    yield from decided(rows, columns, report)


def _found(known: Sequence[str], columns: Columns, where: str) -> Columns:
    """The columns with those of the candidates one by one, and the question's; what nobody stated is said."""
    asked = columns.candidates
    pair = columns.pair
    if pair is None and not asked and _QUESTION in known and columns.text != _QUESTION:
        pair = _QUESTION
    if len(asked) > 1:
        for name in asked:
            if list(known).count(name) != 1:
                raise DataError(f"There is no column {name!r}.{nearest(name, known)}", where=where, hint=_HINT)
        return columns
    names = asked if asked and asked[0] in known else ()
    if not asked:
        names = tuple(name for name in _LISTS if name in known)[:1]
    for stem in asked or _STEMS:
        names = names or _numbered(stem, known)
    if not names:
        listed = ", ".join(map(repr, known))
        raise DataError(f"There are no columns of candidates; the columns are {listed}.", where=where, hint=_HINT)
    if names != asked:
        stands = f"the columns {', '.join(names)}" if len(names) > 1 else f"the lists of column {names[0]}"
        question = f", each behind the text of {pair}" if pair is not None else ""
        say("choice-columns", f"The context is column {columns.text}, the candidates are {stands}{question}.")
    return replace(columns, candidates=names, pair=pair)


def _numbered(stem: str, known: Sequence[str]) -> tuple[str, ...]:
    """Two columns or more that are ``stem`` and a number, by their numbers."""
    found = [(int(match[1]), name) for name in known if (match := re.fullmatch(rf"{re.escape(stem)}[ _-]?(\d+)", name))]
    return tuple(name for _, name in sorted(found)) if len(found) > 1 else ()


def _draft(cells: Mapping[str, Any], columns: Columns, place: Place, number: int) -> _Draft:
    candidates = _candidates(cells, columns, place)
    if len(candidates) < 2:
        count = "one candidate" if candidates else "no candidate"
        raise DataError(f"The row has {count}, where there is something to choose from two on.", where=str(place))
    label = None if columns.label is None else label_of(cells.get(columns.label), columns, place)
    row = ChoiceRow(
        id=id_of(cells, columns, place, number),
        context=text_of(cells, columns.text, columns.joined, place),
        question="" if columns.pair is None else text_of(cells, columns.pair, columns.joined, place),
        candidates=tuple(candidates),
        place=place,
    )
    return _Draft(row, None if label is None else str(label))


def _candidates(cells: Mapping[str, Any], columns: Columns, place: Place) -> list[str]:
    """The texts of a list, or of several cells: empty ones behind the last text are no candidates."""
    names = columns.candidates
    if len(names) == 1:
        return [of_characters(plain(item), names[0], place) for item in _list(cells.get(names[0]), names[0], place)]
    texts = ["" if cells.get(name) is None else text_of(cells, name, None, place) for name in names]
    while texts and not texts[-1].strip():
        texts.pop()
    return texts


def _list(value: Any, name: str, place: Place) -> Sequence[Any]:
    """A list of JSON's or Parquet's, or one that a cell of a CSV spells as JSON does."""
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_float=str, parse_int=str, parse_constant=str)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list | tuple) or any(item is None or isinstance(item, list | tuple | dict) for item in value):
        raise DataError(f"Column {name!r} holds no list of texts here.", where=str(place), hint='Write ["one", "two"].')
    return value


def _numeral(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdecimal() else None


def _letter(said: str, candidates: Sequence[str]) -> int | None:
    return ord(said.upper()) - ord("A") if len(said) == 1 and said.isascii() and said.isalpha() else None


def _text(said: str, candidates: Sequence[str]) -> int | None:
    return next((place for place, text in enumerate(candidates) if text.strip() == said), None)


_FORMS: dict[LabelForm, Callable[[str, Sequence[str]], int | None]] = {
    "number": lambda said, candidates: _numeral(said),
    "number_from_1": lambda said, candidates: None if (number := _numeral(said)) is None else number - 1,
    "letter": _letter,
    "text": _text,
}


def _place_of(draft: _Draft, said: str, form: LabelForm) -> int | None:
    """Which candidate a label names, read as ``form``; None where it names none."""
    place = _FORMS[form](said, draft.row.candidates)
    return place if place is not None and 0 <= place < len(draft.row.candidates) else None


def _form_of(drafts: Iterable[_Draft], where: str) -> LabelForm | None:
    """The one form in which every label names a candidate, which is said; None where there is no label.

    Counting from 1 is never taken by itself: labels that happen to leave the last candidate out look like counting from 0.
    """
    labels, misfits = 0, Counter[LabelForm]()
    first: dict[LabelForm, _Draft] = {}
    for draft in drafts:
        labels += 1
        for form in _FORMS:
            if _place_of(draft, str(draft.said), form) is None:
                misfits[form] += 1
                first.setdefault(form, draft)
    if not labels:
        return None
    fitting = [form for form in _FORMS if form != "number_from_1" and not misfits[form]]
    if len(fitting) == 1:
        say("label-form", f"The right candidate is named by {_READ[fitting[0]]}.")
        return fitting[0]
    if fitting:
        raise SettingsError(
            f"The labels of {where} can be read in {len(fitting)} ways: {', or '.join(_READ[form] for form in fitting)}.",
            where="data.label_form",
            hint=f"Say which: {', or '.join(f'--set data.label_form={form}' for form in fitting)}.",
        )
    astray = first[min((form for form in _FORMS if form != "number_from_1"), key=lambda form: misfits[form])]
    raise DataError(
        f"The label {astray.said!r} names none of the row's {len(astray.row.candidates)} candidates: it is no number from 0, "
        "no letter, and none of their texts.",
        where=str(astray.row.place),
        hint="They count from 1: --set data.label_form=number_from_1."
        if not misfits["number_from_1"]
        else "Mend the row, or say how labels are written with --set data.label_form=number (or number_from_1, letter, text).",
    )


def _labelled(draft: _Draft, said: str, form: LabelForm, columns: Columns) -> ChoiceRow:
    place = _place_of(draft, said, form)
    if place is None:
        raise DataError(
            f"Column {columns.label!r} should name one of the row's {len(draft.row.candidates)} candidates by {_READ[form]}, "
            f"but holds {said!r}.",
            where=str(draft.row.place),
            hint="--set data.label_form=… says how labels are written: number, number_from_1, letter or text.",
        )
    return replace(draft.row, label=place)
