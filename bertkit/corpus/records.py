"""JSON lines and Parquet: each record is one document, the text of one field; its line breaks part lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bertkit.corpus.lines import Span, split_lines
from bertkit.errors import DataError, nearest

_ROWS_BYTES = 4 << 20  # of text in a batch of rows, as far as their mean tells
_MOST_ROWS = 4096
_BUFFER = 1 << 20  # bytes of a column read at once


def json_spans(spans: Iterator[Span], field: str, name: str, *, replace: bool) -> Iterator[Span]:
    """The texts of JSON lines.

    Args:
        spans: The lines of the file.
        field: The field of the text.
        name: The file, for messages.
        replace: Half a surrogate pair becomes U+FFFD.

    Raises:
        DataError: A line is no JSON object, or its field is missing or no string; the line is named.
    """
    for span in spans:
        texts = _Texts(f"{name}, line", replace=replace)
        for index, line in enumerate(span.lines):
            if line and not line.isspace():
                number = span.number(index)
                texts.add(_text_of(line, field, f"{name}, line {number}"), number, halves="\\u" in line)
        yield texts.span(span.first, span.bytes, span.taken, span.replacements)


def _text_of(line: str, field: str, where: str) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        array = line.lstrip().startswith("[")
        reason = f"{error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise DataError(
            f"The line is no JSON: {reason}.",
            where=where,
            hint="JSON lines have one whole object on each line"
            + ("; an array becomes lines with `jq -c '.[]'`." if array else "."),
        ) from None
    if not isinstance(record, dict):
        raise DataError(
            f"The line holds {_kind(record)}, not an object with a field {field!r}.",
            where=where,
            hint="JSON lines have one object on each line; an array becomes lines with `jq -c '.[]'`.",
        )
    if field not in record:
        raise missing_field(field, list(record), where)
    text = record[field]
    if not isinstance(text, str):
        raise _no_string(field, _kind(text), where)
    return text


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", bool: "true or false", int: "a number", float: "a number", str: "a string"}
    return "null" if value is None else names[type(value)]


def missing_field(field: str, known: Sequence[str], where: str) -> DataError:
    """The error for a record without the text's field."""
    shown = ", ".join(map(repr, known[:20])) + (" …" if len(known) > 20 else "")
    return DataError(
        f"There is no field {field!r}.{nearest(field, known)}",
        where=where,
        hint=f"It has {shown or 'no field at all'}; --text-field names the one that holds the text.",
    )


def _no_string(field: str, kind: str, where: str) -> DataError:
    return DataError(
        f"The field {field!r} holds {kind}, not a string.",
        where=where,
        hint="Mend or leave out the record, or name another field with --text-field.",
    )


