"""Text files in, token stores out: one pass, kept in a cache under a fingerprint of everything that decides the result.

    CACHE/FINGERPRINT/train/   a store
                      valid/   the held-out documents, where some are
                      report.json

A folder gets its final name by one rename, when all of it is on disk.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import socket
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from bertkit.corpus.documents import READER_VERSION, CorpusSettings, Progress, ReadReport
from bertkit.corpus.hold_out import HeldOut, copy_documents, held_out_documents
from bertkit.corpus.passes import Pass, encode_corpus
from bertkit.corpus.sentences import SENTENCES_VERSION
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store import STORE_FORMAT, TokenStore
from bertkit.corpus.wordpiece import WORDPIECE_VERSION, WordPiece
from bertkit.corpus.writer import StoreWriter, flush_folder, write_json
from bertkit.errors import BertkitError, DataError, ResourceError
from bertkit.notices import say

BUILD_VERSION = 1
"""Raised whenever the same lines and tokens would be parted otherwise: stores of before are then built anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build read and made.

    Attributes:
        files: Files read.
        bytes: Bytes read.
        lines: Lines that are not blank.
        replacements: Bytes that became U+FFFD.
        longest_line: Characters of the longest line.
        documents: Documents with at least one token.
        dropped_documents: Documents without one, left out.
        one_sentence_documents: Documents of one sentence.
        duplicate_documents: Documents whose text stood before.
        duplicate_lines: Lines that stood before.
        sentences: Sentences.
        tokens: Tokens.
        unknown_tokens: Tokens that are ``[UNK]``.
        unparted_files: Files of two lines or more without a blank line between them.
        train_documents: Documents to train on.
        valid_documents: Documents held out.
        reused: The stores were there already.
    """

    files: int
    bytes: int
    lines: int
    replacements: int
    longest_line: int
    documents: int
    dropped_documents: int
    one_sentence_documents: int
    duplicate_documents: int
    duplicate_lines: int
    sentences: int
    tokens: int
    unknown_tokens: int
    unparted_files: int
    train_documents: int
    valid_documents: int
    reused: bool

    def as_dict(self) -> dict[str, int | bool]:
        """The counts by name."""
        return asdict(self)


def build_stores(
    corpus: Corpus,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    *,
    cache: Path,
    held_out: HeldOut | None = None,
    progress: Progress | None = None,
) -> tuple[TokenStore, TokenStore | None, BuildReport]:
    """The stores of a corpus: built, or taken from the cache where nothing that decides them has changed.

    Args:
        corpus: The text (:func:`bertkit.corpus.documents.open_corpus`).
        wordpiece: The tokenizer.
        settings: What parts documents, and what a bad byte does.
        cache: The folder of stores, made where it is not there.
        held_out: How many documents are held out for validation; None: none.
        progress: Told bytes done and bytes in all.

    Returns:
        The store to train on; the held-out one (None where none was asked for, or the text has too little); the report.

    Raises:
        DataError: A bad byte, or no document with a token.
        MissingError: A file cannot be read.
        ResourceError: The disk is full.
    """
    key = fingerprint(corpus, wordpiece, settings, held_out, progress)
    place = cache / key[:32]
    found = _reuse(place, key)
    if found is None:
        _build(corpus, wordpiece, settings, place, key, held_out, progress)
        train, valid, report = _open(place, key)
        found = train, valid, replace(report, reused=False)
    train, valid, report = found
    _say_report(report, settings, held_out)
    return train, valid, report


def fingerprint(
    corpus: Corpus,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    held_out: HeldOut | None,
    progress: Progress | None = None,
) -> str:
    """Hex digest of the sources' content in order, the tokenizer, the settings and the versions of all rules; of no name."""
    digests = corpus.digests(progress)
    versions = (STORE_FORMAT, READER_VERSION, SENTENCES_VERSION, WORDPIECE_VERSION, BUILD_VERSION)
    facts = [digests, wordpiece.fingerprint, settings.model_dump(), asdict(held_out) if held_out else None, versions]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _reuse(place: Path, key: str) -> tuple[TokenStore, TokenStore | None, BuildReport] | None:
    if not place.exists():
        return None
    try:
        return _open(place, key)
    except BertkitError as error:
        say("store-damaged", f"{error.message} ({place}) It is built anew.")
        shutil.rmtree(place)
        return None


