"""Cells to rows: what the readers of tables share. A cell is text until its column says otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bertkit.errors import DataError, nearest
from bertkit.labelled.columns import Columns
from bertkit.labelled.rows import Place, RowReport, TextRow

Label = str | float | tuple[str, ...] | None


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


def row_of(cells: Mapping[str, Any], columns: Columns, place: Place, number: int) -> TextRow:
    """One row of named cells; ``number`` is its id where no column gives one.

    Raises:
        DataError: A text is no text, or a label cannot be what its column says (exit 3), with the row.
    """
    identity = cells.get(columns.id) if columns.id else None
    return TextRow(
        id=str(number) if identity is None else str(identity),
        text=_text(cells, columns.text, place),
        pair=None if columns.pair is None else _text(cells, columns.pair, place),
        label=None if columns.label is None else label_of(cells.get(columns.label), columns, place),
        place=place,
    )


def _text(cells: Mapping[str, Any], name: str, place: Place) -> str:
    value = cells.get(name)
    if value is None:
        raise DataError(f"Column {name!r} has no text here.", where=str(place), hint='An empty text is written "".')
    text = plain(value)
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"Column {name!r} holds half a surrogate pair (U+{ord(text[error.start]):04X}), which is no character.",
                where=str(place),
            ) from error
    return text


def plain(value: Any) -> str:
    """A cell of JSON or Parquet as text, spelled as JSON spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def decided(rows: list[TextRow], columns: Columns, report: RowReport) -> list[TextRow]:
    """The rows, without those that have no label where the columns say so (``no_label``); ``report`` counts them."""
    if columns.no_label and any(row.label is not None for row in rows):
        for row in rows:
            if row.label is None:
                report.skip(row.place, "no label")
        rows = [row for row in rows if row.label is not None]
    report.rows = len(rows)
    return rows


def label_of(value: Any, columns: Columns, place: Place) -> Label:
    """A label as its column's kind says; None where the cell is empty, or says that there is none.

    Raises:
        DataError: It is no finite number, or no number of a class.
    """
    if value is None or (isinstance(value, str) and value.strip() == ""):
        return () if columns.kind == "several" and value is not None else None
    if columns.no_label and plain(value).strip() in columns.no_label:
        return None
    if columns.kind == "number":
        return _number(value, columns, place)
    if columns.kind == "several":
        names = value if isinstance(value, list | tuple) else str(value).split(columns.delimiter)
        return tuple(_class(plain(name).strip(), columns, place) for name in names)
    if isinstance(value, list | tuple | dict):
        raise DataError(f"Column {columns.label!r} holds several labels, where one is asked for.", where=str(place))
    return _class(plain(value).strip(), columns, place)


def _number(value: Any, columns: Columns, place: Place) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"Column {columns.label!r} should be a number, but holds {plain(value)!r}.", where=str(place))
    return number


def _class(name: str, columns: Columns, place: Place) -> str:
    """The class: a name as it stands or, where the file writes numbers, the name of that number."""
    if not columns.names:
        return name
    for known in columns.names:
        if known.casefold() == name.casefold():
            return known
    if name.isascii() and name.isdigit() and int(name) < len(columns.names):
        return columns.names[int(name)]
    known = f"{', '.join(columns.names)} or 0 to {len(columns.names) - 1}"
    raise DataError(f"Column {columns.label!r} holds {name!r}, which is none of {known}.", where=str(place))
