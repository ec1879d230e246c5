"""Text in, a token store out: one pass by any number of processes, gone on with where a build was stopped.

    CACHE/FINGERPRINT/            a store, kept under a fingerprint of everything that decides it
    CACHE/.building-FINGERPRINT/  one in the making, or whose build was stopped: the next build goes on with it

A store gets its name by one rename, when all of it is on disk. One process works on it at a time; others wait.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertkit.corpus.chinese import Segmenter
from bertkit.corpus.documents import READER_VERSION, CorpusSettings, Progress
from bertkit.corpus.lock import only_one
from bertkit.corpus.making import Task, clear, has_point, make
from bertkit.corpus.report import BuildReport, say_report
from bertkit.corpus.sentences import SENTENCES_VERSION
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store import TokenStore
from bertkit.corpus.store_files import STORE_FORMAT, is_store
from bertkit.corpus.wordpiece import WORDPIECE_VERSION, WordPiece
from bertkit.corpus.writer import flush_folder
from bertkit.errors import BertkitError, DataError, FolderError, ResourceError, SettingsError
from bertkit.notices import say

BUILD_VERSION = 2
"""Raised whenever the same lines and tokens would be parted otherwise: stores of before are then built anew."""

_NAMES = 20  # of sources that a store remembers


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
        progress: Told bytes done and bytes in all.

    Raises:
        DataError: A bad byte, or no document with a token.
        MissingError: A source cannot be read.
        FolderError: ``folder`` holds something else, or another store.
        SettingsError: There is no such shard.
        ResourceError: The disk is full, a worker died, or the store cannot be written.
    """
    if shard is not None and not 1 <= shard[0] <= shard[1]:
        raise SettingsError(
            f"There is no shard {shard[0]} of {shard[1]}: they are counted from 1 to {max(1, shard[1])}.", where="shard"
        )
    place = _Place(cache, folder, _Keys(corpus, wordpiece, settings, words, shard))
    task = Task(
        corpus=corpus,
        wordpiece=wordpiece,
        settings=settings,
        segmenter=words,
        shard=shard,
        workers=workers,
        progress=progress,
    )
    with _disk(corpus):
        store, reused = place.found(), True
        if store is None:
            store, reused = place.made(task)
    report = BuildReport.of_store(store, reused=reused)
    say_report(report, settings)
    return store, report


class _Keys:
    """What decides a store. Of a pipe it is known only when all is read."""

    def __init__(
        self,
        corpus: Corpus,
        wordpiece: WordPiece,
        settings: CorpusSettings,
        words: Segmenter | None,
        shard: tuple[int, int] | None,
    ) -> None:
        self.corpus, self.shard = corpus, shard
        versions = (STORE_FORMAT, READER_VERSION, SENTENCES_VERSION, WORDPIECE_VERSION, BUILD_VERSION)
        rules = settings.model_dump(mode="json", exclude={"words"})
        self._rest = [wordpiece.fingerprint, rules, words.fingerprint if words else None, versions]
        self._digests: list[str] | None = None

    @property
    def fingerprint(self) -> str:
        """Hex digest of the content in order, the tokenizer, the settings and the versions of all rules; not of any name."""
        return self._of(self.shard)

    def facts(self) -> dict[str, Any]:
        """What store.json says of it."""
        names = [source.name for source in self.corpus.sources[:_NAMES]]
        facts: dict[str, Any] = {"fingerprint": self.fingerprint, "sources": names}
        return facts if self.shard is None else {**facts, "shard": list(self.shard), "whole": self._of(None)}

    def _of(self, shard: tuple[int, int] | None) -> str:
        if self._digests is None:
            self._digests = self.corpus.digests()
        return hashlib.sha256(json.dumps([self._digests, shard, *self._rest], sort_keys=True).encode()).hexdigest()


class _Place:
    """Where a store is, or will be, and where it is made."""

    def __init__(self, cache: Path | None, folder: Path | None, keys: _Keys) -> None:
        if (cache is None) == (folder is None):
            raise ValueError("give either the cache or the store's own folder")
        self._keys = keys
        self._named = folder
        self._parent = folder.parent if folder is not None else cache
        self._once = keys.corpus.once

    @property
    def _folder(self) -> Path:
        assert self._parent is not None
        return self._named or self._parent / self._keys.fingerprint[:32]

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
            raise FolderError(f"{folder} holds other files.", where=str(folder), hint="Name another folder.")
        try:
            store = TokenStore.open(folder)
        except BertkitError as error:
            say("store-damaged", f"{error.message} ({folder}) It is built anew.")
            shutil.rmtree(folder)
            return None
        if store.fingerprint == self._keys.fingerprint:
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

    def made(self, task: Task) -> tuple[TokenStore, bool]:
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
            return self._make(work, task, lasting=alone), False

    def _make(self, work: Path, task: Task, *, lasting: bool) -> TokenStore:
        name = work.name if self._once else self._keys.fingerprint
        with _kept(work, lasting):
            if not _is_whole(work, name):
                make(work, task, keys=self._keys.facts, name=name)
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
def _disk(corpus: Corpus) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            size = "of unknown size" if corpus.bytes is None else f"of {corpus.bytes:,} bytes"
            raise ResourceError(
                f"The disk is full: a token store takes about half as many bytes as its text ({size}).",
                where=str(error.filename) if error.filename else None,
                hint="Make room and start the same command again, which goes on, or name another folder with BERTKIT_CACHE.",
            ) from error
        raise ResourceError(
            f"The token store cannot be written: {error.strerror}.",
            where=str(error.filename) if error.filename else None,
            hint="BERTKIT_CACHE names another folder for it.",
        ) from error


__all__ = ["BUILD_VERSION", "BuildReport", "build_store"]
