"""A list of Chinese words with their frequencies, and the most probable way to part text into them.

Each run of Chinese characters (U+4E00–U+9FFF) is parted where the product of its words' frequencies is the largest, as
jieba does without its model of new words: a character that is no word of the list counts as a word of frequency 1. Of
parts that are equally probable the one with the longer word, from the left, is taken. Costs are whole numbers, so the
same text is parted alike on any machine, in any company and in pieces of any size.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from bertkit.corpus.characters import HAN
from bertkit.corpus.lattice import Bools, Ints, cheapest, groups_of
from bertkit.corpus.numbered_lines import numbered_lines
from bertkit.errors import DataError

FIRST, LAST = HAN.start, HAN.stop - 1
"""The Chinese characters that words are made of: those that BERT's tokenizers make a token each."""

WORD_LIST_VERSION = 1
"""Raised whenever the same list would part the same text otherwise: stores of before are then built anew."""

_BITS = 15  # a Chinese character's number is below 2**15
_SCALE = 1 << 20  # costs are -log2 p in 2**-20ths
_BLOCK = 1 << 17  # characters in one go


class WordList:
    """Words and their frequencies, as a tree of prefixes laid out in sorted arrays.

    Args:
        frequencies: Word -> how often it is met. Words of one character weigh against the longer ones; those with a character
            that is not Chinese are left out, as text is parted within runs of Chinese characters.
        where: What to name in an error.

    Raises:
        DataError: No word has two Chinese characters or more.
    """

    def __init__(self, frequencies: Mapping[str, int], *, where: str = "the word list") -> None:
        known = {word: count for word, count in frequencies.items() if count > 0 and _chinese(word)}
        if not any(len(word) > 1 for word in known):
            raise DataError("The list holds no word of two Chinese characters or more.", where=where)
        self.words = len(known)
        whole = math.log2(sum(known.values()))
        costs = {word: round((whole - math.log2(count)) * _SCALE) for word, count in known.items()}
        self._single = np.full(LAST - FIRST + 1, round(whole * _SCALE), dtype=np.int64)
        self._levels: list[tuple[Ints, Ints]] = []  # of each length from 2: keys (prefix, character), and costs, -1 for no word
        self._lay_out(costs)
        digest = hashlib.sha256(f"word list {WORD_LIST_VERSION}\n".encode())
        digest.update("".join(f"{word} {costs[word]}\n" for word in sorted(costs)).encode())
        self.fingerprint = digest.hexdigest()

    def __repr__(self) -> str:
        return f"WordList({self.words:,} words)"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads a UTF-8 file of ``word<TAB>frequency`` lines, or of words alone (parted then into as few words as can be).

        Blank lines are skipped, a byte order mark goes, spaces do for the tab and a third column (jieba's kind of word)
        is not looked at. A word that stands twice has the larger frequency; one of frequency 0 is no word.

        Raises:
            MissingError: The file cannot be read.
            DataError: A line is not of this form, or no word has two Chinese characters.
        """
        frequencies: dict[str, int] = {}
        columns = 0
        for number, line in numbered_lines(path):
            word, *rest = line.split("\t") if "\t" in line else line.split()
            columns = columns or min(len(rest) + 1, 2)
            count = rest[0].strip() if rest else "1"
            if min(len(rest) + 1, 2) != columns or len(rest) > 2 or not (count.isascii() and count.isdigit() and len(count) < 19):
                form = "a word and its frequency, a whole number" if columns == 2 else "a word alone, as on the first line"
                raise DataError(
                    f"Line {number} of the word list is {line[:60]!r}, not {form}.",
                    where=f"{path}, line {number}",
                    hint="Every line is `word<TAB>frequency`, or every line is a word.",
                )
            frequencies[word.strip()] = max(int(count), frequencies.get(word.strip(), 0))
        return cls(frequencies, where=str(path))

    def begins(self, text: str) -> Bools:
        """For each Chinese character of ``text``, in order: does a word begin there?

        A character that does not follow a Chinese one begins a word. Many texts are parted fastest in one call, joined
        by a character that is not Chinese (a line end, say).
        """
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        chinese = (codes >= FIRST) & (codes <= LAST)
        alone = ~np.concatenate([np.zeros(1, dtype=bool), chinese])[:-1][chinese]  # behind no other
        characters = (codes[chinese] - FIRST).astype(np.uint16)
        begins = np.zeros(len(characters), dtype=bool)
        start = 0
        while start < len(characters):
            block = slice(start, start + _BLOCK + len(self._levels) + 1)  # words of the block may end behind it
            last = block.stop >= len(characters)
            start += self._part(characters[block].astype(np.int64), alone[block], begins[block], last)
        return begins

    def _lay_out(self, costs: Mapping[str, int]) -> None:
        prefixes = {word[:length] for word in costs for length in range(1, len(word) + 1)}
        nodes = {chr(FIRST + number): number for number in range(LAST - FIRST + 1)}
        for character in nodes:
            if character in costs:
                self._single[nodes[character]] = costs[character]
        for length in range(2, max(map(len, costs)) + 1):
            level = sorted(prefix for prefix in prefixes if len(prefix) == length)
            keys = np.array([nodes[p[:-1]] << _BITS | ord(p[-1]) - FIRST for p in level], dtype=np.int64)
            order = np.argsort(keys)
            level = [level[place] for place in order]
            nodes = {prefix: number for number, prefix in enumerate(level)}
            self._levels.append((keys[order], np.array([costs.get(prefix, -1) for prefix in level], dtype=np.int64)))

    def _part(self, characters: Ints, alone: Bools, begins: Bools, to_the_end: bool) -> int:
        """Parts a block into words as far as that is settled by what lies in it; returns how many characters that is."""
        places, lengths, costs = self._matches(characters, alone)
        groups = groups_of(places, places + lengths, len(characters))
        stop = len(characters) if to_the_end else int(groups[np.searchsorted(groups, _BLOCK, side="right") - 1])
        groups = np.append(groups[groups < stop], stop)
        ends = np.repeat(groups[1:], np.diff(groups))  # [n] of each character's group
        kept = places < stop
        places, lengths, costs = places[kept], lengths[kept], costs[kept]
        kept = places + lengths <= ends[places]
        taken = cheapest(self._single[characters[:stop]], ends, places[kept], lengths[kept], costs[kept])
        here = groups[:-1]
        while len(here):
            begins[here] = True
            following = here + taken[here]
            here = following[following < ends[here]]
        return stop

    def _matches(self, characters: Ints, alone: Bools) -> tuple[Ints, Ints, Ints]:
        """All words of two characters or more in a block: where each starts, its length, its cost."""
        starts, nodes = np.arange(len(characters)), characters
        found: list[tuple[Ints, Ints, Ints]] = [(np.zeros(0, np.int64),) * 3]
        for length, (keys, costs) in enumerate(self._levels, start=2):
            following = starts + length - 1
            inside = following < len(characters)
            inside[inside] = ~alone[following[inside]]
            starts, nodes, following = starts[inside], nodes[inside], following[inside]
            wanted = nodes << _BITS | characters[following]
            nodes = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            met = keys[nodes] == wanted
            starts, nodes = starts[met], nodes[met]
            words = costs[nodes] >= 0
            found.append((starts[words], np.full(int(words.sum()), length), costs[nodes[words]]))
        places, lengths, prices = (np.concatenate(column) for column in zip(*found, strict=True))
        return places, lengths, prices


def _chinese(word: str) -> bool:
    return bool(word) and all(FIRST <= ord(character) <= LAST for character in word)
