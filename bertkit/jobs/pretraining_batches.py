"""The batches of a pretraining, out of its settings and its text: what each phase trains on, and what is validated."""

from __future__ import annotations

import os
from pathlib import Path

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.phases import Phase, sequences
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import Ints, VocabularyFacts
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError
from bertkit.jobs.building import plans_of_others
from bertkit.jobs.pretraining_text import PretrainingText
from bertkit.notices import say
from bertkit.settings.commands import PretrainSettings

RULES_ARE = "version of bertkit's examples"
"""What a run calls :data:`bertkit.batches.plan.RULES` among what a resume must meet again."""


def phases_of(settings: PretrainSettings) -> tuple[Phase, ...]:
    """The phases of a pretraining; one that has none is a single one."""
    return settings.phases or (Phase(max_length=settings.examples.max_length, share=1.0),)


def sizes(settings: PretrainSettings) -> tuple[int, ...]:
    """Sequences per optimizer step of each phase. ``batch.size`` is the first one's; the tokens of a step stay the same."""
    phases, size = phases_of(settings), settings.batch.size
    assert size is not None
    return tuple(sequences(size, phases[0], phase) for phase in phases)


def training_batches(
    settings: PretrainSettings, text: PretrainingText, wordpiece: WordPiece, *, segments: int
) -> tuple[PretrainingSource, ...]:
    """What is trained on, a source a phase.

    Args:
        settings: Resolved.
        text: The text.
        wordpiece: Its vocabulary.
        segments: The model's ``type_vocab_size``.

    Raises:
        DataError: Pairs are asked for and the text has too few documents for them.
    """
    return tuple(
        _source(
            settings,
            text.store,
            wordpiece,
            settings.examples.model_copy(update={"max_length": phase.max_length}),
            size,
            purpose="training",
            segments=segments,
            without=text.without,
        )
        for phase, size in zip(phases_of(settings), sizes(settings), strict=True)
    )


def validation_batches(
    settings: PretrainSettings, text: PretrainingText, wordpiece: WordPiece, *, segments: int
) -> PretrainingSource:
    """What is validated on: the same examples and masks every time, at the length of the last phase in every phase, so that
    the losses of a run can be compared. A single document has no pairs, and is scored by its words alone.
    """
    examples = settings.examples.model_copy(update={"max_length": phases_of(settings)[-1].max_length})

    def source(examples: ExampleSettings) -> PretrainingSource:
        return _source(
            settings, text.validation, wordpiece, examples, sizes(settings)[-1], purpose="validation", segments=segments
        )

    try:
        return source(examples)
    except DataError:
        if examples.objective == "mlm":
            raise
    say(
        "validation-pairs",
        "The validation text is a single document, so next sentence prediction is not scored on it, masked words are.",
    )
    return source(examples.model_copy(update={"objective": "mlm"}))


def _source(
    settings: PretrainSettings,
    store: CorpusStore,
    wordpiece: WordPiece,
    examples: ExampleSettings,
    size: int,
    *,
    purpose: str,
    segments: int,
    without: Ints | None = None,
) -> PretrainingSource:
    return PretrainingSource(
        store,
        VocabularyFacts.of(wordpiece),
        examples,
        settings.masking,
        seed=settings.run.seed,
        batch_size=size,
        micro_tokens=settings.batch.micro_tokens,
        plans=plans_folder(store),
        purpose=purpose,
        limit=settings.inputs.validation_sequences if purpose == "validation" else None,
        segments=segments,
        without=without,
    )


def plans_folder(store: CorpusStore) -> Path | None:
    """Where the plans of a store's epochs are kept: beside it, or in the cache where nobody may write there.

    Kept in memory, each process and each of its workers would draw every epoch anew. None for a store in memory.
    """
    beside = store.plans
    if beside is None or os.access(beside if beside.is_dir() else beside.parent, os.W_OK):
        return beside
    return plans_of_others() / store.fingerprint[:32]
