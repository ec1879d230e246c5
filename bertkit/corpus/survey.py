"""A look at a corpus' text beside its vocabulary: what repeats, which words are unknown, which scripts it is written in.

It reads the text once, and once more as far as needed to show the lines and documents that repeat. Memory holds a batch of
lines, whatever the size of the text.
"""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertkit.corpus.documents import CorpusSettings, Progress, ReadReport, read_lines
from bertkit.corpus.repeats import RepeatCounter, Repeats
from bertkit.corpus.shapes import Shapes
from bertkit.corpus.sources import Corpus
from bertkit.corpus.word_survey import Script, WordSurvey
from bertkit.corpus.wordpiece import WordPiece

LONG = 40
"""Characters of a long line: a sentence. Shorter ones are headings, names and dates, which come again in any text."""

GROUPS = 1000  # repeated lines whose text is looked up
SHOWN = 200  # characters kept of one
_AT_ONCE = 1 << 14  # hashes passed on at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A text that stands in the corpus more than once: its beginning, its characters in all (a document's: 0), how often."""

    text: str
    characters: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the text is like.

    Attributes:
        reading: What reading met.
        characters: Characters of the lines.
        long_lines: Repeats among lines of 40 characters or more.
        short_lines: Among shorter ones.
        documents: Among documents.
        line_groups: The lines that come most often, the most frequent first.
        document_groups: The documents, by their first line.
        scripts: By letters, the commonest first.
        unknown_words: The commonest words that became ``[UNK]``, with counts.
        unknown_sampled: Those counts are of a part of the lines.
        unknown_lowercased: Of the unknown words that were looked at, the share that the vocabulary has in small letters.
        shapes: Lines that are no plain prose.
    """

    reading: ReadReport
    characters: int
    long_lines: Repeats
    short_lines: Repeats
    documents: Repeats
    line_groups: tuple[Group, ...]
    document_groups: tuple[Group, ...]
    scripts: tuple[Script, ...]
    unknown_words: tuple[tuple[str, int], ...]
    unknown_sampled: bool
    unknown_lowercased: float
    shapes: Shapes


def survey_text(
    corpus: Corpus, settings: CorpusSettings, wordpiece: WordPiece, folder: Path, progress: Progress | None = None
) -> Survey:
    """Looks at a corpus.

    Args:
        corpus: Its sources.
        settings: What parts documents, and what a bad byte does.
        wordpiece: The vocabulary.
        folder: An empty folder for 8 bytes a line.
        progress: Told bytes done and bytes in all.

    Raises:
        DataError: A byte that is not UTF-8 under ``strict``.
    """
    words = WordSurvey(wordpiece)
    long, short = _Texts(folder / "long", GROUPS), _Texts(folder / "short", GROUPS)
    documents = _Texts(folder / "documents", 20)
    reading, shapes = ReadReport(), Shapes()
    document = hashlib.blake2b(digest_size=8)
    for line in read_lines(corpus, settings, reading, progress):
        if line is None:
            documents.add(document)
            document = hashlib.blake2b(digest_size=8)
            shapes.end_document()
        else:
            text = line.strip()
            data = text.encode("utf-8", "surrogatepass")
            document.update(data + b"\n")
            shapes.add(text)
            (short if len(text) < LONG else long).add(hashlib.blake2b(data, digest_size=8))
            words.add(text)
    words.flush()
    repeats = [texts.finish() for texts in (long, short, documents)]
    lines, texts = _groups(corpus, settings, repeats[0].largest + repeats[1].largest, repeats[2].largest)
    return Survey(
        reading=reading,
        characters=words.characters,
        long_lines=repeats[0],
        short_lines=repeats[1],
        documents=repeats[2],
        line_groups=lines,
        document_groups=texts,
        scripts=words.scripts(),
        unknown_words=tuple(words.unknown.most(20)),
        unknown_sampled=words.stride > 1 or words.unknown.lost > 0,
        unknown_lowercased=words.known_in_small_letters(),
        shapes=shapes,
    )


class _Texts:
    """Counts texts by their hashes; memory holds some thousand of them, however far a document's end is."""

    def __init__(self, folder: Path, largest: int) -> None:
        self._counter = RepeatCounter(folder, largest=largest)
        self._waiting = array("Q")

    def add(self, digest: hashlib.blake2b) -> None:
        self._waiting.append(_number(digest))
        if len(self._waiting) >= _AT_ONCE:
            self._pass_on()

    def finish(self) -> Repeats:
        self._pass_on()
        return self._counter.finish()

    def _pass_on(self) -> None:
        self._counter.add(np.array(self._waiting, dtype=np.uint64))
        del self._waiting[:]


def _number(digest: hashlib.blake2b) -> int:
    return int.from_bytes(digest.digest(), "little")


def _groups(
    corpus: Corpus, settings: CorpusSettings, lines: tuple[tuple[int, int], ...], documents: tuple[tuple[int, int], ...]
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """The texts of repeated lines and documents, read again up to where the last of them stands first."""
    wanted, texts = dict(lines), dict(documents)
    found: tuple[list[Group], list[Group]] = ([], [])
    document, opening = hashlib.blake2b(digest_size=8), ""
    for line in read_lines(corpus, settings, ReadReport()) if wanted or texts else ():
        if line is None:
            if (count := texts.pop(_number(document), None)) is not None:
                found[1].append(Group(text=opening[:SHOWN], characters=0, count=count))
            document, opening = hashlib.blake2b(digest_size=8), ""
        else:
            text = line.strip()
            data = text.encode("utf-8", "surrogatepass")
            document.update(data + b"\n")
            opening = opening or text
            if (count := wanted.pop(_number(hashlib.blake2b(data, digest_size=8)), None)) is not None:
                found[0].append(Group(text=text[:SHOWN], characters=len(text), count=count))
        if not wanted and not texts:
            break
    ordered = [tuple(sorted(groups, key=lambda group: (-group.count, group.text))) for groups in found]
    return ordered[0], ordered[1]


__all__ = ["LONG", "Group", "Survey", "survey_text"]
