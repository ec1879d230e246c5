"""Text in, a token store out: one pass by any number of processes, gone on with where a build was stopped.

    CACHE/FINGERPRINT/            a store, kept under a fingerprint of everything that decides it
    CACHE/.building-FINGERPRINT/  one in the making, or whose build was stopped: the next build goes on with it

A store gets its name by one rename, when all of it is on disk. One process works on it at a time; others wait.
"""

from __future__ import annotations

import copy
import errno
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bertkit.corpus.chinese import Segmenter
from bertkit.corpus.documents import CorpusSettings, Progress
from bertkit.corpus.forecast import Forecast, foresee, require_disk
from bertkit.corpus.lock import only_one
from bertkit.corpus.making import Task, clear, has_point, make
from bertkit.corpus.passes import Maker
from bertkit.corpus.report import BuildReport, say_report
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store import TokenStore
from bertkit.corpus.store_files import is_store
from bertkit.corpus.store_key import StoreKey
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.writer import flush_folder
from bertkit.errors import BertkitError, DataError, FolderError, ResourceError, SettingsError
from bertkit.notices import say

_NO_FOLDER = {errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}


def build_store(
    corpus: Corpus,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    *,
    cache: Path | None = None,
    folder: Path | None = None,
    workers: int = 0,
    words: Segmenter | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress | None = None,
    told: Callable[[Forecast], None] | None = None,
) -> tuple[TokenStore, BuildReport]:
    """The store of a text: built, gone on with, or taken as it is where nothing that decides it has changed.

    Args:
        corpus: The text (:func:`bertkit.corpus.documents.open_corpus`).
        wordpiece: The tokenizer.
        settings: What parts documents, what a bad byte does, what is done with duplicates.
        cache: The folder of stores, made where it is not there; the store's own is named by its fingerprint …
        folder: … or the store's own folder. One of the two is given.
        workers: Processes that make ids beside this one, which reads and writes; 0: this one does all. The bytes of the
            store do not depend on them.
        words: Finds Chinese words, whose boundaries are then stored.
        shard: ``(i, n)``, i from 1 to n: only every n-th group of whole documents, beginning with the i-th.
        progress: Told bytes done and bytes in all: while the sources are summed, and again while they are read.
        told: Told what a build will take, before one of a large text begins.

    Raises:
        DataError: A bad byte, or no document with a token.
        MissingError: A source cannot be read.
        FolderError: ``folder`` holds something else, or another store.
        SettingsError: There is no such shard.
        ResourceError: There is not enough disk, a worker died, or the store cannot be written.
    """
    if shard is not None and not 1 <= shard[0] <= shard[1]:
        raise SettingsError(
            f"There is no shard {shard[0]} of {shard[1]}: they are counted from 1 to {max(1, shard[1])}.", where="shard"
        )
    place = _Place(cache, folder, StoreKey(corpus, wordpiece, settings, words, shard, progress))
    task = Task(
        corpus=corpus,
        wordpiece=wordpiece,
        settings=settings,
        segmenter=words,
        shard=shard,
        workers=workers,
        progress=progress,
    )
    with _disk(corpus, named=folder, cache=cache):
        store, reused = place.found(), True
        if store is None:
            store, reused = place.made(task, told)
    report = BuildReport.of_store(store, reused=reused)
    say_report(report, settings)
    return store, report


