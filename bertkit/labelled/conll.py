"""CoNLL column files: a word a line with its tag in a column behind it, blank lines between sentences.

In comes such a file, out go :class:`TaggedRow`, one by one, and back out goes the same file with predicted tags.
Turning tags into entities is :mod:`bertkit.labelled.tags`' part. Format: Tjong Kim Sang and De Meulder 2003.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import NamedTuple

from bertkit.errors import DataError
from bertkit.labelled.files import read_lines
from bertkit.labelled.rows import Place, RowReport, TaggedRow

# Only spaces and tabs part columns: a no-break or ideographic space may be a word of the file.
_GAP = re.compile("[ \t]+")
_TAG = re.compile(r"O|[BILUMESW](-\S+)?")
_DOCUMENT = "-DOCSTART-"
_LOOKED_AT = 200  # lines by which words are told from running text
_SENTENCE_END = re.compile(r"\w[.!?…。！？][\"'”’»)」』]*\s*$")  # of a line; punctuation of columns stands on a line of its own
_NUMBERED = re.compile(r"(.)\ufffd?\d+", re.DOTALL)  # a broken character of weiboNER_2nd_conll is two U+FFFD


class _Line(NamedTuple):
    number: int
    raw: str
    cells: list[str]

    @property
    def kind(self) -> str:
        return "blank" if not self.cells else "document" if self.cells[0] == _DOCUMENT else "word"


_LAST = _Line(0, "", [])  # behind the file: whatever is open there is closed as by a blank line


class _Places(NamedTuple):
    """Places in a line, from 0, of the word and of its tag; None where there is no tag."""

    word: int
    tag: int | None


def read_conll(
    path: Path,
    *,
    tagged: bool | None = None,
    word: int = 1,
    tag: int | None = None,
    characters: bool = False,
    strict: bool = False,
) -> tuple[list[TaggedRow], RowReport]:
    """Reads one file of tagged (or bare) words.

    The first column is the word and the last its tag, or those that are named; any others are kept. Columns are parted by
    any count of spaces or tabs. ``-DOCSTART-`` lines part documents and are neither words nor sentences.

    Args:
        path: The file.
        tagged: Whether there is a column of tags; None: where there are two columns or more.
        word: The column of the words, from 1.
        tag: The column of the tags, from 1; None: the last one.
        characters: Each word is one character. Where all of them have their position in their word behind them, as in
            weiboNER_2nd_conll (``口0``), that goes.
        strict: Taken for the readers' sake: a word line with other columns is an error always, since leaving a word out
            would change its sentence.

    Raises:
        MissingError: There is no such file.
        DataError: A line has more or fewer columns than the first, there is no such column, or no word at all; file and
            line are named.
    """
    rows = list(each_sentence(path, tagged=tagged, word=word, tag=tag, characters=characters))
    return rows, RowReport(rows=len(rows))


def each_sentence(
    path: Path, *, tagged: bool | None = None, word: int = 1, tag: int | None = None, characters: bool = False
) -> Iterator[TaggedRow]:
    """The same one by one, while the file is read; of ``characters`` it is looked through once more before."""

    def sentences() -> Iterator[TaggedRow]:
        return _sentences(_lines(path), path, tagged, _Places(word - 1, None if tag is None else tag - 1))

    numbered = characters and all(_NUMBERED.fullmatch(each) for row in sentences() for each in row.words)
    row: TaggedRow | None = None
    for row in sentences():
        yield replace(row, words=tuple(_NUMBERED.sub(r"\1", each) for each in row.words)) if numbered else row
    if row is None:
        raise DataError("There is no word in the file.", where=str(path))


def is_running_text(path: Path, *, characters: bool = False) -> bool:
    """Whether a file has a sentence of running text on each line rather than a word with its columns, by its first lines.

    Columns end in tags of entities; others are as many on most lines, and blank lines part sentences of several words; but
    lines that mostly end as sentences do are sentences. A single column is words, one a line; but where ``characters`` are
    the words, and a line has more, it is text.
    """
    head = list(islice(_lines(path), _LOOKED_AT))
    words = [line for line in head if line.kind == "word"]
    if not words or any(line.kind == "document" for line in head):
        return False
    counts = Counter(len(line.cells) for line in words)
    if set(counts) == {1}:
        cells = [line.cells[0] for line in words]
        return characters and any(len(cell) > 1 and not _NUMBERED.fullmatch(cell) for cell in cells)
    tags = sum(len(line.cells) > 1 and _TAG.fullmatch(line.cells[-1]) is not None for line in words)
    alike = counts.most_common(1)[0][1]
    sentences = [len(list(lines)) for kind, lines in groupby(head, key=lambda line: line.kind) if kind == "word"]
    parted = len(sentences) > 1 and max(sentences) > 1
    ended = sum(_SENTENCE_END.search(line.raw) is not None for line in words)
    return not (2 * tags >= len(words) or (2 * alike >= len(words) and parted and 2 * ended <= len(words)))


def tagged_lines(path: Path, tags: Iterable[Sequence[str]]) -> Iterator[str]:
    """The file's own lines again, a predicted tag behind each word: what conlleval reads where gold tags are there too.

    Blank lines and ``-DOCSTART-`` lines come out as they are. The file ends behind the last sentence that has tags.

    Args:
        path: The file that the sentences were read from.
        tags: One tag a word, a sequence a sentence, for the file's first sentences.

    Raises:
        DataError: The file has other sentences than the tags (it was changed meanwhile).
    """
    predicted = iter(tags)
    words: list[_Line] = []
    found: Sequence[str] | None = None
    for line in chain(_lines(path), [_LAST]):
        if line.kind == "word":
            if not words and (found := next(predicted, None)) is None:
                return
            words.append(line)
            continue
        if words and found is not None:
            yield from _with_tags(words, found, path)
            words = []
        if line is not _LAST:
            yield line.raw


def _with_tags(words: Sequence[_Line], tags: Sequence[str], path: Path) -> Iterator[str]:
    if len(words) != len(tags):
        raise DataError(
            f"The sentence has {len(words)} words, but {len(tags)} tags: the file has changed.",
            where=f"{path}, line {words[0].number}",
        )
    for line, tag in zip(words, tags, strict=True):
        # A tab where the file has tabs, so that a reader of its columns needs no new rule.
        gap = "\t" if "\t" in line.raw.strip(" \t") else " "
        yield line.raw.rstrip(" \t") + gap + tag


def row_lines(rows: Iterable[TaggedRow], tags: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows that came from no file, as ``word [gold] predicted`` lines with a blank line behind each sentence."""
    for row, predicted in zip(rows, tags, strict=True):
        if row.document:
            yield f"{_DOCUMENT} -X- -X- O"
            yield ""
        golds = row.tags or (None,) * len(row.words)
        for word, gold, tag in zip(row.words, golds, predicted, strict=True):
            yield f"{as_cell(word)} {tag}" if gold is None else f"{as_cell(word)} {gold} {tag}"
        yield ""


