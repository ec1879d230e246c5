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
from bertkit.fields import Settings


class MaskingSettings(Settings):
    """What is masked, and how."""

    kind: Literal["token", "word"] = Field(default="token", description="What is chosen together: a piece, or a word's pieces.")
    probability: float = Field(default=0.15, gt=0, le=1, description="Share of the tokens of a sequence that are chosen.")
    mask_share: float = Field(default=0.8, ge=0, le=1, description="Share of the chosen that become [MASK].")
    random_share: float = Field(
        default=0.1, ge=0, le=1, description="Share of the chosen that become a random token; the rest stay."
    )

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
        begins: Does each of these tokens, end to end, begin a word? Wanted where whole words are chosen.
    """

    def __init__(
        self,
        counts: Ints,
        settings: MaskingSettings,
        facts: VocabularyFacts,
        rng: np.random.Generator,
        begins: Bools | None = None,
    ) -> None:
        self.settings, self.facts = settings, facts
        self.rows = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=self.rows[1:])
        self.quotas = quotas(counts, settings.probability, rng)
        tokens = int(self.rows[-1])
        self.keys = rng.random(tokens)
        self.kinds = rng.random(tokens)
        self.others = facts.replaceable[rng.integers(0, len(facts.replaceable), size=tokens)]
        self.chosen = None if begins is None else choose_words(begins, self.rows, self.quotas, self.keys, rng)

    def choose(self, first: int, last: int) -> Bools:
        """Which of the tokens of sequences ``first`` to ``last`` (not special, end to end) are chosen."""
        low, high = self.rows[first], self.rows[last]
        if self.chosen is not None:
            return self.chosen[low:high]
        owner = np.repeat(np.arange(last - first), np.diff(self.rows[first : last + 1]))
        order = np.argsort(owner + self.keys[low:high])
        rank = np.arange(high - low) - np.repeat(self.rows[first:last] - low, np.diff(self.rows[first : last + 1]))
        chosen = np.zeros(high - low, dtype=bool)
        chosen[order] = rank < self.quotas[first:last][owner]
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


def choose_words(begins: Bools, rows: Ints, quotas: Ints, keys: NDArray[np.float64], rng: np.random.Generator) -> Bools:
    """Chooses whole words, each sequence's in random order until its quota is full.

    What the last word overshoots is owed by the next sequences of the batch, so the share of pieces stays what it is
    without words. The first sequence owes what one in the middle of an endless row of batches would: renewal theory has
    it that this is the number of pieces before a random token in its word.

    Args:
        begins: ``[T]`` does each token begin a word? The first of a sequence does.
        rows: ``[S+1]`` where each sequence begins among these tokens.
        quotas: ``[S]`` tokens to choose, at least 1.
        keys: ``[T]`` uniform numbers; a word's is that of its first token.
        rng: For what the first sequence owes.

    Returns:
        ``[T]`` which tokens are chosen: at least one word in each sequence.
    """
    firsts = np.flatnonzero(begins)
    word = np.cumsum(begins) - 1
    owner = np.searchsorted(rows, firsts, side="right") - 1
    order = np.argsort(owner + keys[firsts])
    sizes = np.diff(np.append(firsts, len(begins)))[order]
    filled = np.cumsum(sizes)
    edges = np.searchsorted(owner, np.arange(len(rows)))  # a sort by owner moves no word out of its sequence
    token = int(rng.integers(0, len(begins)))
    owed = token - int(firsts[word[token]])
    taken = np.zeros(len(firsts), dtype=bool)
    for row, quota in enumerate(quotas):
        first, behind = int(edges[row]), int(edges[row + 1])
        before = int(filled[first] - sizes[first])
        last = int(np.searchsorted(filled, before + int(quota) - owed))
        last = min(max(last, first), behind - 1)
        owed = max(0, int(filled[last]) - before - int(quota) + owed)
        taken[order[first : last + 1]] = True
    chosen: Bools = taken[word]
    return chosen
