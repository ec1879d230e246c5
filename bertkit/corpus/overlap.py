"""Which passages of other texts (validation, a task's evaluation files) stand in a token store, word for word.

A passage is looked for by its runs of 13 pieces, as GPT-3 was cleaned by runs of 13 words (Brown et al. 2020, appendix
C: "N = 8 at least, 13 at most"); one of 8 to 12 pieces is looked for whole; a shorter one may stand anywhere by chance and
is not looked for. Hashes find the places, the ids themselves decide: a hash alone is no proof.

Memory holds a block of the store and a slice of the passages, whatever the size of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

RUN = 13
LEAST = 8
BLOCK = 1 << 18  # tokens of the store looked at in one go
AT_ONCE = 1 << 21  # pieces of passages looked for in one pass over the store: some 200 MB

Int64s = NDArray[np.int64]
_Hashes = NDArray[np.uint64]
_SPREAD, _BASE = np.uint64(0x9E3779B97F4A7C15), 0xD6E8FEB86659FD93  # odd, with bits everywhere


class Text(Protocol):
    """What is looked through: a token store."""

    @property
    def ids(self) -> Any: ...  # noqa: D102
    @property
    def document_ends(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What of M passages stands in the store.

    Attributes:
        lengths: ``[M]`` pieces of each.
        covered: ``[M]`` pieces of each that lie in a run which the store has; all or none of a passage of 8 to 12.
        places: ``[M]`` the token of the store where one of its runs begins; -1 where none was found.
    """

    lengths: Int64s
    covered: Int64s
    places: Int64s

    @property
    def shares(self) -> NDArray[np.float64]:
        """``[M]`` covered pieces by all pieces; 0 for an empty passage."""
        return self.covered / np.maximum(self.lengths, 1)


def find_overlap(
    text: Text, passages: Sequence[NDArray[Any]], *, block: int = BLOCK, progress: Callable[[int, int], None] | None = None
) -> Overlap:
    """Looks for passages, given as ids of the store's vocabulary, within its documents.

    Args:
        text: The store.
        passages: ``[M]`` arrays of ids.
        block: Tokens of the store in memory at once.
        progress: Told tokens done and tokens in all.
    """
    slices = list(_slices(passages))
    found, done, total = [], 0, len(slices) * len(text.ids)
    for some in slices:
        looked = _Passages(some)
        for start in range(0, len(text.ids), block):
            behind = min(start + block, len(text.ids))
            looked.look(np.asarray(text.ids[start : behind + RUN - 1]), start, behind - start, text.document_ends)
            done += behind - start
            if progress:
                progress(done, total)
        found.append((looked.lengths, *looked.covered()))
    empty = np.zeros(0, dtype=np.int64)
    lengths, covered, places = (np.concatenate([empty, *arrays]) for arrays in zip(*found, strict=True)) if found else [empty] * 3
    return Overlap(lengths=lengths, covered=covered, places=places)


def _slices(passages: Sequence[NDArray[Any]]) -> Iterator[Sequence[NDArray[Any]]]:
    start, pieces = 0, 0
    for index, passage in enumerate(passages):
        if pieces and pieces + len(passage) > AT_ONCE:
            yield passages[start:index]
            start, pieces = index, 0
        pieces += len(passage)
    if start < len(passages):
        yield passages[start:]


