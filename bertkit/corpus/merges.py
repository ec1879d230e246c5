"""Counted words in, the pieces that stand together most often out, merged one after another: byte-pair encoding.

A piece is a number here and a word a text with one character for each of its pieces, the one of that number: so merging a
pair is replacing two characters by one. Only what lies beside a merged pair is counted anew.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

MOST_PIECES = 1_000_000
"""There are 1 114 112 characters to number pieces by."""

_Entry = tuple[int, str, str, str]


class Pairs:
    """The pairs of neighbouring pieces in counted words, kept up to date while pairs are merged.

    Args:
        words: How often each word stands in the text.
        alphabet: Single-character pieces (``a``, ``##a``); a word with any other character is left out.
        least: Times that a pair must stand in the text to be merged.
    """

    def __init__(self, words: Mapping[str, int], alphabet: Iterable[str], least: int) -> None:
        self._least = least
        self._spelt: list[str] = []
        self._number: dict[str, str] = {}  # the character of each piece
        for piece in alphabet:
            self._piece(piece)
        self._words: list[str] = []
        self._times = array("q")
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._where: defaultdict[str, array[int]] = defaultdict(_numbers)  # may name words that have lost the pair
        self._take(words)
        self._heap = [self._entry(pair) for pair, count in self._counts.items() if count >= least]
        heapq.heapify(self._heap)

    def _piece(self, spelt: str) -> str:
        character = self._number.setdefault(spelt, chr(len(self._spelt)))
        if ord(character) == len(self._spelt):
            self._spelt.append(spelt)
        return character

    def _take(self, words: Mapping[str, int]) -> None:
        first = {spelt: character for spelt, character in self._number.items() if len(spelt) == 1}
        inner = {spelt[2]: character for spelt, character in self._number.items() if len(spelt) == 3}
        for word, times in words.items():
            try:
                pieces = first[word[0]] + "".join(map(inner.__getitem__, word[1:]))
            except KeyError:
                continue
            for left, right in pairwise(pieces):
                self._counts[left + right] += times
                self._where[left + right].append(len(self._words))
            self._words.append(pieces)
            self._times.append(times)

    def _entry(self, pair: str) -> _Entry:
        left, right = pair[0], pair[1]
        return (-self._counts[pair], self._spelt[ord(left)], self._spelt[ord(right)], pair)

    def merge(self) -> str | None:
        """Merges the commonest pair everywhere (the first by spelling of several) and names the new piece; None: no more."""
        while self._heap:
            count, left, right, pair = heapq.heappop(self._heap)
            current = self._counts.get(pair, 0)
            if current == -count:
                return self._apply(pair, left + right[2:])  # the right one is always a continuation
            if current >= self._least:  # its count has changed since it was put there
                heapq.heappush(self._heap, self._entry(pair))
        return None

    def _apply(self, pair: str, spelt: str) -> str:
        new = self._piece(spelt)
        changed: defaultdict[str, int] = defaultdict(int)
        words = self._words
        for index in self._where.pop(pair):
            word = words[index]
            place = word.find(pair)
            if place < 0:
                continue
            words[index] = word.replace(pair, new)
            if len(word) - len(words[index]) == 1:
                self._merged_once(index, word, place, new, changed)
            else:
                self._merged_often(index, word, new, changed)
        for other, difference in changed.items():
            self._counts[other] += difference
            if difference > 0 and self._counts[other] >= self._least:
                heapq.heappush(self._heap, self._entry(other))
        self._counts.pop(pair, None)
        return spelt

    def _merged_once(self, index: int, word: str, place: int, new: str, changed: defaultdict[str, int]) -> None:
        times = self._times[index]
        if place:
            before = word[place - 1]
            changed[before + word[place]] -= times
            changed[before + new] += times
            self._where[before + new].append(index)
        if place + 2 < len(word):
            behind = word[place + 2]
            changed[word[place + 1] + behind] -= times
            changed[new + behind] += times
            self._where[new + behind].append(index)

    def _merged_often(self, index: int, word: str, new: str, changed: defaultdict[str, int]) -> None:
        times = self._times[index]
        for left, right in pairwise(word):
            changed[left + right] -= times
        for left, right in pairwise(self._words[index]):
            changed[left + right] += times
            if new in (left, right):
                self._where[left + right].append(index)


def _numbers() -> array[int]:
    return array("i")
