"""Cells to rows: what the readers of tables share. A cell is text until its column says otherwise."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from bertkit.errors import DataError, nearest
from bertkit.labelled.columns import Columns
from bertkit.labelled.files import no_character
from bertkit.labelled.rows import Place, RowReport, TextRow
from bertkit.notices import say

Label = str | float | tuple[str, ...] | None
_SWITCHES = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


def check_columns(known: Sequence[str], columns: Columns, where: str) -> None:
    """Are the columns of the texts there, and each named column once?

    Raises:
        DataError: One is not there, or twice; the columns that are there are listed, with the nearest name.
    """
    listed = ", ".join(repr(name) for name in known) or "none"
    other = next((sign for sign in (";", "\t", "|", ",") if len(known) == 1 and sign in known[0]), None)
    parted = f" Its cells seem to be parted by {other!r}: save it with commas as .csv, or with tabs as .tsv." if other else ""
    for flag, name in (("--text-column", columns.text), ("--pair-column", columns.pair)):
        if name is not None and name not in known:
            raise DataError(
                f"There is no column {name!r}.{nearest(name, known)}",
                where=where,
                hint=f"Its columns are {listed}; name one with {flag}.{parted}",
            )
    for name in (columns.text, columns.pair, columns.label, columns.id):
        if name is not None and list(known).count(name) > 1:
            raise DataError(f"There are {list(known).count(name)} columns {name!r}.", where=where, hint="Rename all but one.")


def labels_read(known: Sequence[str], columns: Columns, where: str) -> Columns:
    """How a table's labels are read where a row has several, which is said; the columns of any other table as they are.

    ``label`` names one column of names, or lists columns of 0 and 1 (``toxic,insult``), which become ``indicators``.

    Raises:
        DataError: Some of the columns of 0 and 1 are there and some are not.
    """
    if columns.kind != "several" or columns.label is None:
        return columns
    if columns.label in known or "," not in columns.label:
        if columns.label in known:
            say(
                "label-form",
                f"The labels of a row are the names in its column {columns.label!r}: a list, or a text parted by "
                f"{columns.delimiter!r} (--set data.label_separator=… for another).",
            )
        return columns
    names = tuple(dict.fromkeys(name.strip() for name in columns.label.split(",")))
    missing = [name for name in names if name not in known]
    if missing and len(missing) < len(names):
        raise DataError(
            f"There is no column {missing[0]!r}.{nearest(missing[0], known)}",
            where=where,
            hint="--label-column names one column of names, or columns of 0 and 1 parted by commas.",
        )
    if missing:
        return columns
    say("label-form", f"The labels of a row are those of the columns {', '.join(names)} that hold 1.")
    return replace(columns, indicators=names)


def row_of(cells: Mapping[str, Any], columns: Columns, place: Place, number: int) -> TextRow:
    """One row of named cells; ``number`` is its id where no column gives one.

    Raises:
        DataError: A text is no text, or a label cannot be what its column says (exit 3), with the row.
    """
    if columns.indicators:
        label: Label = _indicated(cells, columns, place)
    else:
        label = None if columns.label is None else label_of(cells.get(columns.label), columns, place)
    return TextRow(
        id=id_of(cells, columns, place, number),
        text=text_of(cells, columns.text, columns.joined, place),
        pair=None if columns.pair is None else text_of(cells, columns.pair, columns.joined, place),
        label=label,
        place=place,
    )


def text_of(cells: Mapping[str, Any], name: str, joined: str | None, place: Place) -> str:
    """The text of a cell; ``joined`` is put between the items of a list, which is an error where it is None.

    Raises:
        DataError: There is none, or it is no text (exit 3), with the row.
    """
    value = cells.get(name)
    if value is None:
        raise DataError(f"Column {name!r} has no text here.", where=str(place), hint='An empty text is written "".')
    if isinstance(value, list | tuple) and joined is not None:
        value = joined.join(plain(item) for item in value)
    if isinstance(value, list | tuple | dict | bytes):
        raise DataError(f"Column {name!r} holds {_kind_of(value)}, where a text is asked for.", where=str(place))
    return of_characters(plain(value), name, place)


def of_characters(text: str, name: str, place: Place) -> str:
    """The text, which can be written as UTF-8.

    Raises:
        DataError: It holds half a surrogate pair (exit 3).
    """
    if (fault := no_character(text)) is not None:
        raise DataError(f"Column {name!r} holds {fault}.", where=str(place))
    return text


def id_of(cells: Mapping[str, Any], columns: Columns, place: Place, number: int) -> str:
    """The row's id: that of its column or, where there is none, its ``number``.

    Raises:
        DataError: It holds half a surrogate pair (exit 3).
    """
    given = cells.get(columns.id) if columns.id else None
    return str(number) if given is None else of_characters(plain(given), str(columns.id), place)


def _kind_of(value: Any) -> str:
    if isinstance(value, bytes):
        return "bytes that are not UTF-8"
    return "an object" if isinstance(value, dict) else "a list"


def plain(value: Any) -> str:
    """A cell of JSON or Parquet as text, spelled as JSON spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


