"""Words in, places of their ids out: what an encoder has met before, in memory of a fixed bound.

:class:`Pieces` holds runs of ids, :class:`WordTable` finds the place of a word's run by the word's very characters, for
thousands of words in a few array operations and without an object a word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Words = NDArray[np.uint64]
"""``[n, W]``: the characters of words, one or two bytes each, zeros behind them; the first is not zero."""

WORD = np.dtype("<u8")
_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], dtype=WORD)


class Pieces:
    """Runs of ids, each behind its length; the place of a run is the index of its length.

    Args:
        size: V; the run of the id i alone has the place 2i, and the empty run the place 2V.
        room: Values (ids, and a length a run) that are usual; memory is taken as they come, without a copy.
    """

    def __init__(self, size: int, room: int) -> None:
        self._empty = 2 * size
        self._used = 2 * size + 1
        self._room = self._used + room
        self._values = np.empty(self._room, dtype=np.int32)
        self._values[: self._empty : 2] = 1
        self._values[1 : self._empty : 2] = np.arange(size)
        self._values[self._empty] = 0

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
        places = np.full(len(counts), self._empty, dtype=np.int32)
        single, several = counts == 1, counts > 1
        places[single] = 2 * ids[np.cumsum(counts)[single] - 1]
        lengths = counts[several]
        ends = self._used + np.cumsum(lengths + 1, dtype=np.int64)
        fresh = ends - lengths - 1
        used = int(ends[-1]) if len(ends) else self._used
        if used > len(self._values):
            self._values.resize(used, refcheck=False)
        self._values[fresh] = lengths
        self._values[np.repeat(fresh + 1 - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())] = ids[
            np.repeat(several, counts)
        ]
        places[several], self._used = fresh, used
        return places

    def take(self, places: Ids) -> tuple[Ids, Ids]:
        """The ids of the runs at ``places``, end to end, and how many each has (both int32)."""
        counts = self._values.take(places)
        ends = np.cumsum(counts, dtype=np.int64)
        where = np.repeat(places + 1 - (ends - counts), counts)
        where += np.arange(len(where))
        return self._values.take(where), counts

    def cut(self, length: int) -> None:
        """Forgets all runs from the place ``length`` on."""
        self._used = length
        if length <= self._room < len(self._values):
            self._values.resize(self._room, refcheck=False)


class WordTable:
    """From words to places, exactly: open addressing in arrays.

    Args:
        slots: A power of two; eight bytes for each of ``width``, and five, a slot. Half of them may be taken.
        width: W, at most 4.
    """

    def __init__(self, slots: int, width: int) -> None:
        self._slots = slots
        self._shift = np.uint64(65 - slots.bit_length())
        self._words = np.zeros((slots, width), dtype=WORD)
        self._places = np.zeros(slots, dtype=np.int32)
        self._hit = np.zeros(slots, dtype=np.bool_)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def full(self) -> bool:
        """Half of the slots are taken."""
        return self._used > self._slots // 2

    def _first_slots(self, words: Words) -> NDArray[np.int64]:
        mixed = words[:, 0] * _ODD[0]
        for column in range(1, words.shape[1]):
            mixed ^= words[:, column] * _ODD[column]
        slots: NDArray[np.int64] = (mixed >> self._shift).astype(np.int64)
        return slots

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
    equal: NDArray[np.bool_] = some[:, 0] == others[:, 0]
    for column in range(1, some.shape[1]):  # (some == others).all(axis=1) takes ten times as long
        equal &= some[:, column] == others[:, column]
    return equal
