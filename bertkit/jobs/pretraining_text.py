"""The text that a pretraining reads: found in the cache of token stores, or built; and what it is validated on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bertkit.corpus.build import HeldOut, build_stores
from bertkit.corpus.documents import open_corpus
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store import TokenStore
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console
from bertkit.notices import say
from bertkit.settings.commands import PretrainSettings

HELD_OUT = HeldOut()


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingText:
    """What is trained on, and what is validated on (the same store where nothing could be held out)."""

    train: TokenStore
    validation: TokenStore


def cache_folder() -> Path:
    """Where token stores are kept between runs: ``BERTKIT_CACHE``, else the user's cache folder."""
    named = os.environ.get("BERTKIT_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "bertkit"


def pretraining_text(settings: PretrainSettings, corpus: Corpus, wordpiece: WordPiece, console: Console) -> PretrainingText:
    """Builds or finds the text of a run.

    Raises:
        BertkitError: As :func:`bertkit.corpus.build.build_stores`.
    """
    named = settings.inputs.validation
    train, validation = _read(settings, corpus, wordpiece, console, "Reading the text", None if named else HELD_OUT)
    pairs = settings.examples.objective != "mlm"
    if named:
        others = open_corpus(named, settings.corpus)
        validation, _ = _read(settings, others, wordpiece, console, "Reading the validation text")
    elif validation is None or (pairs and train.counts["documents"] < 2):
        say(
            "no-held-out",
            "The text has too few documents to hold one out, so validation is on the training text itself; "
            "--validation-file names another.",
        )
        train, validation = _read(settings, corpus, wordpiece, console, "Reading the text")[0], None
    return PretrainingText(train=train, validation=validation or train)


def _read(
    settings: PretrainSettings,
    corpus: Corpus,
    wordpiece: WordPiece,
    console: Console,
    what: str,
    held_out: HeldOut | None = None,
) -> tuple[TokenStore, TokenStore | None]:
    cache = cache_folder() / "stores"
    with console.progress(what, safe=True) as update:
        train, validation, _ = build_stores(corpus, wordpiece, settings.corpus, cache=cache, held_out=held_out, progress=update)
    return train, validation
