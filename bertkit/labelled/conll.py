"""CoNLL column files: a word a line with its tag in the last column, blank lines between sentences.

In comes such a file, out go :class:`TaggedRow` and its tagging scheme, and back out goes the same file with predicted tags.
Turning tags into entities is :mod:`bertkit.labelled.tags`' part. Format: Tjong Kim Sang and De Meulder 2003.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from bertkit.errors import DataError
from bertkit.labelled.files import read_utf8
from bertkit.labelled.rows import Place, RowReport, TaggedRow

# Only spaces and tabs part columns: a no-break or ideographic space may be a word of the file.
_GAP = re.compile("[ \t]+")
_END = re.compile("\r\n|\n|\r")
_DOCUMENT = "-DOCSTART-"


class _Line(NamedTuple):
    number: int
    raw: str
    cells: list[str]

    @property
    def kind(self) -> str:
        return "blank" if not self.cells else "document" if self.cells[0] == _DOCUMENT else "word"


def read_conll(path: Path, *, tagged: bool | None = None, strict: bool = False) -> tuple[list[TaggedRow], RowReport]:
    """Reads one file of tagged (or bare) words.

    The first column is the word and the last its tag; any columns between are kept. Columns are parted by any count of spaces
    or tabs. ``-DOCSTART-`` lines part documents and are neither words nor sentences.

    Args:
        path: The file.
        tagged: Whether the last column is a tag; None: where there are two columns or more.
        strict: Taken for the readers' sake: a word line with other columns is an error always, since leaving a word out
            would change its sentence.

    Raises:
        MissingError: There is no such file.
        DataError: A line has more or fewer columns than the first, or there is no word at all; file and line are named.
    """
    report = RowReport()
    rows = list(_sentences(_lines(path), path, tagged))
    if not rows:
        raise DataError("There is no word in the file.", where=str(path))
    report.rows = len(rows)
    return rows, report


def conll_records(
    records: Iterable[Mapping[str, Any]], *, source: str, words: str = "tokens", tags: str = "ner_tags"
) -> tuple[list[TaggedRow], RowReport]:
    """Rows of hub data or JSON lines: a list of words and one of tag names a record; records without tags have no gold.

    Raises:
        DataError: A record's words are no list of texts, or its tags are not as many as its words.
    """
    report = RowReport()
    rows = []
    for number, record in enumerate(records, 1):
        place = Place(source, number, "record")
        found, gold = record.get(words), record.get(tags)
        if not _texts(found):
            raise DataError(f"The column {words!r} holds no list of words.", where=str(place))
        if gold is not None and not (_texts(gold) and len(gold) == len(found)):
            raise DataError(
                f"The column {tags!r} does not hold one tag name for each of the {len(found)} words.", where=str(place)
            )
        rows.append(
            TaggedRow(
                id=str(number - 1),
                words=tuple(found),
                tags=None if gold is None else tuple(gold),
                columns=((),) * len(found),
                place=place,
            )
        )
    report.rows = len(rows)
    return rows, report


def tagged_lines(path: Path, tags: Iterable[Sequence[str]]) -> Iterator[str]:
    """The file's own lines again, a predicted tag behind each word: what conlleval reads where gold tags are there too.

    Blank lines and ``-DOCSTART-`` lines come out as they are. The file ends behind the last sentence that has tags.

    Args:
        path: The file that the sentences were read from.
        tags: One tag a word, a sequence a sentence, for the file's first sentences.

    Raises:
        DataError: The file has other sentences than the tags (it was changed meanwhile).
    """
    lines = list(_lines(path))
    tag_of: dict[int, str] = {}
    last = 0
    for numbers, sentence in zip(_grouped(lines), tags, strict=False):
        if len(numbers) != len(sentence):
            raise DataError(
                f"The sentence has {len(numbers)} words, but {len(sentence)} tags: the file has changed.",
                where=f"{path}, line {numbers[0]}",
            )
        tag_of.update(zip(numbers, sentence, strict=True))
        last = numbers[-1]
    rest = [line.number for line in lines if line.number > last and line.kind == "word"]
    end = rest[0] if rest else len(lines) + 1
    for line in lines:
        if line.number >= end:
            return
        # A tab where the file has tabs, so that a reader of its columns needs no new rule.
        gap = "\t" if "\t" in line.raw.strip(" \t") else " "
        yield line.raw.rstrip(" \t") + gap + tag_of[line.number] if line.number in tag_of else line.raw


def row_lines(rows: Iterable[TaggedRow], tags: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows that came from no file, as ``word [gold] predicted`` lines with a blank line behind each sentence."""
    for row, predicted in zip(rows, tags, strict=True):
        if row.document:
            yield f"{_DOCUMENT} -X- -X- O"
            yield ""
        golds = row.tags or (None,) * len(row.words)
        for word, gold, tag in zip(row.words, golds, predicted, strict=True):
            yield f"{word} {tag}" if gold is None else f"{word} {gold} {tag}"
        yield ""


def _lines(path: Path) -> Iterator[_Line]:
    lines = _END.split(read_utf8(path))
    for number, raw in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        stripped = raw.strip(" \t")
        yield _Line(number, raw, _GAP.split(stripped) if stripped else [])


def _grouped(lines: Iterable[_Line]) -> Iterator[list[int]]:
    numbers: list[int] = []
    for line in lines:
        if line.kind == "word":
            numbers.append(line.number)
        elif numbers:
            yield numbers
            numbers = []
    if numbers:
        yield numbers


def _sentences(lines: Iterator[_Line], path: Path, tagged: bool | None) -> Iterator[TaggedRow]:
    width, count, document = 0, 0, False
    words: list[_Line] = []
    for line in [*lines, _Line(0, "", [])]:
        if line.kind == "word":
            width = width or len(line.cells)
            if len(line.cells) != width:
                raise DataError(
                    f"The line has {len(line.cells)} columns, but the first word of the file has {width}.",
                    where=f"{path}, line {line.number}",
                    hint="Each word needs the same columns; a blank line parts sentences.",
                )
            words.append(line)
            continue
        if words:
            yield _row(words, path, str(count), document, _has_tags(width, tagged, path))
            words, document, count = [], False, count + 1
        document = document or line.kind == "document"


def _has_tags(width: int, tagged: bool | None, path: Path) -> bool:
    if tagged and width < 2:
        raise DataError(
            "The file has words, but no column of tags.", where=str(path), hint="Two columns are needed: word and tag."
        )
    return width > 1 if tagged is None else tagged


def _row(lines: Sequence[_Line], path: Path, identity: str, document: bool, tagged: bool) -> TaggedRow:
    end = -1 if tagged else None
    return TaggedRow(
        id=identity,
        words=tuple(line.cells[0] for line in lines),
        tags=tuple(line.cells[-1] for line in lines) if tagged else None,
        columns=tuple(tuple(line.cells[1:end]) for line in lines),
        document=document,
        place=Place(str(path), lines[0].number),
    )


def _texts(value: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value)