class _Texts:
    """Texts as lines, each text closed by None."""

    def __init__(self, where: str, *, replace: bool) -> None:
        self._where = where  # a record's number follows
        self._replace = replace
        self._lines: list[str | None] = []
        self._numbers: list[int] = []
        self._replacements = 0

    def add(self, text: str, number: int, *, halves: bool = False) -> None:
        """Adds the text of record ``number``; ``halves``: it may hold half a surrogate pair, which is no character."""
        if halves and not text.isascii():
            text = self._whole(text, number)
        lines: list[str | None] = [*split_lines(text), None]
        self._lines += lines
        self._numbers += [number] * len(lines)

    def add_bytes(self, data: bytes, number: int) -> None:
        """Adds the text of record ``number``, given in UTF-8."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            if not self._replace:
                raise DataError(
                    "The text is not UTF-8.",
                    where=f"{self._where} {number}, byte offset {error.start} of its text, byte 0x{data[error.start]:02X}",
                    hint="Convert the text to UTF-8, or give --encoding-errors replace.",
                ) from None
            text = data.decode(errors="replace")
            self._replacements += text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        self.add(text, number)

    def _whole(self, text: str, number: int) -> str:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            if not self._replace:
                raise DataError(
                    "The text holds half a surrogate pair, which is no character.",
                    where=f"{self._where} {number}, character {error.start} of its text, \\u{ord(text[error.start]):04x}",
                    hint="Mend the record, or give --encoding-errors replace.",
                ) from None
            mended = re.sub("[\ud800-\udfff]", "\ufffd", text)
            self._replacements += mended.count("\ufffd") - text.count("\ufffd")
            return mended
        return text

    def span(self, first: int, size: int, taken: int, replacements: int = 0) -> Span:
        """What was added, as a span."""
        return Span(
            lines=self._lines,
            first=first,
            bytes=size,
            taken=taken,
            replacements=replacements + self._replacements,
            numbers=self._numbers,
        )


def parquet_spans(file: Any, field: str, name: str, size: int, *, replace: bool) -> Iterator[Span]:
    """The texts of a Parquet file's column, some rows at a time: no row group is ever held whole.

    Args:
        file: A path or an open file that can seek.
        field: The column of the text.
        name: The file, for messages.
        size: Bytes of the file, for its progress.
        replace: Bytes that are not UTF-8 become U+FFFD.

    Raises:
        DataError: It is no Parquet file, is damaged, or its column is missing or holds no strings; the row is named.
    """
    import pyarrow as pa

    parquet = open_parquet(file, field, name)
    rows, row, taken = parquet.metadata.num_rows, 0, 0
    with _explained(name):
        batches = parquet.iter_batches(batch_size=_rows_at_once(parquet, field), columns=[field], use_threads=False)
        for batch in batches:
            texts, read = _Texts(f"{name}, row", replace=replace), 0
            column = batch.column(0)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            for number, data in enumerate(column.cast(pa.large_binary()).to_pylist(), row + 1):
                if data is None:
                    raise _no_string(field, "null", f"{name}, row {number}")
                texts.add_bytes(data, number)
                read += len(data)
            first, row = row + 1, row + batch.num_rows
            more, taken = size * row // rows - taken, size * row // rows
            yield texts.span(first, read, more)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Arrow's errors as ours; those of the system, which have a number, as they are."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            raise  # the disk's or the network's; Arrow's own have no number
        raise DataError(f"The Parquet file is damaged, or is none: {error}", where=name, hint="Fetch it again.") from None


def open_parquet(file: Any, field: str, name: str) -> Any:
    """The open Parquet file, its column looked up and its type checked.

    Raises:
        DataError: It is no Parquet file, or its column is missing or holds no strings.
    """
    import pyarrow as pa
    from pyarrow import parquet as pq

    with _explained(name):
        parquet = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    schema = parquet.schema_arrow
    if field not in schema.names:
        raise missing_field(field, schema.names, name)
    kind = schema.field(field).type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if str(plain) not in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view"):
        raise _no_string(field, f"values of type {kind}", name)
    return parquet


def _rows_at_once(parquet: Any, field: str) -> int:
    """Rows whose texts take some 4 MB where the rows of a group are alike."""
    return max(1, min(_MOST_ROWS, _ROWS_BYTES // max(1, mean_row(parquet, field))))


def mean_row(parquet: Any, field: str) -> int:
    """The bytes of a row's text, in the row group of the longest rows."""
    return max((size // max(1, rows) for rows, size in _groups(parquet, field)), default=0)


def column_bytes(parquet: Any, field: str) -> int:
    """The bytes of a column before it was packed."""
    return sum(size for _, size in _groups(parquet, field))


def _groups(parquet: Any, field: str) -> Iterator[tuple[int, int]]:
    """Rows and unpacked bytes of the column in each row group."""
    for index in range(parquet.metadata.num_row_groups):
        group = parquet.metadata.row_group(index)
        for column in range(group.num_columns):
            part = group.column(column)
            if part.path_in_schema == field:
                yield group.num_rows, part.total_uncompressed_size