class _Passages:
    """Passages end to end, and the windows by which they are looked for."""

    def __init__(self, passages: Sequence[NDArray[Any]]) -> None:
        self.lengths = np.fromiter(map(len, passages), dtype=np.int64, count=len(passages))
        self.ids = np.concatenate([np.zeros(0, np.int64), *passages]).astype(np.uint32)
        self.rows = np.zeros(len(passages) + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=self.rows[1:])
        self.tables: list[_Table] = []
        for length in range(LEAST, RUN + 1):
            starts = self._starts(length)
            while len(starts):  # once, but for different windows of one hash
                table = _Table(self.ids, starts, length)
                self.tables.append(table)
                starts = table.left
        self.lengths_used = sorted({table.length for table in self.tables})

    def _starts(self, length: int) -> Int64s:
        """Where the windows of so many pieces begin: everywhere in a passage of 13 or more, else at the start of one so long."""
        if length < RUN:
            return np.asarray(self.rows[:-1][self.lengths == length])
        windows = np.maximum(self.lengths - RUN + 1, 0)
        before = np.cumsum(windows) - windows
        return np.asarray(np.arange(int(windows.sum())) + np.repeat(self.rows[:-1] - before, windows))

    def look(self, ids: NDArray[Any], first: int, count: int, document_ends: Int64s) -> None:
        """Looks at the windows that begin at the first ``count`` of ``ids``, token ``first`` of the store and those behind it."""
        for length in self.lengths_used:
            hashes = rolling_hashes(ids, length)[:count]
            for table in self.tables:
                if table.length == length:
                    table.look(hashes, ids, first, document_ends)

    def covered(self) -> tuple[Int64s, Int64s]:
        """Of each passage its covered pieces, and a place of the store (-1: none)."""
        steps = np.zeros(len(self.ids) + 1, dtype=np.int64)
        places = np.full(len(self.lengths), -1, dtype=np.int64)
        for table in self.tables:
            starts, where = table.found()
            np.add.at(steps, starts, 1)
            np.add.at(steps, starts + table.length, -1)
            places[np.searchsorted(self.rows, starts, side="right") - 1] = where
        pieces = np.zeros(len(self.ids) + 1, dtype=np.int64)
        np.cumsum(np.cumsum(steps[:-1]) > 0, out=pieces[1:])
        return pieces[self.rows[1:]] - pieces[self.rows[:-1]], places


class _Table:
    """Different windows of one length, each hash once; equal windows share an entry."""

    def __init__(self, ids: NDArray[np.uint32], starts: Int64s, length: int) -> None:
        self.length, self._ids = length, ids
        hashes = rolling_hashes(ids, length)[starts]
        self._hashes, first, entry = np.unique(hashes, return_index=True, return_inverse=True)
        self._firsts = starts[first]
        same = _equal(ids, starts, ids, self._firsts[entry], length)
        self._starts, self._entry = starts[same], entry[same]
        self.left = starts[~same]
        self._places = np.full(len(self._hashes), -1, dtype=np.int64)
        self._shift = np.uint64(64 - min(max(int(8 * len(self._hashes)).bit_length(), 16), 24))
        self._maybe = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)
        self._maybe[self._hashes >> self._shift] = True

    def look(self, hashes: _Hashes, ids: NDArray[Any], first: int, document_ends: Int64s) -> None:
        at = np.flatnonzero(self._maybe[hashes >> self._shift])
        entry = np.minimum(np.searchsorted(self._hashes, hashes[at]), len(self._hashes) - 1)
        new = (self._hashes[entry] == hashes[at]) & (self._places[entry] < 0)
        at, entry = at[new], entry[new]
        for low in range(0, len(at), 1 << 16):
            some, which = at[low : low + (1 << 16)], entry[low : low + (1 << 16)]
            same = _equal(ids, some, self._ids, self._firsts[which], self.length)
            some, which = some[same], which[same]
            document = np.searchsorted(document_ends, first + some, side="right")
            whole = first + some + self.length <= np.asarray(document_ends)[document]
            self._places[which[whole]] = first + some[whole]

    def found(self) -> tuple[Int64s, Int64s]:
        """The starts of the windows that were found, and where."""
        places = self._places[self._entry]
        return self._starts[places >= 0], places[places >= 0]


def _equal(a: NDArray[Any], at_a: Int64s, b: NDArray[Any], at_b: Int64s, length: int) -> NDArray[np.bool_]:
    same = np.ones(len(at_a), dtype=np.bool_)
    for step in range(length):
        same &= a[at_a + step] == b[at_b + step]
    return same


def rolling_hashes(ids: NDArray[Any], length: int) -> _Hashes:
    """The hash of each window of ``length`` ids, ``[n - length + 1]``: a polynomial modulo 2^64, of windows of 1, 2, 4, 8 …"""
    if len(ids) < length:
        return np.zeros(0, dtype=np.uint64)
    doubled, size, power = _mixed(ids.astype(np.uint64)), 1, _BASE  # power: the base to the size
    out, have = np.zeros(len(ids) + 1, dtype=np.uint64), 0
    while True:
        if length & size:
            count = len(ids) - have - size + 1
            out = out[:count] * np.uint64(power) + doubled[have : have + count]
            have += size
        if 2 * size > length:
            return _mixed(out)
        doubled = doubled[:-size] * np.uint64(power) + doubled[size:]
        size, power = 2 * size, power * power % (1 << 64)


def _mixed(values: _Hashes) -> _Hashes:
    """Spreads every bit over the high ones, which choose the places of the table."""
    values = (values + np.uint64(1)) * _SPREAD
    return (values ^ (values >> np.uint64(32))) * _SPREAD
