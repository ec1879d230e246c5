"""``bertkit explain``: what BERT makes of one text or two, from pieces to guesses. torch is loaded for a model alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertkit.batches.masking import Masks
from bertkit.batches.text import Bools, Ints, VocabularyFacts
from bertkit.batches.whole import Words
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError
from bertkit.jobs.console import Console
from bertkit.jobs.explain_page import print_page
from bertkit.jobs.folder import newest_pretraining
from bertkit.jobs.masked_text import Piece, pieces
from bertkit.jobs.outcome import Outcome
from bertkit.notices import say
from bertkit.randomness import stream
from bertkit.settings.tools import ExplainSettings

if TYPE_CHECKING:
    from bertkit.jobs.explain_model import Guesses, Model

POSITIONS = 512  # of BERT, where no model says otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One or two texts as BERT reads them, with one draw of masks. T tokens, special ones included.

    Attributes:
        wordpiece: The vocabulary.
        texts: As they were given.
        ids: ``[T]`` before masking.
        segments: ``[T]`` 0 for A, 1 for B.
        reads: ``[T]`` ids after masking, which the model reads.
        places: ``[M]`` places that are to be guessed, rising.
        probability: Share of the tokens that are chosen.
        shares: Of the chosen: those that become ``[MASK]``, those that become another token.
        guesses: What the model gives; None without a model.
        model: Its folder.
    """

    wordpiece: WordPiece
    texts: tuple[str, ...]
    ids: Ints
    segments: Ints
    reads: Ints
    places: Ints
    probability: float
    shares: tuple[float, float]
    guesses: Guesses | None = None
    model: Path | None = None

    @property
    def shown(self) -> list[Piece]:
        """The tokens after masking, each with what is to be guessed."""
        labels = {int(place): int(self.ids[place]) for place in self.places}
        return pieces(self.wordpiece, [int(i) for i in self.reads], labels)


def explain(settings: ExplainSettings, console: Console) -> Outcome:
    """Prints the page.

    Raises:
        DataError: A text of nothing visible, or one that is longer than the model's positions (exit 3).
        MissingError: No model or vocabulary was named and no pretraining is there, or what was named is not (exit 4).
    """
    wordpiece, model = _chosen(settings)
    found = _drawn(settings, wordpiece, model)
    print_page(found, console)
    guesses = found.guesses
    figures = {} if guesses is None or guesses.loss is None else {"mlm_loss": guesses.loss}
    return Outcome(metrics=figures, extra=_record(found, settings.seed))


def _chosen(settings: ExplainSettings) -> tuple[WordPiece, Model | None]:
    """The vocabulary and the model that are named; where none is, those of the newest pretraining, which is said."""
    name = settings.model
    if name is None and settings.tokenizer is not None:
        return load_wordpiece(Path(settings.tokenizer), cased=settings.cased), None
    if name is None:
        hint = (
            "Name a model with --model or a vocabulary with --tokenizer; `bertkit pretrain --corpus FILE` makes a model, "
            "`bertkit tokenizer train FILE` a vocabulary."
        )
        name = str(newest_pretraining(hint))
    from bertkit.jobs.explain_model import open_model

    model = open_model(name, tokenizer=settings.tokenizer, cased=settings.cased)
    return model.wordpiece, model


def _drawn(settings: ExplainSettings, wordpiece: WordPiece, model: Model | None) -> Explanation:
    facts = VocabularyFacts.of(wordpiece)
    encoded = wordpiece.encode_flat(settings.texts, chinese=True)
    lengths = np.diff(encoded.ends, prepend=0)
    for text, length in zip(settings.texts, lengths, strict=True):
        if not length:
            raise DataError("Nothing of this text is visible to the tokenizer.", where=repr(text[:40]))
    ids, segments, plain = _laid_out(encoded.ids.astype(np.int64), lengths, facts)
    most = POSITIONS if model is None else model.positions
    if len(ids) > most:
        what = "the model" if model else "BERT"
        raise DataError(f"This text has {len(ids):,} tokens with the special ones, and {what} has {most} positions.")
    if model is not None and model.segments == 1:
        segments[:] = 0
        if len(lengths) > 1:
            say("one-segment", "The model has one segment (type_vocab_size 1): both texts are of segment 0.")
    if any("[MASK]" in text for text in settings.texts):
        say("mask-is-text", "[MASK] in a text is text like any other; `bertkit fill-mask` takes it as the special token.")
    words = None
    if settings.masking.kind != "token":
        words = Words.of(_begins(settings, facts, encoded.ids, encoded.chinese), lengths)
    rng = stream(settings.seed, "explain/masks")
    reads = ids.copy()
    places, labels = Masks(np.array([len(plain)]), settings.masking, facts, rng, words).apply(reads, plain, 0, 1)
    return Explanation(
        wordpiece=wordpiece,
        texts=settings.texts,
        ids=ids,
        segments=segments,
        reads=reads,
        places=places,
        probability=settings.masking.probability,
        shares=(settings.masking.mask_share, settings.masking.random_share),
        guesses=None if model is None else model.guess(reads, segments, places, labels, top=settings.top),
        model=None if model is None else model.folder,
    )


def _laid_out(tokens: Ints, lengths: Ints, facts: VocabularyFacts) -> tuple[Ints, Ints, Ints]:
    """``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``: ids, segments, and the places of the texts' own tokens."""
    parts = [np.array([facts.cls_id])]
    for text in np.split(tokens, np.cumsum(lengths)[:-1]):
        parts += [text, np.array([facts.sep_id])]
    segments = np.repeat(np.arange(len(lengths)), lengths + 1)
    own = np.concatenate([[False], *([True] * int(n) + [False] for n in lengths)])
    return np.concatenate(parts), np.concatenate([[0], segments]), np.flatnonzero(own)


def _begins(settings: ExplainSettings, facts: VocabularyFacts, ids: Any, chinese: Bools | None) -> Bools:
    begins: Bools = ~facts.continues[ids]
    segmenter = segmenter_of(settings.words)
    if chinese is not None and chinese.any():
        if segmenter is None:
            say("chinese-by-character", "Chinese is masked by character: --words takes its words whole.")
        else:
            begins[chinese] = np.concatenate([segmenter.begins(text) for text in settings.texts])
    return begins


def _record(found: Explanation, seed: int) -> dict[str, Any]:
    """What ``--json`` gives."""
    vocabulary, guesses = found.wordpiece.vocabulary, found.guesses
    tokens = [
        {"piece": vocabulary[number], "id": number, "segment": segment, "position": place}
        for place, (number, segment) in enumerate(zip(found.ids.tolist(), found.segments.tolist(), strict=True))
    ]
    kinds = [piece.kind for piece in found.shown]
    masks: list[dict[str, Any]] = [
        {
            "position": place,
            "piece": vocabulary[found.ids[place]],
            "id": int(found.ids[place]),
            "becomes": vocabulary[found.reads[place]],
            "becomes_id": int(found.reads[place]),
            "kind": kinds[place],
        }
        for place in found.places.tolist()
    ]
    if guesses is not None and guesses.words is not None:
        for mask, guess in zip(masks, guesses.words, strict=True):
            likeliest = [{"word": word, "probability": share} for word, share in guess.likeliest]
            mask |= {"loss": guess.loss, "likeliest": likeliest}
    return {
        "texts": list(found.texts),
        "tokens": tokens,
        "masks": masks,
        "seed": seed,
        "model": None if found.model is None else str(found.model),
        "pair": None if guesses is None or guesses.pair is None else {"kind": guesses.pair_kind, "probability": guesses.pair},
    }
