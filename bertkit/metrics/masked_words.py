"""Figures of masked words that two vocabularies can be compared by: nats for each word and each character of the raw text.

N tokens, M masked tokens, W words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFigures:
    """Of the words that were chosen.

    Attributes:
        words: How many they are.
        characters: Their characters.
        unknown: Those of them that the vocabulary cannot tell: one is ``[UNK]``, or has no token at all.
        nats: -log P of all of them.
    """

    words: int
    characters: int
    unknown: int
    nats: float

    @property
    def per_word(self) -> float | None:
        """Nats for each word; None where there is none."""
        return self.nats / self.words if self.words else None

    @property
    def per_character(self) -> float | None:
        """Nats for each character."""
        return self.nats / self.characters if self.characters else None


def word_figures(
    nats: Floats, places: Ints, word: Ints, unknown: Bools, chosen: Bools, sizes: Ints, *, alphabet: int
) -> WordFigures:
    """Nats of whole words, an unknown one spelt out.

    A word's nats are the sum over its tokens; a token that was guessed in several examples counts with the mean. ``[UNK]``
    says that a word stands there, not which: such a word, and one that the tokenizer deletes, is charged ln(alphabet) for
    each of its characters beside what the guess of ``[UNK]`` cost, as if it were spelt by characters of equal chance. So a
    vocabulary that knows nothing, whose every guess is right, has ln(alphabet) nats a character and not 0.

    Args:
        nats: ``[M]`` of each guess.
        places: ``[M]`` its token in the text.
        word: ``[N]`` the word of each token.
        unknown: ``[N]`` the token is ``[UNK]``.
        chosen: ``[W]`` the words that were masked.
        sizes: ``[W]`` their characters.
        alphabet: Different characters of the text.
    """
    times = np.bincount(places, minlength=len(word))
    mean = np.bincount(places, weights=nats, minlength=len(word)) / np.maximum(times, 1)
    lost = np.ones(len(chosen), dtype=bool)
    lost[word[times > 0]] = False
    lost[word[unknown & (times > 0)]] = True
    lost &= chosen
    spelt = int(sizes[lost].sum()) * math.log(max(alphabet, 1))
    return WordFigures(
        words=int(chosen.sum()), characters=int(sizes[chosen].sum()), unknown=int(lost.sum()), nats=float(mean.sum()) + spelt
    )
