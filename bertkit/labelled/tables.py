"""People's own tables: CSV, TSV, JSON lines and Parquet to rows.

Every cell is text until its column says otherwise: ``null``, ``NA``, ``nan`` and the empty string are texts. A row that
does not fit its header is an error that names it; nothing is skipped and no kind of column is guessed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from bertkit.errors import DataError, UsageError, nearest
from bertkit.labelled.cells import check_columns, decided, labels_read, row_of
from bertkit.labelled.columns import Columns
from bertkit.labelled.files import read_lines, read_utf8
from bertkit.labelled.rows import Place, RowReport, TextRow
from bertkit.notices import say

Records = Iterator[tuple[Place, Mapping[str, Any]]]
Cells = Iterator[tuple[int, list[str]]]
_LOOKED_AT = 1000  # records at once
_BUFFER = 1 << 20  # bytes of a column at once: without it a group of rows, which may be a whole file, is read at once


def read_table(path: Path, columns: Columns) -> tuple[list[TextRow], RowReport]:
    """Rows of a table, by the ending of its name. Labels are None where the label's column is not there.

    Raises:
        UsageError: The ending is not known (exit 2).
        MissingError: The file is not there (exit 4).
        DataError: A column is not there, or a row does not fit (exit 3), with the row.
    """
    report = RowReport()
    return list(table_rows(path, columns, report)), report


def table_rows(path: Path, columns: Columns, report: RowReport) -> Iterator[TextRow]:
    """The same rows one after the other, while the file is read; ``report`` grows with them. Errors as :func:`read_table`."""

    def rows(into: RowReport) -> Iterator[TextRow]:
        known, records = open_table(path)
        check_columns(known, columns, str(path))
        into.columns = tuple(known)
        read = labels_read(known, columns, str(path))
        return (row_of(cells, read, place, number) for number, (place, cells) in enumerate(records))

    return decided(rows, columns, report)


def columns_of(path: Path) -> list[str]:
    """The names of a table's columns. Errors as :func:`read_table`."""
    return open_table(path)[0]


def open_table(path: Path, *, only: Sequence[str] | None = None) -> tuple[list[str], Records]:
    """The names of a table's columns, and its records with their places, read as they are taken.

    Args:
        path: The file.
        only: Columns that are asked for: a Parquet file's others are not read (None: all are).
    """
    ending = path.suffix.lower()
    if ending not in _READERS:
        raise UsageError(
            f"{path.name} ends in {ending or 'nothing'}: which kind of table is it?{nearest(ending, _READERS)}",
            where=str(path),
            hint=f"Name it {', '.join(_READERS)}."
            + (f" Texts alone, one a line, are for stdin: bertkit predict TASK < {path.name}" if ending == ".txt" else ""),
        )
    return _read_parquet(path, only) if ending == ".parquet" else _READERS[ending](path)


def _read_csv(path: Path) -> tuple[list[str], Records]:
    return _from_cells(_parse(path, ","), path)


def _read_tsv(path: Path) -> tuple[list[str], Records]:
    r"""Tab-separated: quotes are quotes where all of them are well formed, else characters, and that is said.

    ``"A b\tc\n`` is how GLUE-like files look, ``"two\nlines"`` how spreadsheets write: only a file in which every quoted
    cell closes before a tab or a line's end, and every row then has the header's count of cells, is the second. The file is
    read through for that once more.
    """
    if not any('"' in line for line in read_lines(path)):
        return _from_cells(_unquoted(path), path)
    try:
        quoted = len({len(cells) for _, cells in _parse(path, "\t")}) == 1
    except DataError:
        quoted = False
    if not quoted:
        say("tsv-quotes", f'{path}: quotes do not pair up into cells, so a " is a character there.')
        return _from_cells(_unquoted(path), path)
    if any(one != other for one, other in zip_longest(_parse(path, "\t"), _unquoted(path))):
        say("tsv-quotes", f"{path}: quoted cells are read as spreadsheets write them (the quotes go, line breaks inside stay).")
    return _from_cells(_parse(path, "\t"), path)


def _unquoted(path: Path) -> Cells:
    lines = (line.removesuffix("\n").removesuffix("\r") for line in read_lines(path))
    return ((number, line.split("\t")) for number, line in enumerate(lines, start=1) if line)


