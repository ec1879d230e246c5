"""What a token store gives a pretraining: lengths, word frequencies, an epoch's examples, some as the model sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import VocabularyFacts
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.lengths import Lengths, document_lengths, sentence_lengths
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError
from bertkit.jobs.console import Console
from bertkit.jobs.masked_text import Piece, pieces

_READ = 1 << 20  # examples looked at in one go


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """An epoch at one length.

    Attributes:
        max_length: L.
        examples: Sequences.
        is_next: The share of pairs whose B follows A; None where pairs are impossible.
        tokens: Tokens of a sequence on average, special ones included.
        cut_sentences: Sentences that are longer than a sequence has room for, and are cut between words.
    """

    max_length: int
    examples: int
    is_next: float | None
    tokens: float
    cut_sentences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A masked example: whether B is next (None without pairs), and its tokens."""

    is_next: bool | None
    pieces: tuple[Piece, ...]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        told = [{"token": each.token, "kind": each.kind, "original": each.original} for each in self.pieces]
        return {"is_next": self.is_next, "tokens": told}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of it.

    Attributes:
        sentences: Lengths of sentences.
        documents: Lengths of documents.
        unigram: Cross-entropy of the text under its own add-one word frequencies, in nats: what a model reaches that has
            learned nothing but those.
        epochs: One for each length.
        examples: Of the first length.
        objective: What epochs and examples are made for.
    """

    sentences: Lengths
    documents: Lengths
    unigram: float
    epochs: tuple[Epoch, ...]
    examples: tuple[Shown, ...]
    objective: str


def facts_of(
    store: CorpusStore,
    wordpiece: WordPiece,
    lengths: Sequence[int],
    *,
    made: ExampleSettings,
    masking: MaskingSettings,
    seed: int,
    examples: int,
    plans: Path,
    console: Console,
) -> Facts:
    """Measures a store.

    Args:
        store: The text.
        wordpiece: Its vocabulary.
        lengths: L of each epoch that is planned.
        made: How examples are made, but for their length.
        masking: How they are masked.
        seed: Of the examples.
        examples: How many are shown.
        plans: A folder for the plans.
        console: Shows the progress.
    """
    settings = {length: made.model_copy(update={"max_length": length}) for length in lengths}
    found = sentence_lengths(store, sorted({each.room for each in settings.values()}))
    epochs: list[Epoch] = []
    shown: tuple[Shown, ...] = ()
    for number, length in enumerate(lengths):
        source, pairs = _source(store, wordpiece, settings[length], masking, seed, max(1, examples), plans)
        with console.progress(f"Planning an epoch of L = {length}", safe=True) as update:
            plan = source.plan(0, update)
        tokens = sum(
            int(plan.examples[name][start : start + _READ].sum(dtype=np.int64))
            for start in range(0, len(plan), _READ)
            for name in ("a_length", "b_length")
        )
        epochs.append(
            Epoch(
                max_length=length,
                examples=len(plan),
                is_next=plan.share_of_next() if pairs else None,
                tokens=tokens / max(1, len(plan)) + (3 if pairs else 2),
                cut_sentences=found.over[settings[length].room],
            )
        )
        if number == 0 and examples:
            shown = tuple(_shown(source, wordpiece))
    return Facts(
        sentences=found,
        documents=document_lengths(store),
        unigram=unigram_entropy(store.frequencies()),
        epochs=tuple(epochs),
        examples=shown,
        objective=made.objective,
    )


def unigram_entropy(frequencies: np.ndarray) -> float:
    """Nats a token of a text with these frequencies, under the add-one estimate of them."""
    share = frequencies / max(1, frequencies.sum())
    estimate = (frequencies + 1) / (frequencies.sum() + len(frequencies))
    return float(-(share * np.log(estimate)).sum())


def _source(
    store: CorpusStore,
    wordpiece: WordPiece,
    made: ExampleSettings,
    masking: MaskingSettings,
    seed: int,
    batch: int,
    plans: Path,
) -> tuple[PretrainingSource, bool]:
    facts = VocabularyFacts.of(wordpiece)
    try:
        source = PretrainingSource(store, facts, made, masking, seed=seed, batch_size=batch, plans=plans)
    except DataError:  # a single document has no pairs
        alone = made.model_copy(update={"objective": "mlm"})
        return PretrainingSource(store, facts, alone, masking, seed=seed, batch_size=batch, plans=plans), False
    return source, made.objective != "mlm"


def _shown(source: PretrainingSource, wordpiece: WordPiece) -> list[Shown]:
    found = []
    for batch in source.step(0, 0):
        places = batch.masked_positions.numpy()
        labels = batch.masked_labels.numpy()
        bounds = batch.packed.boundaries.tolist()
        next_labels = batch.next_sentence_labels
        for row, (first, last) in enumerate(pairwise(bounds)):
            inside = (places >= first) & (places < last)
            wanted = dict(zip((places[inside] - first).tolist(), labels[inside].tolist(), strict=True))
            is_next = None if next_labels is None else int(next_labels[row]) == 0
            found.append(
                Shown(is_next=is_next, pieces=tuple(pieces(wordpiece, batch.packed.input_ids[first:last].tolist(), wanted)))
            )
    return found