def _open(place: Path, key: str) -> tuple[TokenStore, TokenStore | None, BuildReport]:
    try:
        raw = json.loads((place / "report.json").read_bytes())
        report = BuildReport(**raw["report"])
        if raw["fingerprint"] != key or {type(v) for v in raw["report"].values()} - {int, bool}:
            raise ValueError("another fingerprint")
    except (OSError, ValueError, TypeError, KeyError):
        raise DataError("The report of a token store is damaged.", where=str(place)) from None
    train = TokenStore.open(place / "train")
    return train, TokenStore.open(place / "valid") if report.valid_documents else None, report


def _build(
    corpus: Corpus,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    place: Path,
    key: str,
    held_out: HeldOut | None,
    progress: Progress | None,
) -> None:
    work = place.parent / f".building-{place.name}-{socket.gethostname()}-{os.getpid()}"
    try:
        _remove_stale(place.parent)
        work.mkdir(parents=True)
        _write(corpus, wordpiece, settings, work, key, held_out, progress)
        flush_folder(work)
        try:
            work.rename(place)
        except OSError:
            if not place.exists():  # else another process was first, with the same stores
                raise
        flush_folder(place.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(
                f"The disk is full: a token store takes about as many bytes as its text ({_size(corpus)}).",
                where=str(place.parent),
                hint="Make room, or name another folder.",
            ) from error
        raise ResourceError(
            f"The token store cannot be written: {error.strerror}.",
            where=str(error.filename or place),
            hint="BERTKIT_CACHE names another folder for it.",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _size(corpus: Corpus) -> str:
    return "of unknown size" if corpus.bytes is None else f"{corpus.bytes:,}"


def _remove_stale(cache: Path) -> None:
    """Removes what a killed build of this machine has left: its process is gone."""
    if os.name == "nt":  # os.kill(pid, 0) would end the process there
        return
    for left in cache.glob(f".building-*-{socket.gethostname()}-*"):
        process = int(left.name.rpartition("-")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue


def _write(
    corpus: Corpus,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    work: Path,
    key: str,
    held_out: HeldOut | None,
    progress: Progress | None,
) -> None:
    reading = ReadReport()
    with StoreWriter(work / "train", wordpiece.size) as writer:
        done = encode_corpus(corpus, wordpiece, settings, writer, reading, progress)
        if not done.documents:
            raise DataError(f"The corpus has no document with a token ({reading.lines} lines read).", where=corpus.name)
        writer.finish(f"{key}-train")
    out = held_out_documents(done.document_hashes, held_out) if held_out else None
    if out is not None and out.any():
        (work / "train").rename(work / "all")
        everything = TokenStore.open(work / "all")
        copy_documents(everything, ~out, work / "train", f"{key}-train")
        copy_documents(everything, out, work / "valid", f"{key}-valid")
        del everything
        shutil.rmtree(work / "all")
    kept_out = int(out.sum()) if out is not None else 0
    report = _report(reading, done, kept_out)
    write_json(work / "report.json", {"fingerprint": key, "report": {**report.as_dict(), "reused": True}})


def _report(reading: ReadReport, done: Pass, kept_out: int) -> BuildReport:
    read: dict[str, Any] = {name: getattr(reading, name) for name in ("files", "bytes", "lines", "replacements", "longest_line")}
    made = {name: getattr(done, name) for name in (field.name for field in fields(Pass)) if name in BuildReport.__slots__}
    return BuildReport(
        **{**read, **made},
        unparted_files=len(reading.unparted),
        train_documents=done.documents - kept_out,
        valid_documents=kept_out,
        reused=False,
    )


def _say_report(report: BuildReport, settings: CorpusSettings, held_out: HeldOut | None) -> None:
    if report.dropped_documents:
        say("dropped-documents", f"{report.dropped_documents:,} documents without any token were left out.")
    if report.replacements:
        say("replacements", f"{report.replacements:,} bytes were not UTF-8 and became U+FFFD.")
    if report.unparted_files and settings.documents == "blank":
        say(
            "no-blank-line",
            f"{report.unparted_files} of {report.files} files hold no blank line, so each is one document. "
            "Where every line is a document, give --documents line.",
        )
    if report.duplicate_documents:
        say(
            "duplicate-documents", f"{report.duplicate_documents:,} of {report.documents:,} documents stand in the corpus before."
        )
    if report.duplicate_lines:
        say("duplicate-lines", f"{report.duplicate_lines:,} of {report.lines:,} lines stand in the corpus before.")
    if held_out and not report.valid_documents:
        say("nothing-held-out", "The corpus has a single text, so no document could be held out for validation.")


__all__ = ["BuildReport", "HeldOut", "build_stores", "fingerprint"]
