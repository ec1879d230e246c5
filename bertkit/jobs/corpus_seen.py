"""What of validation texts and of tasks' evaluation files stands in a token store, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.overlap import LEAST, find_overlap
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console
from bertkit.jobs.corpus_judgement import FOUND, Seen
from bertkit.labelled.texts import RowTexts, files_with_texts

_CHARACTERS = 8_000_000  # of rows looked for in one pass over the store
_EXAMPLES = 20
_SHOWN = 120  # characters of an example


def seen_in(
    store: CorpusStore,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    console: Console,
    *,
    validation: Sequence[str] = (),
    against: Sequence[str] = (),
) -> list[Seen]:
    """Looks for every document of the validation texts and every row of the evaluation files.

    Raises:
        BertkitError: A file cannot be read.
    """
    sources = list(_sources(settings, validation, against))
    found = []
    with console.progress("Looking for other texts", total=len(sources), safe=True) as update:
        for number, (source, rows, is_validation) in enumerate(sources):
            update(number, note=Path(source).name)
            found.append(_Search(store, wordpiece, lambda *_: console.stop.check()).seen(source, rows, validation=is_validation))
            update(number + 1)
    return found


def _sources(
    settings: CorpusSettings, validation: Sequence[str], against: Sequence[str]
) -> Iterator[tuple[str, Iterable[RowTexts], bool]]:
    """Each file, its rows, and whether it is a validation text."""
    for name in validation:
        yield name, _documents(name, settings), True
    for name in against:
        for path, rows in files_with_texts(Path(name)):
            yield str(path), rows, False


def _documents(name: str, settings: CorpusSettings) -> Iterator[RowTexts]:
    for number, lines in enumerate(read_documents(open_corpus([name], settings), settings, ReadReport()), start=1):
        yield RowTexts(f"{name}, document {number}", ("\n".join(lines),))


class _Search:
    """Looks for rows in a store."""

    def __init__(self, store: CorpusStore, wordpiece: WordPiece, progress: Callable[[int, int], None]) -> None:
        self._store, self._wordpiece, self._progress = store, wordpiece, progress
        self._asked = self._short = self._found = 0
        self._examples: dict[str, dict[str, str | int]] = {}  # by text: SQuAD's questions share a context

    def seen(self, source: str, rows: Iterable[RowTexts], *, validation: bool) -> Seen:
        """Looks for all rows of a file."""
        for batch in _batches(rows):
            self._look(batch)
        return Seen(
            source=source,
            validation=validation,
            rows=self._asked,
            short=self._short,
            found=self._found,
            examples=tuple(self._examples.values()),
        )

    def _look(self, rows: list[RowTexts]) -> None:
        texts = list(dict.fromkeys(text for row in rows for text in row.texts))
        overlap = find_overlap(self._store, self._wordpiece.encode(texts), progress=self._progress)
        places = {
            text: place for text, place, hit in zip(texts, overlap.places.tolist(), overlap.shares >= FOUND, strict=True) if hit
        }
        long = {text for text, length in zip(texts, overlap.lengths, strict=True) if length >= LEAST}
        for row in rows:
            if not long.intersection(row.texts):
                self._short += 1
                continue
            self._asked += 1
            text = next((text for text in row.texts if text in places), None)
            if text is not None:
                self._found += 1
                if len(self._examples) < _EXAMPLES and text not in self._examples:
                    document = _document(self._store.document_ends, places[text])
                    self._examples[text] = {"where": row.place, "text": text[:_SHOWN], "document": document}


def _document(ends: NDArray[Any], place: int) -> int:
    """The number, from 1, of the document that a token belongs to."""
    return int(np.searchsorted(ends, place, side="right")) + 1


def _batches(rows: Iterable[RowTexts]) -> Iterator[list[RowTexts]]:
    batch: list[RowTexts] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(map(len, row.texts))
        if size > _CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