class Labelled(Protocol):
    """A row with a label, or None, at a place."""

    @property
    def label(self) -> Any:
        """As its kind of row has it."""

    @property
    def place(self) -> Place:
        """Where it stands."""


R = TypeVar("R", bound=Labelled)


def decided(read: Callable[[RowReport], Iterator[R]], columns: Columns, report: RowReport) -> Iterator[R]:
    """The rows, without those that have no label where the columns say so (``no_label``); ``report`` counts them.

    Args:
        read: Reads all rows, from the first; it is asked twice where the columns say so.
        columns: Of the rows.
        report: Is given to ``read``, and grows with what comes out.
    """
    without = bool(columns.no_label) and any(row.label is not None for row in read(RowReport()))
    for row in read(report):
        if without and row.label is None:
            report.skip(row.place, "no label")
        else:
            report.rows += 1
            yield row


def label_of(value: Any, columns: Columns, place: Place) -> Label:
    """A label as its column's kind says; None where the cell is empty, or says that there is none.

    Raises:
        DataError: It is no finite number, or no number of a class.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):  # a missing cell of Parquet's
        return None
    if isinstance(value, str) and value.strip() == "":
        return () if columns.kind == "several" else None
    spelled = plain(value).strip()
    if spelled in columns.no_label or (columns.names and spelled == "-1"):  # as the hub's data sets hide a test part's classes
        return None
    if columns.kind == "number":
        return _number(value, columns, place)
    if columns.kind == "several":
        if isinstance(value, str) and _spells_a_list(value):
            raise DataError(
                f"Column {columns.label!r} holds a list spelled as a text, {value!r}.",
                where=str(place),
                hint=f"Part bare names by {columns.delimiter!r}, without brackets and quotes, or keep lists in JSON lines.",
            )
        names = value if isinstance(value, list | tuple) else plain(value).split(columns.delimiter)
        return tuple(_class(name, columns, place) for name in names)
    if isinstance(value, list | tuple):
        raise DataError(
            f"Column {columns.label!r} holds several labels, where one is asked for.",
            where=str(place),
            hint="`multilabel` is the task over texts with several.",
        )
    return _class(value, columns, place)


def _spells_a_list(text: str) -> bool:
    """Whether this is how Python (and so pandas, in a CSV) or JSON spells a list."""
    if not (text.lstrip().startswith("[") and text.rstrip().endswith("]")):
        return False
    try:
        return isinstance(ast.literal_eval(text.strip()), list)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def _indicated(cells: Mapping[str, Any], columns: Columns, place: Place) -> tuple[str, ...] | None:
    """The names whose columns say 1; None where all of them are empty."""
    values = {name: cells.get(name) for name in columns.indicators}
    if all(value is None or value == "" for value in values.values()):
        return None
    said = {name: _SWITCHES.get(plain(value).strip().casefold()) for name, value in values.items()}
    for name, value in said.items():
        if value is None:
            raise DataError(f"Column {name!r} should be 0 or 1, but holds {plain(values[name])!r}.", where=str(place))
    return tuple(name for name, value in said.items() if value)


def _number(value: Any, columns: Columns, place: Place) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"Column {columns.label!r} should be a number, but holds {plain(value)!r}.", where=str(place))
    return number


def _class(value: Any, columns: Columns, place: Place) -> str:
    """The class: a name as it stands or, where the file writes numbers or codes, the name that these stand for."""
    if value is None or isinstance(value, list | tuple | dict | bytes):
        what = "nothing" if value is None else _kind_of(value)
        raise DataError(f"Column {columns.label!r} holds {what}, where the name of a label is asked for.", where=str(place))
    name = of_characters(plain(value).strip(), str(columns.label), place)
    if not name:
        raise DataError(f"Column {columns.label!r} holds a label without a name.", where=str(place))
    if columns.aliases:
        return columns.aliases.get(name, name)
    if not columns.names:
        return name
    for known in columns.names:
        if known.casefold() == name.casefold():
            return known
    if name.isascii() and name.isdigit() and int(name) < len(columns.names):
        return columns.names[int(name)]
    known = f"{', '.join(columns.names)} or 0 to {len(columns.names) - 1}"
    raise DataError(f"Column {columns.label!r} holds {name!r}, which is none of {known}.", where=str(place))
