"""A store in the making, in a folder of its own: text read, batches made by workers, gathered, and points to go on from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.corpus.chinese import Segmenter
from bertkit.corpus.documents import CorpusSettings, Progress, ReadReport, read_lines
from bertkit.corpus.gathering import Gatherer
from bertkit.corpus.hashes import Seen
from bertkit.corpus.passes import Maker, cut_batches
from bertkit.corpus.repeats import RepeatCounter
from bertkit.corpus.report import BuildReport
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store_files import DOCUMENT_HASHES
from bertkit.corpus.tokenizer_files import tokenizer_config_json
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.workers import Workers
from bertkit.corpus.writer import StoreWriter, flush_folder, write_json
from bertkit.errors import DataError
from bertkit.notices import say

POINT_EVERY = 32_000_000  # characters between two points to go on from
POINT = "point.json"
_LINES = "lines"
_POSITIONS = 512  # model_max_length of a tokenizer that has no model yet
_HASHES_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be made.

    Attributes:
        corpus: The text.
        wordpiece: The tokenizer.
        settings: What parts documents, what a bad byte does, what is done with duplicates.
        segmenter: Finds Chinese words; None: no word boundaries are stored.
        shard: ``(i, n)``; None: all of the text.
        workers: Processes; 0: this one alone.
        progress: Told bytes read and bytes in all.
    """

    corpus: Corpus
    wordpiece: WordPiece
    settings: CorpusSettings
    segmenter: Segmenter | None
    shard: tuple[int, int] | None
    workers: int
    progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """Where a build can go on: what was read up to there, and how much stands in its files."""

    items: int = 0
    tokens: int = 0
    documents: int = 0
    line_bytes: int = 0
    state: dict[str, Any] | None = None


def make(folder: Path, task: Task, *, keys: Callable[[], dict[str, Any]], name: str) -> None:
    """Makes the files of a store in ``folder``, from the point that an earlier build of the same ``name`` left there, or anew.

    Args:
        folder: Made where it is not there.
        task: What is made.
        keys: Once all is read: the fingerprint and other facts for store.json.
        name: Whatever decides the store; a point of another is not gone on from.

    Raises:
        DataError: A bad byte, or no document with a token (of a shard that is none: it may be empty).
        ResourceError: A worker died or hangs.
    """
    point = _read_point(folder, name)
    try:
        making = _Making(folder, task, point, name)
    except DataError:  # files shorter than the point says: the disk lost what it was told to keep
        point = _Point()
        making = _Making(folder, task, point, name)
    if point.items:
        say("build-goes-on", f"A build of this text was stopped; it goes on behind its first {point.documents:,} documents.")
    with making.writer:
        making.run()
        making.finish(keys())


class _Making:
    def __init__(self, folder: Path, task: Task, point: _Point, name: str) -> None:
        if not point.items:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.folder, self.task, self.point, self.name = folder, task, point, name
        self.reading = ReadReport()
        self.undone = False
        self.counter = RepeatCounter(folder / _LINES, size=point.line_bytes)
        self.writer = StoreWriter(
            folder, task.wordpiece.size, words=task.segmenter is not None, tokens=point.tokens, documents=point.documents
        )
        seen = _seen(folder / DOCUMENT_HASHES, point.documents)
        dedup = task.settings.dedup == "exact"
        self.gatherer = Gatherer(self.writer, self.counter, seen, dedup=dedup, state=point.state, going_back=self._going_back)

    def run(self) -> None:
        """Reads to the end; what lies before the point is read again, which is a small part of the work, and not made again."""
        task, since, items, behind = self.task, 0, self.point.items, self.point.items
        lines = read_lines(task.corpus, task.settings, self.reading, task.progress)
        batches = (batch for batch in cut_batches(lines, shard=task.shard) if batch.items > behind)
        with Workers(Maker(task.wordpiece, task.segmenter), task.workers, safe_point=self._safe_point) as workers:
            for made in workers.made(batches):
                self.gatherer.add(made)
                since, items = since + made.characters, made.items
                if since >= POINT_EVERY or self.undone:
                    since = 0
                    self._note(items)
        if not self.writer.documents and task.shard is None:
            raise DataError(f"The corpus has no document with a token ({self.reading.lines} lines read).", where=task.corpus.name)
        if self.point.items:
            self._note(items)  # so that a build that is stopped from here on has only the finishing to do again

    def finish(self, facts: dict[str, Any]) -> None:
        """Counts what repeats, writes the tokenizer's files and store.json."""
        lines = self.counter.finish(keep=True)
        report = BuildReport.of(self.reading, self.gatherer.counts, lines)
        wordpiece = self.task.wordpiece
        wordpiece.save_vocabulary(self.folder)
        (self.folder / "tokenizer_config.json").write_bytes(tokenizer_config_json(wordpiece.flags, _POSITIONS).encode())
        largest = [{"hash": f"{value:016x}", "count": count} for value, count in lines.largest]
        self.writer.finish(tokenizer=wordpiece.fingerprint, counts=report.counts(), repeated_lines=largest, **facts)

    def _note(self, items: int) -> None:
        self.writer.sync()
        self.point = _Point(
            items=items,
            tokens=self.writer.tokens,
            documents=self.writer.documents,
            line_bytes=self.counter.flush(),
            state=self.gatherer.state(),
        )
        write_json(self.folder / POINT, {"name": self.name, "point": asdict(self.point)})
        flush_folder(self.folder)
        self.undone = False

    def _going_back(self, tokens: int) -> None:
        """A document that stood before is taken out of the files again. A point inside it still holds, since whoever goes on
        from it comes to the document's end and takes it out too, but only as long as the files reach as far as it says.
        """
        self.undone = self.undone or tokens < self.point.tokens  # the next point is noted at once

    def _safe_point(self) -> None:
        if self.task.progress:
            self.task.progress(self.reading.taken, self.task.corpus.bytes)


def has_point(folder: Path) -> bool:
    """Whether a build that was stopped left in ``folder`` what another can go on from."""
    return (folder / POINT).is_file()


def clear(folder: Path) -> None:
    """Removes from a finished store what only its making needed."""
    (folder / POINT).unlink(missing_ok=True)
    shutil.rmtree(folder / _LINES, ignore_errors=True)


def _read_point(folder: Path, name: str) -> _Point:
    try:
        said = json.loads((folder / POINT).read_bytes())
        return _Point(**said["point"]) if said["name"] == name else _Point()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _Point()


def _seen(path: Path, documents: int) -> Seen:
    """The documents that a store in the making holds already."""
    seen = Seen()
    for start in range(0, documents, _HASHES_AT_ONCE):
        seen.first(np.fromfile(path, dtype="<u8", count=min(_HASHES_AT_ONCE, documents - start), offset=8 * start))
    return seen
