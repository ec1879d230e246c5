"""The batch of any step of a pretraining, made again: what the model saw, or will see, at that step.

In: a run folder and a step. Out: a :class:`Replay`, plain data. The text is found in the cache of token stores or built
again; batches are a pure function of text, vocabulary, settings, seed, epoch and number.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.batches.collator import PretrainingBatch
from bertkit.batches.phases import PhasedSource
from bertkit.batches.pretraining import PretrainingSource
from bertkit.corpus.holding import held
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console
from bertkit.jobs.pretrained_run import PretrainedRun
from bertkit.jobs.pretraining_batches import phases_of
from bertkit.jobs.run_steps import Place, Track, place_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSequence:
    """One sequence of a batch, n tokens.

    Attributes:
        before: ``[n]`` ids before masking, special tokens included.
        after: ``[n]`` ids as the model sees them.
        tokens: ``[n]`` those as texts.
        segments: ``[n]`` 0 in A and 1 in B.
        masked_positions: ``[m]`` which are to be guessed, rising, from 0.
        labels: ``[m]`` the ids that are right there.
        label_tokens: ``[m]`` those as texts.
        pair_label: 0: B follows A; 1: it does not (of order prediction: A follows B); None: there is no pair.
        texts: A and B (A alone where there is no B) before masking, as text.
        documents: The documents of A and of B, counted from 0 in the order of the text; those without a token do not count.
    """

    before: list[int]
    after: list[int]
    tokens: list[str]
    segments: list[int]
    masked_positions: list[int]
    labels: list[int]
    label_tokens: list[str]
    pair_label: int | None
    texts: list[str]
    documents: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The batch of one optimizer step, of all processes together.

    Attributes:
        step: The optimizer step, from 1.
        epoch: Its epoch, from 0.
        batch: Batches of that epoch that are done with this one, as log.jsonl counts them.
        phase: Its phase, from 1.
        max_length: Tokens of a sequence at most.
        objective: What is learned.
        seen: Has the run done this step?
        sure: False: the clock may have changed the phase by then.
        sequences: The batch, in its order.
    """

    step: int
    epoch: int
    batch: int
    phase: int
    max_length: int
    objective: str
    seen: bool
    sure: bool
    sequences: tuple[ReplayedSequence, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain lists, numbers and texts."""
        return asdict(self)


def replay(folder: Path, step: int, console: Console) -> tuple[Replay, WordPiece]:
    """Makes the batch of optimizer step ``step`` (from 1) of the pretraining in ``folder`` again.

    Returns:
        The batch, and the vocabulary of the run.

    Raises:
        UsageError: The folder is no pretraining, has not begun, or has no such step (exit 2).
        DataError: The text or the vocabulary is not what the run began with (exit 3).
        MissingError: The text is not there (exit 4).
    """
    run = PretrainedRun(folder)
    text = run.text(console)
    with held(text.store.folders):
        sources = run.batches(text)
        budget, track = run.budget(sources), Track.of(folder)
        ends = budget.parts([phase.share for phase in phases_of(run.settings)])
        place = place_of(step, track, PhasedSource(sources, track.began), budget, ends)
        return _replayed(step, place, sources[place.phase], run.wordpiece), run.wordpiece


def _replayed(step: int, place: Place, source: PretrainingSource, wordpiece: WordPiece) -> Replay:
    (batch,) = source.step(place.epoch, place.index)
    rows = source.plan(place.epoch).batch(place.index, source.batch_size)
    return Replay(
        step=step,
        epoch=place.epoch,
        batch=place.index + 1,
        phase=place.phase + 1,
        max_length=source.examples.max_length,
        objective=source.examples.objective,
        seen=place.seen,
        sure=place.sure,
        sequences=tuple(_sequence(number, batch, rows[number], source, wordpiece) for number in range(len(rows))),
    )


def _sequence(
    number: int, batch: PretrainingBatch, row: np.void, source: PretrainingSource, wordpiece: WordPiece
) -> ReplayedSequence:
    first, last = (int(edge) for edge in batch.packed.boundaries[number : number + 2])
    after = batch.packed.input_ids[first:last].numpy()
    places = batch.masked_positions.numpy()
    chosen = (places >= first) & (places < last)
    positions, labels = places[chosen] - first, batch.masked_labels.numpy()[chosen]
    before = after.copy()
    before[positions] = labels
    parts = [row["a"]] + ([row["b"]] if row["b_length"] else [])
    lengths = [int(row["a_length"])] + ([int(row["b_length"])] if row["b_length"] else [])
    starts = [1, 2 + lengths[0]]  # behind [CLS], and behind the [SEP] that ends A
    ends = np.asarray(source.store.document_ends)
    return ReplayedSequence(
        before=before.tolist(),
        after=after.tolist(),
        tokens=[wordpiece.vocabulary[token] for token in after.tolist()],
        segments=batch.packed.token_type_ids[first:last].tolist(),
        masked_positions=positions.tolist(),
        labels=labels.tolist(),
        label_tokens=[wordpiece.vocabulary[token] for token in labels.tolist()],
        pair_label=None if batch.next_sentence_labels is None else int(batch.next_sentence_labels[number]),
        texts=[wordpiece.decode(before[at : at + size]) for at, size in zip(starts, lengths, strict=False)],
        documents=[int(np.searchsorted(ends, part, side="right")) for part in parts],
    )
