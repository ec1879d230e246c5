"""GLUE's files: tab-separated, without quoting, columns by the header's names, in which a ``"`` is a character.

A row with too few or too many cells is skipped, counted and located: columns never shift. The published archives are
described with the tasks' declarations; CoLA's train and dev parts have no header, which is seen from their first line.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from bertkit.errors import DataError
from bertkit.labelled.cells import check_columns, decided, row_of
from bertkit.labelled.columns import Columns
from bertkit.labelled.files import read_lines
from bertkit.labelled.rows import Place, RowReport, TextRow


def read_glue(path: Path, columns: Columns, *, strict: bool = False) -> tuple[list[TextRow], RowReport]:
    """Rows of one file. Labels are None where the label's column is not there (test parts).

    Raises:
        MissingError: The file is not there (exit 4).
        DataError: It is not UTF-8, is empty, lacks a column, or ``strict`` and a row is malformed (exit 3).
    """
    report = RowReport()
    return list(glue_rows(path, columns, report, strict=strict)), report


def glue_rows(path: Path, columns: Columns, report: RowReport, *, strict: bool = False) -> Iterator[TextRow]:
    """The same rows one after the other, while the file is read; ``report`` grows with them. Errors as :func:`read_glue`."""
    return decided(lambda into: _rows(path, columns, into, strict), columns, report)


def _rows(path: Path, columns: Columns, report: RowReport, strict: bool) -> Iterator[TextRow]:
    lines = (line.removesuffix("\n").removesuffix("\r") for line in read_lines(path))
    opening = next(lines, None)
    if opening is None:
        raise DataError("The file is empty.", where=str(path))
    header, first = _header(opening, columns, path)
    report.columns = tuple(name for name in header if name)
    given = 0
    for number, line in enumerate(lines if first else chain([opening], lines), start=first + 1):
        cells = line.split("\t")
        place = Place(str(path), number)
        if len(cells) != len(header):
            report.skip(place, f"{len(cells)} columns instead of {len(header)}", strict=strict)
            continue
        yield row_of(dict(zip(header, cells, strict=True)), columns, place, given)
        given += 1


def _header(line: str, columns: Columns, path: Path) -> tuple[list[str], int]:
    """Names of the columns, and the count of header lines."""
    header = line.split("\t")
    if columns.text in header or not columns.positions:
        check_columns(header, columns, f"{path}, line 1")
        return header, 1
    if len(header) != columns.width:
        raise DataError(
            f"The first line has {len(header)} columns: neither a header with {columns.text!r} nor a row of {columns.width}.",
            where=f"{path}, line 1",
        )
    named = [""] * len(header)
    for role, position in columns.positions.items():
        named[position] = getattr(columns, role)
    return named, 0