def _parse(path: Path, delimiter: str) -> Cells:
    """Cells of each record with the line on which it begins; blank lines between records are none."""
    csv.field_size_limit(2**31 - 1)  # the module's own limit of 131 072 characters is no property of the file
    reader = csv.reader(read_lines(path, end=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"The cells cannot be told apart: {error}.",
            where=f"{path}, line {line}",
            hint='A quote inside a quoted cell is written "".',
        ) from error


def _from_cells(parsed: Cells, path: Path) -> tuple[list[str], Records]:
    first = next(parsed, None)
    if first is None:
        raise DataError("The file is empty.", where=str(path))
    header = [name.strip() for name in first[1]]

    def records() -> Records:
        for number, (line, cells) in enumerate(parsed, start=1):
            if len(cells) != len(header):
                raise DataError(
                    f"Row {number} has {len(cells)} cells, but the header has {len(header)}.",
                    where=f"{path}, line {line}",
                    hint="Quote a text that holds a comma or a line break.",
                )
            yield Place(str(path), line), dict(zip(header, cells, strict=True))

    return header, records()


def _read_json_lines(path: Path) -> tuple[list[str], Records]:
    """Its columns are the names that its first thousand objects have: one of a text is in each of them."""
    parsed = (
        (Place(str(path), number), _json_object(line, f"{path}, line {number}"))
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip()
    )
    looked_at = list(islice(parsed, _LOOKED_AT))
    if not looked_at:
        raise DataError("The file is empty.", where=str(path))
    names: dict[str, None] = {}
    for _, record in looked_at:
        names.update(dict.fromkeys(record))
    return list(names), chain(looked_at, parsed)


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        # Numbers stay as they are spelled: 1.0 is the text "1.0".
        record = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The line is no JSON: {error}.", where=where) from error
    if not isinstance(record, dict):
        raise DataError(
            "The line is JSON, but no object with named columns.",
            where=where,
            hint='Write an object on each line: {"text": …, "label": …}.',
        )
    return record


def _read_parquet(path: Path, only: Sequence[str] | None = None) -> tuple[list[str], Records]:
    import pyarrow
    import pyarrow.parquet

    if not path.exists():
        read_utf8(path)
    try:
        file = pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER)
    except (pyarrow.ArrowException, OSError) as error:
        raise _no_parquet(path, error) from error
    names = _hub_label_names(file.schema_arrow.metadata or {})

    def records() -> Records:
        done = 0
        try:
            for batch in file.iter_batches(_LOOKED_AT, columns=only and list(only)):
                for number, row in enumerate(_rows_of(batch, path, done), start=done + 1):
                    yield Place(str(path), number, "row"), named_labels(row, names)
                done += batch.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise _no_parquet(path, error) from error

    return list(file.schema_arrow.names), records()


def _no_parquet(path: Path, error: Exception) -> DataError:
    return DataError(f"The file is no readable Parquet: {str(error).rstrip('.')}.", where=str(path))


def _rows_of(batch: Any, path: Path, before: int) -> list[dict[str, Any]]:
    """The records of a part of a table, behind ``before`` others; DataError with the row where a text is no UTF-8.

    Cells of bytes are texts to those writers that leave out the mark of a string (Hive, Impala); what is none stays bytes.
    """
    try:
        records: list[dict[str, Any]] = batch.to_pylist()
    except UnicodeDecodeError:
        for number in range(batch.num_rows):
            try:
                batch.slice(number, 1).to_pylist()
            except UnicodeDecodeError as error:
                where = f"{path}, row {before + number + 1}, byte offset {error.start} of its cell"
                found = f"Byte 0x{error.object[error.start]:02X} is not UTF-8."
                raise DataError(found, where=where, hint="Mend the row.") from None
        raise
    for record in records:
        record.update((name, _text(value)) for name, value in record.items() if isinstance(value, bytes))
    return records


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:  # a picture in a column that nobody asks for; a text's reader names it
        return value


def _hub_label_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Names of integer classes by column, which Hugging Face's writers leave in a Parquet file's schema."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        items = {name: feature.get("feature") or feature for name, feature in features.items()}  # of a list, its items
        return {name: item["names"] for name, item in items.items() if item.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def named_labels(record: Mapping[str, Any], names: Mapping[str, list[str]]) -> Mapping[str, Any]:
    """The record with its integer classes as their names; -1, which hides a label, becomes None."""
    named: dict[str, Any] = {}
    for column, known in names.items():
        value = record.get(column)
        if isinstance(value, int):
            named[column] = _class_name(value, known)
        elif isinstance(value, list):
            named[column] = [_class_name(each, known) if isinstance(each, int) else each for each in value]
    return {**record, **named}


def _class_name(number: int, names: list[str]) -> str | None:
    return names[number] if 0 <= number < len(names) else None


_READERS: dict[str, Callable[[Path], tuple[list[str], Records]]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_json_lines,
    ".json": _read_json_lines,
    ".parquet": _read_parquet,
}


def rows_from_records(records: Iterable[Mapping[str, Any]], columns: Columns, source: str) -> tuple[list[TextRow], RowReport]:
    """Rows of records from elsewhere (the hub), whose classes are names already.

    Raises:
        DataError: A column is not there, or a record does not fit (exit 3).
    """
    rows: list[TextRow] = []
    known: tuple[str, ...] = ()
    for number, record in enumerate(records):
        if not number:
            known = tuple(record)
            check_columns(known, columns, source)
            columns = labels_read(known, columns, source)
        rows.append(row_of(record, columns, Place(source, number + 1, "row"), number))
    report = RowReport(columns=known)
    return list(decided(lambda _: iter(rows), columns, report)), report