class _Place:
    """Where a store is, or will be, and where it is made."""

    def __init__(self, cache: Path | None, folder: Path | None, key: StoreKey) -> None:
        if (cache is None) == (folder is None):
            raise ValueError("give either the cache or the store's own folder")
        self._key = key
        self._named = folder
        self._parent = folder.parent if folder is not None else cache
        self._once = key.corpus.once

    @property
    def _folder(self) -> Path:
        assert self._parent is not None
        return self._named or self._parent / self._key.fingerprint[:32]

    def found(self) -> TokenStore | None:
        """The store that is there already; None where there is none.

        Raises:
            FolderError: The folder that was named holds something else.
        """
        if self._once:  # what it will hold nobody knows yet
            if self._named is not None and _filled(self._named):
                raise FolderError(f"{self._named} is there already.", where=str(self._named), hint="Name another folder.")
            return None
        folder = self._folder
        if not _filled(folder):
            return None
        if self._named is not None and not is_store(folder):
            what = "holds other files" if folder.is_dir() else "is no folder"
            raise FolderError(f"{folder} {what}.", where=str(folder), hint="Name another folder.")
        try:
            store = TokenStore.open(folder, checksums=True)  # fewer bytes than were just summed of the text
        except BertkitError as error:
            say("store-damaged", f"{error.message} ({folder}) It is built anew.")
            shutil.rmtree(folder)
            return None
        if store.fingerprint == self._key.fingerprint:
            _touch(folder)
            return store
        if self._named is not None:
            raise FolderError(
                f"{folder} holds the store of another text, tokenizer or settings.",
                where=str(folder),
                hint=f"Name another folder, or remove this one: rm -r {folder}",
            )
        say("store-damaged", f"{folder} holds another store than its name says. It is built anew.")
        shutil.rmtree(folder)
        return None

    def made(self, task: Task, told: Callable[[Forecast], None] | None) -> tuple[TokenStore, bool]:
        """Makes the store; or waits for the one who does, and then True stands beside it."""
        assert self._parent is not None
        self._parent.mkdir(parents=True, exist_ok=True)
        apart = f"-{socket.gethostname()}-{os.getpid()}"
        if self._once:
            return self._make(self._parent / f".building-stdin{apart}", task, lasting=False), False
        work = self._parent / f".building-{self._folder.name}"
        with only_one(self._parent / f"{work.name}.lock", "builds this token store") as alone:
            store = self.found()
            if store is not None:
                return store, True
            if not alone:
                work = work.with_name(work.name + apart)
            _foresee(task, work, told)
            return self._make(work, task, lasting=alone), False

    def _make(self, work: Path, task: Task, *, lasting: bool) -> TokenStore:
        name = work.name if self._once else self._key.fingerprint
        with _kept(work, lasting):
            if not _is_whole(work, name):
                make(work, task, keys=self._key.facts, name=name)
            clear(work)
            flush_folder(work)
            folder = self._folder
            try:
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()
                work.rename(folder)
            except OSError:
                if not is_store(folder):  # else another process was first, with the same store
                    raise
                shutil.rmtree(work)
            flush_folder(folder.parent)
        return TokenStore.open(folder)


def _foresee(task: Task, work: Path, told: Callable[[Forecast], None] | None) -> None:
    forecast = foresee(
        task.corpus,
        task.settings,
        Maker(copy.copy(task.wordpiece), task.segmenter),  # what it remembers of words goes with it
        vocab_size=task.wordpiece.size,
        parts=1 if task.shard is None else task.shard[1],
        workers=task.workers,
        folder=work.parent,
    )
    if forecast is not None:
        if told:
            told(forecast)
        there = sum(path.stat().st_size for path in work.rglob("*") if path.is_file()) if work.is_dir() else 0
        require_disk(forecast, there, work.parent)


@contextmanager
def _kept(work: Path, lasting: bool) -> Iterator[None]:
    """Removes what is left of a build that cannot be gone on with: another text would be needed, or there is no point yet."""
    try:
        yield
    except BaseException as error:
        if not lasting or isinstance(error, DataError) or not has_point(work):
            shutil.rmtree(work, ignore_errors=True)
        raise


def _is_whole(work: Path, key: str) -> bool:
    """Whether a build was stopped when only the name was missing."""
    try:
        return TokenStore.open(work, checksums=True).fingerprint == key
    except BertkitError:
        return False


def _filled(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def _touch(folder: Path) -> None:
    """Leaves the time of the last use on the folder, where it may be written."""
    try:
        os.utime(folder)
    except OSError:
        return


@contextmanager
def _disk(corpus: Corpus, *, named: Path | None, cache: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if named is not None and error.errno in _NO_FOLDER:
            hint = "Name another folder, or let the cache have it: leave --output out."
            raise FolderError(f"{named} cannot be made: {error.strerror}.", where=str(named), hint=hint) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            size = "of unknown size" if corpus.bytes is None else f"of {corpus.bytes:,} bytes"
            raise ResourceError(
                f"The disk is full: a token store takes about half as many bytes as its text ({size}).",
                where=str(error.filename or named or cache),
                hint=f"Make room and start the same command again{'' if corpus.once else ', which goes on'}, "
                f"or name another folder{' with BERTKIT_CACHE' if named is None else ''}.",
            ) from error
        raise ResourceError(
            f"The token store cannot be written: {error.strerror}.",
            where=str(error.filename or named or cache),
            hint="BERTKIT_CACHE names another folder for it." if named is None else "Name another folder.",
        ) from error


__all__ = ["BuildReport", "build_store"]
