"""Examples of a pretraining whose masks hang on the raw text and the seed alone: for comparing models and vocabularies.

Whole words are chosen, each by its own number: the k-th word of a document is masked, or not, whatever vocabulary cuts it
into pieces, however the text is cut into sequences, and whoever else is in the batch. What becomes of it (``[MASK]``, other
tokens, itself) is drawn for the whole word too, where a training draws it for each piece: the shares are the same, and no
piece that was left tells the others of its word. N tokens, W words, E examples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bertkit.batches.collator import PretrainingBatch, lay_out
from bertkit.batches.examples import EXAMPLE, ExampleSettings, draw_examples
from bertkit.batches.text import Bools, Ints, VocabularyFacts, ragged
from bertkit.corpus.worded import WordedText
from bertkit.errors import DataError
from bertkit.fields import Settings
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.randomness import stream

_MASK, _OTHER, _KEPT = range(3)


class WordMaskingSettings(Settings):
    """Which words are masked, and how."""

    probability: float = Field(default=0.15, gt=0, le=1, description="Share of the words that are chosen.")
    mask_share: float = Field(default=0.8, ge=0, le=1, description="Share of the chosen that become [MASK].")
    random_share: float = Field(default=0.1, ge=0, le=1, description="Share of the chosen that become other tokens.")

    @model_validator(mode="after")
    def _shares(self) -> WordMaskingSettings:
        if self.mask_share + self.random_share > 1 + 1e-12:
            raise ValueError(f"mask_share and random_share are {self.mask_share} and {self.random_share}: together above 1")
        return self


def chosen_words(text: WordedText, settings: WordMaskingSettings, seed: int) -> tuple[Bools, NDArray[np.uint8]]:
    """Which words are masked, ``[W]``, and what becomes of each, ``[W]``."""
    starts = np.append(np.int64(0), text.word_ends)[:-1].tolist()
    chosen, becomes = np.zeros(len(text.sizes), dtype=bool), np.zeros(len(text.sizes), dtype=np.uint8)
    shares = [settings.mask_share, settings.mask_share + settings.random_share]
    for document, (first, last) in enumerate(zip(starts, text.word_ends.tolist(), strict=True)):
        drawn = stream(seed, "evaluation/words", document).random((last - first, 2))
        chosen[first:last] = drawn[:, 0] < settings.probability
        becomes[first:last] = np.searchsorted(shares, drawn[:, 1], side="right")
    return chosen, becomes


class FixedMasks:
    """The masked examples of a text.

    Args:
        text: The text.
        facts: Its vocabulary.
        examples: Objective and length of the sequences; pairs of a text that has too few documents are left out, and said.
        masking: Which words are masked.
        seed: Everything that is drawn comes from it.
        segments: The model's ``type_vocab_size``.

    Attributes:
        settings: Those of the examples.
        chosen: ``[W]`` the words that are masked.
        examples: ``[E]`` where A and B stand in the text, pairs first; then single sequences, of what is in none.
        pairs: How many of them are pairs.
        lengths: ``[E]`` tokens of each, special ones included.

    Raises:
        DataError: The text has no token (exit 3).
    """

    def __init__(
        self,
        text: WordedText,
        facts: VocabularyFacts,
        examples: ExampleSettings,
        masking: WordMaskingSettings,
        *,
        seed: int,
        segments: int,
    ) -> None:
        if not len(text.ids):
            raise DataError("The text has no token to guess.", hint="Is it empty, or of a script that the vocabulary lacks?")
        self.text, self.facts, self.settings, self.segments = text, facts, examples, segments
        self.chosen, self._becomes = chosen_words(text, masking, seed)
        others = facts.replaceable if len(facts.replaceable) else np.array([facts.mask_id])
        self._others = others[stream(seed, "evaluation/others").integers(0, len(others), size=len(text.ids))]
        drawn = _drawn(text, facts, examples, seed)
        alone = _alone(text, drawn, examples.max_length - 2)
        self.examples = np.concatenate([drawn, alone])
        self.pairs = int((self.examples["label"] >= 0).sum())
        self.lengths = self._lengths(self.examples)

    @staticmethod
    def _lengths(rows: NDArray[np.void]) -> Ints:
        a, b = rows["a_length"].astype(np.int64), rows["b_length"].astype(np.int64)
        return a + b + 2 + (b > 0)

    def places(self, rows: NDArray[np.void]) -> Ints:
        """Where the tokens of A, B, A, B … stand in the text."""
        starts = np.stack([rows["a"], rows["b"]], axis=1).ravel()
        return ragged(starts, np.stack([rows["a_length"], rows["b_length"]], axis=1).ravel().astype(np.int64))[0]

    def guessed(self) -> Ints:
        """``[M]`` where the tokens stand in the text that are guessed, in the order of the examples."""
        places = self.places(self.examples)
        return places[self.chosen[self.text.word[places]]]

    def batch(self, numbers: Sequence[int]) -> PretrainingBatch:
        """Some examples, masked; all of them pairs, or none."""
        rows = self.examples[np.asarray(numbers)]
        source = self.places(rows)
        lengths = rows["a_length"].astype(np.int64), rows["b_length"].astype(np.int64)
        ids, types, plain = lay_out(self.text.ids[source].astype(np.int64), lengths, self.facts)
        word = self.text.word[source]
        here = np.flatnonzero(self.chosen[word])
        positions, becomes = plain[here], self._becomes[word[here]]
        labels = ids[positions]
        ids[positions] = np.where(
            becomes == _MASK, self.facts.mask_id, np.where(becomes == _OTHER, self._others[source[here]], labels)
        )
        if self.segments < 2:
            types[:] = 0
        totals = torch.from_numpy(self._lengths(rows))
        paired = rows["label"][0] >= 0
        return PretrainingBatch(
            packed=PackedSequences.from_lengths(torch.from_numpy(ids), torch.from_numpy(types), totals),
            masked_positions=torch.from_numpy(positions),
            masked_labels=torch.from_numpy(labels),
            next_sentence_labels=torch.from_numpy(rows["label"].astype(np.int64)) if paired else None,
            pair_part=self.settings.pair_part,
        )


def _drawn(text: WordedText, facts: VocabularyFacts, examples: ExampleSettings, seed: int) -> NDArray[np.void]:
    def draw(settings: ExampleSettings) -> NDArray[np.void]:
        return np.concatenate(list(draw_examples(text, facts, settings, seed=seed, epoch=0, purpose="evaluation")))

    try:
        return draw(examples)
    except DataError as error:
        say("no-pairs", f"Pairs are not scored, masked words are: {error.message}")
        return draw(examples.model_copy(update={"objective": "mlm"}))


def _alone(text: WordedText, drawn: NDArray[np.void], room: int) -> NDArray[np.void]:
    """Single sequences of the tokens that no example has: the documents of one word."""
    met = np.zeros(len(text.ids), dtype=bool)
    for part in ("a", "b"):
        met[ragged(drawn[part], drawn[f"{part}_length"].astype(np.int64))[0]] = True
    starts = np.append(np.int64(0), text.document_ends)[:-1]
    spans = [(start, end) for start, end in zip(starts.tolist(), text.document_ends.tolist(), strict=True) if not met[start]]
    rows = [(first, 0, min(room, end - first), 0, -1) for start, end in spans for first in range(start, end, room)]
    return np.array(rows, dtype=EXAMPLE)
