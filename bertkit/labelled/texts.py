"""Every text of a task's files, whatever the task: for looking whether it stands in a corpus.

Files are known by their endings: SQuAD's JSON, tables (CSV, JSON lines, Parquet), TSV without quoting as GLUE's, CoNLL
columns, and else a text a line. Nothing is taken for a label or an index: short cells fall away with whoever looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import DataError, MissingError, nearest
from bertkit.labelled.conll import read_conll
from bertkit.labelled.files import lines_of, read_utf8
from bertkit.labelled.squad import read_squad
from bertkit.labelled.tables import open_table
from bertkit.notices import say

ENDINGS = (".json", ".csv", ".jsonl", ".parquet", ".tsv", ".txt", ".conll", ".iob", ".bio", ".dev", ".test")
_EVALUATION = re.compile(r"(^|[^a-z])(dev|val|valid|validation|test|eval|trial|diagnostic)([^a-z]|$)", re.IGNORECASE)
_TRAINING = re.compile(r"(^|[^a-z])train", re.IGNORECASE)
_TAG = re.compile(r"O|[BIESU]-\S+")
_LOOKED_AT = 200  # lines by which columns are known


@dataclass(frozen=True, slots=True)
class RowTexts:
    """One row: where it stands, and its texts."""

    place: str
    texts: tuple[str, ...]


def evaluation_files(path: Path) -> list[Path]:
    """The files of a task's evaluation: a file as it is; of a folder those named dev, valid, test …, else all but train.

    Raises:
        MissingError: There is no such path, or the folder has no task file.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        near = nearest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise MissingError(f"There is no file or folder {path}.{near}", where=str(path))
    inside = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in ENDINGS and not p.name.startswith("."))
    named = [p for p in inside if _EVALUATION.search(p.name) and not _TRAINING.search(p.name)]
    taken = named or [p for p in inside if not _TRAINING.search(p.name)]
    if not taken:
        raise MissingError(
            "The folder has no evaluation file.",
            where=str(path),
            hint="Name the files themselves: .tsv, .csv, .jsonl, .parquet, SQuAD's .json or CoNLL columns.",
        )
    return taken


def files_with_texts(path: Path) -> Iterator[tuple[Path, Iterator[RowTexts]]]:
    """Each evaluation file with its rows; of a folder, a file that is no task's is left out and said.

    Raises:
        BertkitError: As the readers, for a file that is named itself.
    """
    for file in evaluation_files(path):
        try:
            yield file, iter(list(row_texts(file)))
        except DataError as error:
            if path.is_file():
                raise
            say("not-a-task-file", f"{file} is left out: {error.message}")


def row_texts(path: Path) -> Iterator[RowTexts]:
    """The rows of a file.

    Raises:
        DataError: It cannot be read.
    """
    for row in _rows(path):
        for text in row.texts:
            try:
                text.encode()
            except UnicodeEncodeError as error:  # JSON can spell it, and no tokenizer takes it
                half = f"U+{ord(text[error.start]):04X}"
                raise DataError(
                    f"The row holds half a surrogate pair ({half}), which is no character.", where=row.place
                ) from None
        yield row


def _rows(path: Path) -> Iterator[RowTexts]:
    ending = path.suffix.lower()
    if ending == ".json" and not _is_json_lines(path):
        for question in read_squad(path)[0]:
            yield RowTexts(str(question.place), (question.context, question.question))
    elif ending in (".csv", ".jsonl", ".json", ".parquet"):
        for place, record in open_table(path)[1]:
            yield RowTexts(str(place), tuple(value for value in record.values() if isinstance(value, str)))
    elif ending != ".tsv" and _has_tags(lines := lines_of(read_utf8(path))):
        for row in read_conll(path)[0]:
            yield RowTexts(str(row.place), (" ".join(row.words),))
    else:
        lines = lines_of(read_utf8(path))
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield RowTexts(f"{path}, line {number}", tuple(cell for cell in line.split("\t") if cell.strip()))


def _is_json_lines(path: Path) -> bool:
    """Whether the first of several lines is an object of its own, as in CLUE's files; SQuAD's are one object of all articles."""
    first = [line for line in lines_of(read_utf8(path)) if line.strip()][:2]
    try:
        record = json.loads(first[0])
    except (IndexError, ValueError, RecursionError):
        return False
    return len(first) > 1 and isinstance(record, dict)


def _has_tags(lines: list[str]) -> bool:
    """Whether these are columns with a tag in the last."""
    cells = [line.split() for line in lines[:_LOOKED_AT] if line.strip() and not line.startswith("-DOCSTART-")]
    return bool(cells) and all(2 <= len(row) <= 12 and _TAG.fullmatch(row[-1]) is not None for row in cells)
