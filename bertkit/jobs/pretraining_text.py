"""The text that a pretraining reads: found in the cache of token stores, or built; and what of it is held out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.hold_out import HeldOut, held_out_documents
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.building import read_text
from bertkit.jobs.console import Console
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.notices import say
from bertkit.settings.commands import PretrainSettings

HELD_OUT = HeldOut()


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
