"""What of validation texts and of tasks' evaluation files stands in a token store, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

_ROWS = 4096  # rows encoded and looked for in one go; of documents, 64
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
    found = []
    for name in validation:
        documents = read_documents(open_corpus([name], settings), settings, ReadReport())
        rows = (RowTexts(f"{name}, document {number}", ("\n".join(lines),)) for number, lines in enumerate(documents, start=1))
        found.append(_seen(store, wordpiece, console, name, rows, validation=True))
    for name in against:
        for path, rows_of_file in files_with_texts(Path(name)):
            found.append(_seen(store, wordpiece, console, str(path), rows_of_file, validation=False))
    return found


def _seen(
    store: CorpusStore, wordpiece: WordPiece, console: Console, source: str, rows: Iterable[RowTexts], *, validation: bool
) -> Seen:
    asked = short = found = 0
    examples: list[dict[str, str | int]] = []
    with console.progress(f"Looking for {Path(source).name}", safe=True) as update:
        for some in _batches(rows, 64 if validation else _ROWS):
            texts = list(dict.fromkeys(text for row in some for text in row.texts))  # SQuAD's questions share a context
            ids = wordpiece.encode(texts)
            overlap = find_overlap(store, ids, progress=update)
            hits = dict(zip(texts, overlap.shares >= FOUND, strict=True))
            places = dict(zip(texts, overlap.places.tolist(), strict=True))
            long = {text for text, length in zip(texts, overlap.lengths, strict=True) if length >= LEAST}
            for row in some:
                if not long.intersection(row.texts):
                    short += 1
                    continue
                asked += 1
                text = next((text for text in row.texts if hits[text]), None)
                if text is not None:
                    found += 1
                    if len(examples) < _EXAMPLES:
                        examples.append(
                            {"where": row.place, "text": text[:_SHOWN], "document": _document(store.document_ends, places[text])}
                        )
    return Seen(source=source, validation=validation, rows=asked, short=short, found=found, examples=tuple(examples))


def _document(ends: NDArray[Any], place: int) -> int:
    """The number, from 1, of the document that a token belongs to."""
    return int(np.searchsorted(ends, place, side="right")) + 1


def _batches(rows: Iterable[RowTexts], size: int) -> Iterator[list[RowTexts]]:
    batch: list[RowTexts] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
