"""The vocabulary of a text: the one that is named, or one trained on it and kept in the cache for the next run or command."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path

from bertkit.corpus.documents import READER_VERSION, CorpusSettings
from bertkit.corpus.sources import Corpus
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import BertkitError, UsageError
from bertkit.jobs.building import cache_folder
from bertkit.jobs.console import Console
from bertkit.jobs.tokenizer import LEAST_FREQUENCY, POSITIONS, trained_vocabulary, vocabulary_size
from bertkit.settings.parts import TokenizerSettings

TRAINING_VERSION = 1
"""Raised whenever the same text would train another vocabulary: those kept from before are then trained anew."""


def vocabulary_of(corpus: Corpus, settings: CorpusSettings, tokenizer: TokenizerSettings, console: Console) -> WordPiece:
    """Reads the vocabulary that is named, else the one that was trained on this text before, else trains it.

    Raises:
        UsageError: None is named, and the text can be read only once (exit 2).
        BertkitError: As :func:`bertkit.corpus.wordpiece.load_wordpiece` and the training.
    """
    if tokenizer.path is not None:
        return load_wordpiece(Path(tokenizer.path), cased=tokenizer.cased)
    if corpus.once:
        raise UsageError(
            "A vocabulary cannot be trained on a text that is read only once.",
            where="--tokenizer",
            hint="Name a vocabulary: --tokenizer DIR. `bertkit tokenizer train FILE` makes one.",
        )
    size, cased = tokenizer.vocab_size or vocabulary_size(corpus.text_bytes), bool(tokenizer.cased)
    least = tokenizer.min_frequency or LEAST_FREQUENCY
    stamps = corpus.stamps()
    with console.progress("Looking for its vocabulary", safe=True) as update:
        versions = [READER_VERSION, TRAINING_VERSION]
        facts = [corpus.digests(update), settings.model_dump(mode="json"), size, cased, least, *versions]
    folder = cache_folder() / "vocabularies" / hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
    with contextlib.suppress(BertkitError):
        return load_wordpiece(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    wordpiece, _ = trained_vocabulary(
        corpus, settings, console, size=size, cased=cased, folder=folder.parent, min_frequency=least
    )
    corpus.must_be_as(stamps)
    _keep(wordpiece, folder)
    return wordpiece


def _keep(wordpiece: WordPiece, folder: Path) -> None:
    draft = folder.with_name(f".{folder.name}-{os.getpid()}")
    try:
        wordpiece.save(draft, max_length=POSITIONS)
        draft.rename(folder)
    except OSError:  # another process was quicker, or the disk is full: it can be trained again
        shutil.rmtree(draft, ignore_errors=True)
