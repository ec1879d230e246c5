"""GLUE's files: tab-separated, without quoting, columns by the header's names, in which a ``"`` is a character.

A row with too few or too many cells is skipped, counted and located: columns never shift. The published archives are
described with the tasks' declarations; CoLA's train and dev parts have no header, which is seen from their first line.
"""

from __future__ import annotations

from pathlib import Path

from bertkit.errors import DataError
from bertkit.labelled.cells import check_columns, decided, row_of
from bertkit.labelled.columns import Columns
from bertkit.labelled.files import lines_of, read_utf8
from bertkit.labelled.rows import Place, RowReport, TextRow


def read_glue(path: Path, columns: Columns, *, strict: bool = False) -> tuple[list[TextRow], RowReport]:
    """Rows of one file. Labels are None where the label's column is not there (test parts).

    Raises:
        MissingError: The file is not there (exit 4).
        DataError: It is not UTF-8, is empty, lacks a column, or ``strict`` and a row is malformed (exit 3).
    """
    lines = lines_of(read_utf8(path))
    if not lines:
        raise DataError("The file is empty.", where=str(path))
    header, first = _header(lines[0], columns, path)
    report = RowReport()
    rows: list[TextRow] = []
    for number, line in enumerate(lines[first:], start=first + 1):
        cells = line.split("\t")
        place = Place(str(path), number)
        if len(cells) != len(header):
            report.skip(place, f"{len(cells)} columns instead of {len(header)}", strict=strict)
            continue
        rows.append(row_of(dict(zip(header, cells, strict=True)), columns, place, len(rows)))
    report.columns = tuple(name for name in header if name)
    return decided(rows, columns, report), report


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
