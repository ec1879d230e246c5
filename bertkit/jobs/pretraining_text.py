"""The text that a pretraining reads: found in the cache of token stores, or built; and what of it is held out."""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.build import build_store
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.documents import CorpusSettings, Progress
from bertkit.corpus.hold_out import HeldOut, held_out_documents
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console, Update
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.notices import say
from bertkit.settings.commands import PretrainSettings
from bertkit.training.threads import allowed_cores

HELD_OUT = HeldOut()
_ALONE = 8_000_000  # bytes of text under which other processes take longer to start than they save
_MOST_WORKERS = 32  # one process reads for all of them
_WINDOW = 30.0  # seconds over which the rate of a build is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingText:
    """What is trained on, and what is validated on.

    Attributes:
        store: The whole text.
        without: ``[held out]`` int64, the documents of ``store`` that are not trained on, rising; None: all are.
        validation: What is validated on: those documents, another text, or ``store`` itself.
        frequencies: ``[V]`` int64, how often each id stands in what is trained on.
        documents: Documents that are trained on.
        sentences: Their sentences.
        tokens: Their tokens.
    """

    store: CorpusStore
    without: NDArray[np.int64] | None
    validation: CorpusStore
    frequencies: NDArray[np.int64]
    documents: int
    sentences: int
    tokens: int

    @property
    def fingerprint(self) -> str:
        """Changes with what is trained on."""
        left_out = b"" if self.without is None else self.without.astype("<i8").tobytes()
        return hashlib.sha256(f"training on {self.store.fingerprint}\n".encode() + left_out).hexdigest()

    @property
    def validates_on_itself(self) -> bool:
        """Whether the training text is what is validated on."""
        return self.validation.fingerprint == self.store.fingerprint

    @staticmethod
    def of(
        store: CorpusStore, validation: CorpusStore | None = None, without: NDArray[np.int64] | None = None
    ) -> PretrainingText:
        """A store that is trained on, but for the documents ``without``, which are then what is validated on."""
        held = None if without is None else store.select(without)
        frequencies, counts = store.frequencies(), {name: store.counts[name] for name in ("documents", "sentences", "tokens")}
        if held is not None:
            frequencies -= held.frequencies()
            counts = {name: count - held.counts[name] for name, count in counts.items()}
        return PretrainingText(
            store=store, without=without, validation=held or validation or store, frequencies=frequencies, **counts
        )


def cache_folder() -> Path:
    """Where token stores are kept between runs: ``BERTKIT_CACHE``, else the user's cache folder."""
    named = os.environ.get("BERTKIT_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "bertkit"


def pretraining_text(settings: PretrainSettings, corpus: NamedCorpus, wordpiece: WordPiece, console: Console) -> PretrainingText:
    """Builds or finds the text of a run.

    Raises:
        BertkitError: As :func:`bertkit.corpus.build.build_store`.
    """
    named = settings.inputs.validation
    store = read_text(settings.corpus, corpus, wordpiece, console, "Reading the text")
    if named:
        others = NamedCorpus.of(named, settings.corpus)
        others.must_agree(wordpiece, "the training text")
        validation = read_text(settings.corpus, others, wordpiece, console, "Reading the validation text")
        return PretrainingText.of(store, validation)
    held = held_out_documents(store.document_hashes, HELD_OUT)
    if len(held) and (settings.examples.objective == "mlm" or store.documents - len(held) > 1):
        return PretrainingText.of(store, without=held)
    say(
        "no-held-out",
        "The text has too few documents to hold one out, so validation is on the training text itself; "
        "--validation-file names another.",
    )
    return PretrainingText.of(store)


def read_text(settings: CorpusSettings, named: NamedCorpus, wordpiece: WordPiece, console: Console, what: str) -> CorpusStore:
    """The store of a corpus, out of the cache or built into it, with its progress."""
    corpus = named.texts
    if corpus is None:
        return named.joined(None)
    with console.progress(what, safe=True) as update:
        store, _ = build_store(
            corpus,
            wordpiece,
            settings,
            cache=cache_folder() / "stores",
            workers=build_workers(corpus.text_bytes),
            words=segmenter_of(settings.words),
            progress=with_rate(update),
        )
    return named.joined(store)


def build_workers(size: int | None) -> int:
    """Processes that a build of so many bytes of text takes: one for each core; none for a small text."""
    return 0 if size is not None and size < _ALONE else min(allowed_cores(), _MOST_WORKERS)


def with_rate(update: Update, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress in bytes with the rate of the last half minute, and the time that is left at it."""
    seen: deque[tuple[float, int]] = deque()

    def progress(done: int, total: int | None) -> None:
        now = clock()
        if seen and done < seen[-1][1]:
            seen.clear()  # another reading
        seen.append((now, done))
        while now - seen[0][0] > _WINDOW and len(seen) > 2:
            seen.popleft()
        (then, before), note = seen[0], ""
        if now - then > 1 and done > before:
            rate = (done - before) / (now - then)
            note = f"{rate / 1e6:.1f} MB/s" + (f", {_left((total - done) / rate)} left" if total and total > done else "")
        update(done, total, note)

    return progress


def _left(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{seconds:.0f} s"
