"""``bertkit embed``: the vectors of texts, or of their tokens, in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from bertkit.errors import DataError, FolderError, UsageError
from bertkit.jobs.console import Console
from bertkit.jobs.embedder import Embedder, Window
from bertkit.jobs.lines_in import texts_in
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.vectors import NpyWriter, ParquetWriter, Writer, draft_of
from bertkit.settings.embedding import EmbedSettings

_OF_TEXTS = {"row": "int64", "text": "string"}
_OF_TOKENS = {"row": "int64", "token": "string", "start": "int32", "end": "int32"}


def embed(settings: EmbedSettings, console: Console, stdin: TextIO | None = None) -> Outcome:
    """Writes the vectors of all texts, in input order.

    ``.npy``: ``[texts, H]`` float32. Parquet: the columns ``row`` (the number of the text, from 0), ``text`` and ``vector``; with
    a vector a token ``row``, ``token``, ``start`` and ``end`` (characters of the text) and ``vector``.

    Raises:
        UsageError: No file or output is named, the output ends otherwise, or there is no such layer (exit 2).
        FolderError: The output is there already, or is a folder (exit 2).
        DataError: A file cannot be read, or there is no text (exit 3).
        MissingError: No such file or model (exit 4).
    """
    where = _place(settings)
    source = stdin or sys.stdin
    if "-" in settings.files:
        console.reading(source)
    embedder = Embedder.of(settings)
    with draft_of(where) as draft:
        with _writer(draft, where, embedder) as writer, console.progress("Embedding", safe=True) as update:
            for window in embedder.windows(texts_in(settings.files, settings.text_column, source)):
                writer.add(_columns(window, embedder), window.vectors)
                update(embedder.texts)
        if not embedder.texts:
            raise DataError("There is no text.", where=", ".join(settings.files))
    embedder.tell()
    console.say(f"Written to {where}")
    figures = {
        "texts": embedder.texts,
        "tokens": embedder.tokens,
        "width": embedder.width,
        "cut_texts": embedder.cut,
        "empty_texts": embedder.empty,
    }
    console.metrics(figures)
    return Outcome(output=where, metrics=figures, extra={"model": settings.model, **_about(settings)})


def _place(settings: EmbedSettings) -> Path:
    if not settings.files:
        raise UsageError("FILE is needed.", where="bertkit embed", hint="Name files of texts, or - for the standard input.")
    hint = "--output vectors.npy, or vectors.parquet."
    if settings.output is None:
        raise UsageError("The vectors need a file to go to.", where="--output", hint=hint)
    where = Path(settings.output)
    if where.is_dir():
        raise FolderError("The vectors go to a file, and this is a folder.", where=str(where), hint=hint)
    if where.suffix.lower() not in (".npy", ".parquet"):
        raise UsageError("Vectors are written as .npy or .parquet, by the ending of the name.", where=str(where), hint=hint)
    if where.resolve() in {Path(name).resolve() for name in settings.files}:
        raise UsageError("This is the file that is read.", where=str(where), hint="Choose another --output.")
    if where.exists() and not settings.overwrite:
        raise FolderError(
            "This file is there already.", where=str(where), hint="Choose another --output, or replace it with --overwrite."
        )
    return where


def _about(settings: EmbedSettings) -> dict[str, object]:
    pooling = None if settings.tokens else settings.pooling
    return {"pooling": pooling, "layer": settings.layer, "normalize": settings.normalize, "of_tokens": settings.tokens}


def _writer(draft: Path, where: Path, embedder: Embedder) -> Writer:
    if where.suffix.lower() == ".npy":
        return NpyWriter(draft, embedder.width)
    settings = embedder.settings
    columns = _OF_TOKENS if settings.tokens else _OF_TEXTS
    return ParquetWriter(draft, embedder.width, columns, {"model": settings.model, **_about(settings)})


def _columns(window: Window, embedder: Embedder) -> dict[str, Any]:
    rows = np.arange(window.first, window.first + len(window.texts))
    if not embedder.settings.tokens:
        return {"row": rows, "text": window.texts}
    vocabulary = embedder.wordpiece.vocabulary
    return {
        "row": np.repeat(rows, window.counts),
        "token": [vocabulary[number] for number in window.ids.tolist()],
        "start": window.offsets[:, 0],
        "end": window.offsets[:, 1],
    }
