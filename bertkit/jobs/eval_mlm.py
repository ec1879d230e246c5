"""``bertkit eval mlm``: how well a pretrained model guesses the masked words of a text, and whether B follows A.

The masks hang on the raw text and the seed alone (:mod:`bertkit.batches.fixed_masks`), so the same command gives the same
figures, and models of different vocabularies are asked for the same words. ``mlm_loss`` and ``mlm_accuracy`` are those of
the tokens, as a training validates itself: a vocabulary that cuts words into more pieces has easier ones. ``nats_per_word``
and ``nats_per_character`` do not depend on that (:func:`bertkit.metrics.masked_words.word_figures` says how ``[UNK]``
counts); a word and a character are what :mod:`bertkit.corpus.words` says. Lowercasing is no loss to them: compare an uncased
vocabulary with an uncased one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.fixed_masks import FixedMasks
from bertkit.batches.text import VocabularyFacts
from bertkit.corpus.documents import open_corpus
from bertkit.corpus.named import short_name
from bertkit.corpus.worded import read_worded
from bertkit.errors import DataError, UsageError
from bertkit.jobs.console import Console
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.pretrained import pretrained_with
from bertkit.jobs.probe import Probed, open_probed
from bertkit.jobs.start import Machine
from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.masked_words import word_figures
from bertkit.settings.probes import MlmSettings
from bertkit.tasks.masked_words import Guesses, guesses

DIGITS = 5  # decimals of the figures: batches of another size move the seventh


def eval_mlm(settings: MlmSettings, machine: Machine, console: Console) -> Outcome:
    """Scores a pretrained model on a text and leaves ``evals/mlm-TEXT/`` in its folder.

    Raises:
        DataError: The text cannot be read, or has nothing to guess (exit 3).
        ModelError: The model has no masked-LM head (exit 3).
        MissingError: No model or text (exit 4).
    """
    probed = open_probed(settings, machine, "mlm", pairs=settings.objective != "mlm")
    masks = _masks(settings, probed, console)
    parts = [range(masks.pairs), range(masks.pairs, len(masks.lengths))]
    found = probed.outputs(masks.lengths.tolist(), parts, masks.batch, guesses, console, "Guessing")
    if not machine.peers.main:
        return Outcome()
    facts = {
        "data": list(settings.inputs.corpus),
        "seed": settings.seed,
        "masking": settings.masking.model_dump(),
        "objective": masks.settings.objective,
        "max_length": masks.settings.max_length,
        "alphabet": masks.text.alphabet,
    }
    name = f"mlm-{short_name(settings.inputs.corpus[0])}"
    return probed.finish(console, name, _figures(masks, found, probed.wordpiece.unk_id), facts=facts)


def _masks(settings: MlmSettings, probed: Probed, console: Console) -> FixedMasks:
    corpus = open_corpus(settings.inputs.corpus, settings.corpus, once=probed.machine.peers.world == 1)
    with console.progress("Reading the text", safe=True) as update:
        text = read_worded(corpus, settings.corpus, probed.wordpiece, documents=settings.data.max_eval_samples, progress=update)
    masks = FixedMasks(
        text,
        VocabularyFacts.of(probed.wordpiece),
        _examples(settings, probed),
        settings.masking,
        seed=settings.seed,
        segments=probed.model.config.type_vocab_size,
    )
    if not masks.chosen[text.word].any():
        raise DataError("None of the words of this text was chosen to be masked.", hint="Give more text, or another --seed.")
    counts = text.counts
    console.say(
        f"{counts['documents']:,} documents, {counts['words']:,} words, {counts['tokens']:,} tokens; "
        f"{masks.settings.objective}, sequences of at most {masks.settings.max_length} tokens."
    )
    return masks


def _examples(settings: MlmSettings, probed: Probed) -> ExampleSettings:
    """Objective and length: as given, else as the run was trained with."""
    run = pretrained_with(probed.folder)
    positions = probed.model.config.max_position_embeddings
    has_pairs = probed.model.head_name == "pretraining"
    if settings.objective not in (None, "mlm") and not has_pairs:
        raise UsageError(
            f"{settings.objective} needs a head for pairs, which this model has not.",
            where=str(probed.folder),
            hint="Leave --set objective away: masked words alone are scored then.",
        )
    length = settings.max_length or min(int(run.get("examples.max_length") or 128), positions)
    if length > positions:
        raise UsageError(
            f"max_length is {length}, and the model has {positions} positions.", where="--max-length", hint="Give a smaller one."
        )
    objective = settings.objective or (run.get("examples.objective", "mlm+nsp") if has_pairs else "mlm")
    return ExampleSettings(objective=objective, max_length=length)


def _figures(masks: FixedMasks, found: Sequence[Guesses], unk_id: int) -> dict[str, Any]:
    nats = np.concatenate([guess.nats for guess in found])
    text = masks.text
    words = word_figures(nats, masks.guessed(), text.word, text.ids == unk_id, masks.chosen, text.sizes, alphabet=text.alphabet)
    loss = _rounded(nats.mean())
    figures: dict[str, Any] = {
        "mlm_loss": loss,
        "perplexity": _rounded(math.exp(min(loss, 700.0))),
        "mlm_accuracy": _rounded(np.concatenate([guess.right for guess in found]).mean()),
        "nats_per_word": _rounded(words.per_word),
        "nats_per_character": _rounded(words.per_character),
    }
    if pairs := [guess.pair for guess in found if guess.pair is not None]:
        part = masks.settings.pair_part
        figures[f"{part}_loss"] = _rounded(np.mean([loss for loss, _ in pairs]))
        figures[f"{part}_accuracy"] = _rounded(np.mean([right for _, right in pairs]))
    figures |= {
        "examples": len(found),
        "masked_tokens": len(nats),
        "words": words.words,
        "characters": words.characters,
        "unknown_words": words.unknown,
    }
    counts = np.array([(guess.nats.sum(), len(guess.nats)) for guess in found])
    interval = Resampled.of_counts(counts, lambda sums: sums[:, 0] / sums[:, 1]).interval()
    if interval is not None:
        figures["mlm_loss_interval"] = [_rounded(bound) for bound in interval]
    return figures


def _rounded(value: Any) -> float:
    return round(float(value), DIGITS)
