"""The rows of task files: what every reader of ``labelled`` gives and every task kind takes.

Texts are as they stand in the file, letter for letter. A label is its name, never a number of a head: the kinds map names
to numbers. A row knows its place in its file, so that a fault found later can still be named by file and line.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bertkit.errors import DataError
from bertkit.labelled.tags import Scheme


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands: a file (or hub data set) and its line or record, counted from 1; 0 where there is none."""

    file: str
    line: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.line}" if self.line else self.file


NOWHERE = Place("", 0)

LATER = {"later": True}
"""Marks a field that rows once did not have: at its default it is no part of fingerprints, so that runs begun before go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """A text or a pair with its label.

    Attributes:
        id: The file's own id, else the row's number from 0.
        text: The (first) text.
        pair: The second text, or None where the task has one text a row.
        label: A name, a number (regression), several names (multi-label), or None where the row has no gold.
        place: Where the row stands.
    """

    id: str
    text: str
    pair: str | None = None
    label: str | float | tuple[str, ...] | None = None
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedRow:
    """A sentence of words with one tag each.

    Attributes:
        id: The sentence's number from 0.
        words: The words as the file has them.
        tags: One a word, in the file's own scheme until the kind converts them; None where the row has no gold.
        columns: The other columns of each word (part of speech, …), so that predictions can be written as the file was.
        document: True where the sentence is the first behind a ``-DOCSTART-`` line.
        text: The raw text that the words were cut out of; None where they came as words.
        offsets: Of a raw text the characters of each word, (first, behind the last); else empty.
        scheme: That of all tags of the file (``labelled.tags``), whichever of its rows are at hand; None: those say it.
        place: Where the first word stands.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    columns: tuple[tuple[str, ...], ...] = ()
    document: bool = False
    text: str | None = field(default=None, metadata=LATER)
    offsets: tuple[tuple[int, int], ...] = field(default=(), metadata=LATER)
    scheme: Scheme | None = field(default=None, metadata=LATER)
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Answer:
    """A gold answer: its text and the character of the context at which the file says it starts."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """A question on a context, never stripped or re-spaced.

    Attributes:
        id: The official id.
        question: The question.
        context: The paragraph.
        answers: Gold answers; empty where there is none.
        impossible: True where the file says, or has no answer that says otherwise, that the context does not answer it.
        labelled: False where the file gives neither answers nor is_impossible (a test part).
        nullable: True where the file says that its questions may have no answer (2.0), whatever this one has.
        title: The article.
        place: Where the row stands.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    impossible: bool = False
    labelled: bool = True
    nullable: bool = False
    title: str = ""
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRow:
    """A context with candidates, one of which is right.

    Attributes:
        id: The file's own id, else the row's number from 0.
        context: What the candidates are judged by.
        question: What stands before each candidate: a question, or the beginning of a sentence; empty where there is none.
        candidates: Two or more; their count may differ from row to row.
        label: The place of the right one, from 0, or None where the row has no gold.
        place: Where the row stands.
    """

    id: str
    context: str
    question: str = ""
    candidates: tuple[str, ...]
    label: int | None = None
    place: Place = NOWHERE


_TEXTS = ("text", "pair", "words", "context", "question", "candidates", "good", "bad")


def texts_fingerprint(rows: Iterable[object]) -> str:
    """16 hex digits of what a model reads of rows of any kind, BLiMP's pairs among them: neither ids nor golds."""
    digest = hashlib.sha256()
    for row in rows:
        texts = [value for name in _TEXTS if (value := getattr(row, name, None)) is not None]
        digest.update(repr(texts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row left out of the training or the file: where it stands and why."""

    place: Place
    reason: str


@dataclass(slots=True)
class RowReport:
    """What a reader found: rows given, rows skipped and why, and the columns that the file has. It grows while a file is read."""

    rows: int = 0
    columns: tuple[str, ...] = ()
    skipped: list[Skipped] = field(default_factory=list)

    def skip(self, place: Place, reason: str, *, strict: bool = False) -> None:
        """Counts a row that is left out; with ``strict`` it is an error.

        Raises:
            DataError: ``strict`` is true.
        """
        if strict:
            raise DataError(
                f"A row cannot be read: {reason}.",
                where=str(place),
                hint="Mend the row, or leave --strict out to skip and count it.",
            )
        self.skipped.append(Skipped(place, reason))

    def summary(self, show: int = 5) -> str | None:
        """One sentence on the rows left out, the first few by place; None where there is none."""
        if not self.skipped:
            return None
        reasons = Counter(skipped.reason for skipped in self.skipped)
        shown = "; ".join(f"{skipped.place}: {skipped.reason}" for skipped in self.skipped[:show])
        more = f"; and {len(self.skipped) - show} more ({', '.join(f'{n}x {r}' for r, n in reasons.most_common(3))})"
        return f"{len(self.skipped)} rows were skipped: {shown}{more if len(self.skipped) > show else ''}."
