"""Which tokens of a batch are to be guessed, and what stands in their place (Devlin et al. 2019, section 3.1).

Numbers are drawn for every token of the global batch, whoever it belongs to, so a share of it is masked alike on one
process and on many. T tokens in the batch, special ones included; M of them chosen.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bertkit.batches.text import Bools, Ints, VocabularyFacts
from bertkit.batches.whole import Words, cut_spans, fill_quotas, in_rows
from bertkit.fields import Settings


class MaskingSettings(Settings):
    """What is masked, and how."""

    kind: Literal["token", "word", "span"] = Field(
        default="token", description="What is chosen together: a piece, a word's pieces, or the words of a span."
    )
    probability: float = Field(default=0.15, gt=0, le=1, description="Share of the tokens of a sequence that are chosen.")
    mask_share: float = Field(default=0.8, ge=0, le=1, description="Share of the chosen that become [MASK].")
    random_share: float = Field(
        default=0.1, ge=0, le=1, description="Share of the chosen that become a random token; the rest stay."
    )
    span_p: float = Field(
        default=0.2, gt=0, le=1, description="Spans have geometric lengths in words: the share of those that end with each word."
    )
    span_most: int = Field(default=10, ge=1, le=1000, description="Words of a span at most.")

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.mask_share + self.random_share > 1 + 1e-12:
            raise ValueError(f"mask_share and random_share are {self.mask_share} and {self.random_share}: together above 1")
        return self


def quotas(counts: Ints, probability: float, rng: np.random.Generator) -> Ints:
    """How many of each sequence's ``counts`` tokens are chosen: max(1, floor(p n + u)), u uniform in [0, 1)."""
    wanted = np.floor(probability * counts + rng.random(len(counts))).astype(np.int64)
    return np.minimum(np.maximum(wanted, 1), counts)


class Masks:
    """The numbers of one global batch, and the masking of any rows of it.

    Args:
        counts: ``[S]`` tokens of each sequence that are not special.
        settings: What is masked, and how.
        facts: Special ids and random replacements.
        rng: The batch's own stream.
        words: Where words begin among these tokens, end to end; wanted where whole words or spans are chosen.
    """

    def __init__(
        self,
        counts: Ints,
        settings: MaskingSettings,
        facts: VocabularyFacts,
        rng: np.random.Generator,
        words: Words | None = None,
    ) -> None:
        self.settings, self.facts = settings, facts
        self.rows = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=self.rows[1:])
        self.quotas = quotas(counts, settings.probability, rng)
        tokens = int(self.rows[-1])
        self.keys = rng.random(tokens)
        self.kinds = rng.random(tokens)
        self.others = facts.replaceable[rng.integers(0, len(facts.replaceable), size=tokens)]
        self.chosen = None if settings.kind == "token" else self._whole(words, rng)

    def _whole(self, words: Words | None, rng: np.random.Generator) -> Bools:
        assert words is not None, "where words begin decides what is chosen"
        turns = rng.random(len(self.quotas))
        firsts = words.firsts
        if self.settings.kind == "span":  # as many words as the quota has tokens at most: a short sequence is not one span
            row = np.searchsorted(self.rows, firsts, side="right") - 1
            longest = np.clip(self.quotas[row], 1, self.settings.span_most)
            firsts = cut_spans(firsts, words.edges, longest, self.settings.span_p, rng.random(len(firsts)))
        return fill_quotas(firsts, self.rows, self.quotas, self.keys, turns)

    def choose(self, first: int, last: int) -> Bools:
        """Which of the tokens of sequences ``first`` to ``last`` (not special, end to end) are chosen."""
        low, high = self.rows[first], self.rows[last]
        if self.chosen is not None:
            return self.chosen[low:high]
        counts = np.diff(self.rows[first : last + 1])
        keys = self.keys[low:high]
        sorted_keys, _ = in_rows(keys, counts)
        sorted_keys.sort(axis=1)
        quotas = self.quotas[first:last]
        highest = sorted_keys[np.arange(last - first), np.maximum(quotas, 1) - 1]
        chosen: Bools = keys <= np.repeat(highest, counts)
        return chosen

    def apply(self, ids: Ints, plain: Ints, first: int, last: int) -> tuple[Ints, Ints]:
        """Masks sequences ``first`` to ``last`` in place.

        Args:
            ids: ``[T]`` their ids, special tokens included; changed.
            plain: Places in ``ids`` of the tokens that are not special, in order.
            first: First sequence of the global batch that ``ids`` holds.
            last: The one behind the last.

        Returns:
            ``[M]`` places in ``ids`` that are to be guessed, rising, and ``[M]`` what stood there.
        """
        chosen = np.flatnonzero(self.choose(first, last))
        places = plain[chosen]
        labels: NDArray[np.int64] = ids[places]
        kind = self.kinds[self.rows[first] + chosen]
        other = self.others[self.rows[first] + chosen]
        mask, random = self.settings.mask_share, self.settings.random_share
        ids[places] = np.where(kind < mask, self.facts.mask_id, np.where(kind < mask + random, other, labels))
        return places, labels