def as_cell(word: str) -> str:
    """A word of records as one cell of columns, which has no space or line end within and is not empty: ``_`` stands there."""
    return re.sub(r"[ \t\r\n]+", "_", word) or "_"


def _lines(path: Path) -> Iterator[_Line]:
    for number, line in enumerate(read_lines(path, end=""), 1):
        raw = line.rstrip("\r\n")
        stripped = raw.strip(" \t")
        yield _Line(number, raw, _GAP.split(stripped) if stripped else [])


def _sentences(lines: Iterator[_Line], path: Path, tagged: bool | None, wanted: _Places) -> Iterator[TaggedRow]:
    width, count, document = 0, 0, False
    words: list[_Line] = []
    for line in chain(lines, [_LAST]):
        if line.kind == "word":
            width = width or len(line.cells)
            if len(line.cells) != width:
                raise DataError(
                    f"The line has {len(line.cells)} columns, but the first word of the file has {width}.",
                    where=f"{path}, line {line.number}",
                    hint="Each word needs the same columns, and a blank line parts sentences.",
                )
            words.append(line)
            continue
        if words:
            places = _places(wanted, width, tagged, f"{path}, line {words[0].number}")
            yield _row(words, path, str(count), document, places)
            words, document, count = [], False, count + 1
        document = document or line.kind == "document"


def _places(wanted: _Places, width: int, tagged: bool | None, where: str) -> _Places:
    """Where word and tag stand in lines of ``width`` columns."""
    if tagged and width < 2:
        raise DataError("The file has words, but no column of tags.", where=where, hint="Two columns are needed: word and tag.")
    bare = tagged is False or (tagged is None and width == 1)
    tag = None if bare else width - 1 if wanted.tag is None else wanted.tag
    for flag, place in (("--text-column", wanted.word), ("--label-column", tag)):
        if place is not None and place >= width:
            raise DataError(f"There is no column {place + 1}: the line has {width}.", where=where, hint=f"{flag} counts from 1.")
    return _Places(wanted.word, tag)


def _row(lines: Sequence[_Line], path: Path, identity: str, document: bool, places: _Places) -> TaggedRow:
    tag = places.tag
    return TaggedRow(
        id=identity,
        words=tuple(line.cells[places.word] for line in lines),
        tags=None if tag is None else tuple(line.cells[tag] for line in lines),
        columns=tuple(tuple(cell for at, cell in enumerate(line.cells) if at not in places) for line in lines),
        document=document,
        place=Place(str(path), lines[0].number),
    )
