"""Texts of any file, one by one and in order: a text a line, or a column of a table. Empty lines are texts too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from bertkit.corpus.lines import read_spans
from bertkit.corpus.unpacked import Unpacked
from bertkit.errors import MissingError, UsageError
from bertkit.labelled.cells import check_columns, row_of
from bertkit.labelled.columns import Columns
from bertkit.labelled.tables import open_table

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def texts_in(files: Sequence[str], column: str | None, stdin: TextIO) -> Iterator[str]:
    """The texts of some files, one file behind the other, read as they are taken: of any file no more than a block is in memory.

    Args:
        files: Paths; ``-`` is the standard input. Files that are no tables by their ending hold a text a line (``\\n``,
            ``\\r\\n`` or ``\\r``), also packed (``.gz``, ``.zst``).
        column: The column of the texts in tables; None: ``text``.
        stdin: The standard input.

    Raises:
        MissingError: A file is not there (exit 4).
        DataError: A byte is not UTF-8, or a table has no such column (exit 3).
        UsageError: A column is named, and no file is a table (exit 2).
    """
    tables = [Path(name).suffix.lower() in TABLES for name in files]
    if column is not None and not any(tables):
        raise UsageError(
            f"A column is named, and {files[0]} holds a text a line.",
            where="--text-column",
            hint=f"Tables end in {', '.join(TABLES)}.",
        )
    for name in files:
        if name != "-" and not Path(name).is_file():
            what = "This is a folder" if Path(name).is_dir() else "There is no such file"
            raise MissingError(f"{what}.", where=name, hint="Name files of texts, or - for the standard input.")
    for name, table in zip(files, tables, strict=True):
        yield from _column(Path(name), column) if table else _lines(name, stdin)


def _lines(name: str, stdin: TextIO) -> Iterator[str]:
    if name != "-":
        with Path(name).open("rb", buffering=0) as file:
            for span in read_spans(Unpacked(file, name), replace=False):
                yield from (line for line in span.lines if line is not None)
        return
    raw = getattr(stdin, "buffer", None)
    if raw is None:  # a text stream of Python's, in a notebook say
        yield from (line.rstrip("\r\n") for line in stdin)
        return
    for span in read_spans(Unpacked(raw, "stdin"), replace=False):
        yield from (line for line in span.lines if line is not None)


def _column(path: Path, column: str | None) -> Iterator[str]:
    columns = Columns(text=column or "text", label=None)
    known, records = open_table(path, only=(columns.text,))
    check_columns(known, columns, str(path))
    for number, (place, cells) in enumerate(records):
        yield row_of(cells, columns, place, number).text
