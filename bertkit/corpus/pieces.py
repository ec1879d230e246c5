"""Words in, places of their ids out: what the encoder has met before, in memory of a fixed bound.

:class:`Pieces` holds the ids, :class:`WordTable` finds the place of a short word by its very bytes, for thousands of
words in a few array operations, and :class:`ChunkTable` finds the place of any other text, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Words = NDArray[np.uint64]
"""``[n, 2]``: the bytes of words of at most :data:`WORD_BYTES`, zeros behind them; no word begins with a zero byte."""

WORD_BYTES = 16
WORD = np.dtype("<u8")  # half a word


class Pieces:
    """Runs of ids, end to end; the place of a run is the index of its first id.

    Args:
        size: V; the run of the id i alone has the place i, and the empty run the place V.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = size + 1
        self._ids = np.arange(size + 1, dtype=np.int32)
        self._counts = np.ones(size + 1, dtype=np.int32)  # of the run that begins here
        self._counts[size] = 0

    def __len__(self) -> int:
        return self._used

    def add(self, ids: Ids, counts: Ids) -> Ids:
        """Takes in runs.

        Args:
            ids: ``[sum(counts)]``: all runs end to end.
            counts: ``[runs]`` int32: ids of each.

        Returns:
            The places, ``[runs]`` int32.
        """
        starts = np.cumsum(counts) - counts
        places = np.full(len(counts), self._size, dtype=np.int32)
        single, several = counts == 1, counts > 1
        places[single] = ids[starts[single]]
        kept = np.repeat(several, counts)
        self._reserve(int(kept.sum()))
        lengths = counts[several]
        fresh = self._used + np.cumsum(lengths) - lengths
        self._ids[self._used : self._used + len(ids[kept])] = ids[kept]
        self._counts[fresh] = lengths
        self._used += int(lengths.sum())
        places[several] = fresh
        return places

    def _reserve(self, more: int) -> None:
        if self._used + more > len(self._ids):
            room = (self._used + more) * 5 // 4
            self._ids, self._counts = np.resize(self._ids, room), np.resize(self._counts, room)

    def take(self, places: Ids) -> tuple[Ids, Ids]:
        """The ids of the runs at ``places``, end to end, and how many each has (both int32)."""
        counts = self._counts.take(places)
        ends = np.cumsum(counts, dtype=np.int64)
        where = np.repeat(places - (ends - counts), counts)
        where += np.arange(len(where))
        return self._ids.take(where), counts

    def cut(self, length: int) -> None:
        """Forgets all runs from the place ``length`` on."""
        self._used = length


class WordTable:
    """From words to places: open addressing in arrays, so exact and without an object a word.

    Args:
        slots: A power of two; 21 bytes each. :attr:`full` is said at half of them.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._shift = np.uint64(65 - slots.bit_length())
        self._words = np.zeros((slots, 2), dtype=WORD)
        self._places = np.zeros(slots, dtype=np.int32)
        self._hit = np.zeros(slots, dtype=np.bool_)
        self._used = 0

    @property
    def full(self) -> bool:
        """Half of the slots are taken."""
        return self._used > self._slots // 2

    def _first_slots(self, words: Words) -> NDArray[np.int64]:
        mixed = words[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ words[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)
        return (mixed >> self._shift).astype(np.int64)

    def find(self, words: Words) -> Ids:
        """The place of each word, ``[n]`` int32; −1 where it is not known."""
        slots = self._first_slots(words)
        there = self._words.take(slots, axis=0)
        equal = _equal(there, words)
        rest = np.flatnonzero(~equal & (there[:, 0] != 0))
        while len(rest):  # another word sits here: the next slot
            slots[rest] = (slots[rest] + 1) & (self._slots - 1)
            there = self._words.take(slots[rest], axis=0)
            found = _equal(there, words[rest])
            equal[rest[found]] = True
            rest = rest[~found & (there[:, 0] != 0)]
        self._hit[slots[equal]] = True
        return np.where(equal, self._places.take(slots), np.int32(-1))

    def add(self, words: Words, places: Ids) -> None:
        """Takes in words, none of them known and none twice."""
        slots = self._first_slots(words)
        rest = np.arange(len(words))
        while len(rest):
            free = self._words[slots[rest], 0] == 0
            tried = rest[free]
            self._places[slots[tried]] = tried  # of several words that want one slot, the one whose number stays has it
            won = self._places[slots[tried]] == tried
            placed = tried[won]
            self._words[slots[placed]] = words[placed]
            self._places[slots[placed]] = places[placed]
            rest = np.concatenate([rest[~free], tried[~won]])
            slots[rest] = (slots[rest] + 1) & (self._slots - 1)
        self._used += len(words)

    def drain(self) -> tuple[Words, Ids]:
        """Empties the table; what was found since the last time comes back, at most a quarter of the slots, oldest first."""
        kept = np.flatnonzero(self._hit)
        kept = kept[np.argsort(self._places[kept], kind="stable")[: self._slots // 4]]
        words, places = self._words[kept], self._places[kept]
        self._words[:], self._hit[:], self._used = 0, False, 0
        return words, places


def _equal(some: Words, others: Words) -> NDArray[np.bool_]:
    both: NDArray[np.bool_] = (some[:, 0] == others[:, 0]) & (some[:, 1] == others[:, 1])  # all(axis=1) takes ten times as long
    return both


class ChunkTable:
    """From any text to places; some 200 bytes a chunk.

    Args:
        size: Chunks from which on it is :attr:`full`.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[str, int] = {}
        self._places = np.zeros(0, dtype=np.int32)
        self._hit = np.zeros(0, dtype=np.bool_)

    @property
    def full(self) -> bool:
        """No further chunk should be taken in."""
        return len(self._numbers) >= self._size

    def find(self, chunks: Sequence[str]) -> Ids:
        """The place of each chunk, ``[n]`` int32; −1 where it is not known."""
        get = self._numbers.get
        numbers = np.fromiter((get(chunk, -1) for chunk in chunks), dtype=np.int64, count=len(chunks))
        known = numbers >= 0
        self._hit[numbers[known]] = True
        out = np.full(len(chunks), -1, dtype=np.int32)
        out[known] = self._places[numbers[known]]
        return out

    def add(self, chunks: Sequence[str], places: Ids) -> None:
        """Takes in chunks, none of them known and none twice."""
        self._numbers.update(zip(chunks, range(len(self._places), len(self._places) + len(chunks)), strict=True))
        self._places = np.concatenate([self._places, places])
        self._hit = np.concatenate([self._hit, np.zeros(len(chunks), dtype=np.bool_)])

    def drain(self) -> tuple[list[str], Ids]:
        """Empties the table; what was found since the last time comes back, at most half of its size, oldest first."""
        kept = np.flatnonzero(self._hit)[: self._size // 2]
        chunks = list(self._numbers)
        out = [chunks[i] for i in kept.tolist()], self._places[kept]
        self._clear()
        return out
