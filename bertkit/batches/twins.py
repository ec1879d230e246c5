"""Twins: for each true B that the coin rejects, a run of another document with the same length and the same edges.

Candidates for all pending examples at once are thrown and checked in numpy; the stubborn few are settled by listing
every place that fits. Where there is none, the run may leave its sentence, then differ in length as little as may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertkit.batches.text import SENTENCE, Bools, Ints, Text, ragged

TRIES = 1_024  # throws per example before its places are listed; a border-to-border run takes some 30
CHUNK = 1 << 18  # places looked at in one go
LISTED = 4_096  # places kept of a kind of run, so that the lists stay small

Key = tuple[int, int, int, int]  # length, begin, end, single


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What each twin must be like; every field is ``[n]``.

    Attributes:
        length: Tokens.
        begin: Kind of its first edge. ``end``: of its last.
        single: 1 within one sentence, 0 over a border, -1 either.
        document: The document (:attr:`Text.owner`) that it must not come from.
        room: Tokens that it may have at most.
    """

    length: Ints
    begin: Ints
    end: Ints
    single: Ints
    document: Ints
    room: Ints

    def take(self, rows: Ints, **changes: Ints) -> Wanted:
        """These rows, with some fields given anew."""
        fields = {name: getattr(self, name)[rows] for name in self.__slots__}
        return Wanted(**{**fields, **changes})


def find_twins(text: Text, usable: Bools, start: Ints, end: Ints, room: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Start and end of a twin for each span ``[start, end)``; the ``usable`` rows must be of two documents."""
    single = (text.sentence(start) == text.sentence(end - 1)).astype(np.int64)
    wanted = Wanted(
        length=end - start,
        begin=text.kind(start),
        end=text.kind(end),
        single=single,
        document=text.owner[text.document(start)],
        room=room,
    )
    begin, length = np.full(len(start), -1), end - start
    giant = np.equal(wanted.document, _giant(text, usable))
    for rows, allowed in (
        (np.flatnonzero(~giant), usable),
        (np.flatnonzero(giant), usable & np.not_equal(text.owner, wanted.document[np.argmax(giant)])),
    ):
        if len(rows):
            begin[rows], length[rows] = _among(text, allowed, wanted.take(rows), rng)
    return begin, begin + length


def _giant(text: Text, usable: Bools) -> int:
    """The document that has more than half of the usable tokens, -1 where none has: its throws would mostly hit itself."""
    sizes = np.diff(text.document_edges) * usable
    firsts = np.flatnonzero(np.diff(text.owner, prepend=-1))
    tokens = np.add.reduceat(sizes, firsts)
    most = int(np.argmax(tokens))
    return int(text.owner[firsts[most]]) if 2 * tokens[most] > tokens.sum() else -1


def _among(text: Text, allowed: Bools, wanted: Wanted, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Start and length of a twin for each that is wanted, out of the rows that are ``allowed``."""
    sizes = np.diff(text.document_edges)
    sparse = 2 * int(sizes[allowed].sum()) < text.tokens
    finder = _Finder(text.only(allowed) if sparse else text, allowed[allowed] if sparse else allowed, rng)
    found, length = finder.find(wanted), wanted.length.copy()
    left = np.flatnonzero(found < 0)
    if len(left):
        found[left] = finder.find(wanted.take(left, single=np.full(len(left), -1)))
    left = np.flatnonzero(found < 0)
    if len(left):
        found[left], length[left] = finder.nearest(wanted.take(left))
    return finder.text.traced(found) if sparse else found, length


class _Finder:
    def __init__(self, text: Text, usable: Bools, rng: np.random.Generator) -> None:
        self.text, self.usable, self.rng = text, usable, rng
        sizes = np.diff(text.edges)
        self.by_size = np.argsort(sizes, kind="stable")
        self.sizes = sizes[self.by_size]
        self.listed: dict[Key, tuple[Ints, Ints]] = {}

    def find(self, wanted: Wanted) -> Ints:
        """Where each twin starts, -1 where the text holds none."""
        found = np.full(len(wanted.length), -1)
        low, high = self._range(wanted)
        possible = (wanted.single != 1) | (high > low)  # no sentence is long enough: there is none
        pending = np.flatnonzero(possible)
        tries = min(TRIES, self.text.tokens // 64)  # to list a small text's places is no more work than so many throws
        thrown = 0
        while len(pending) and thrown < tries:
            times = min(tries - thrown, max(1, 65_536 // len(pending)))
            rows = np.repeat(pending, times)
            throws = wanted.take(rows)
            starts = self._throw(throws)
            good = np.flatnonzero(self._fits(throws, starts))
            found[rows[good[::-1]]] = starts[good[::-1]]  # the first good throw of a row stands
            pending = pending[found[pending] < 0]
            thrown += times
        found[pending] = self._settle(wanted.take(pending))
        return found

    def nearest(self, wanted: Wanted) -> tuple[Ints, Ints]:
        """Start and length of the runs that come nearest in length; their edges matter less than that there is one."""
        found, length = np.full(len(wanted.length), -1), wanted.length.copy()
        for step in range(1, int(max(wanted.length.max(), wanted.room.max()))):
            for other in (wanted.length - step, wanted.length + step):
                rows = np.flatnonzero((found < 0) & (other >= 1) & (other <= wanted.room))
                found[rows] = self._settle(wanted.take(rows, length=other[rows], single=np.full(len(rows), -1)))
                rows = rows[found[rows] >= 0]
                length[rows] = other[rows]
            if (found >= 0).all():
                break
        for row in np.flatnonzero(found < 0):
            found[row], length[row] = self._any(int(wanted.document[row]), int(wanted.length[row]))
        return found, length

    def _any(self, document: int, length: int) -> tuple[int, int]:
        """The beginning of another document, whatever its edges."""
        edges = self.text.document_edges
        others = np.flatnonzero(self.usable & (self.text.owner != document))
        fitting = others[edges[others + 1] - edges[others] >= length]
        other = int(self.rng.choice(fitting if len(fitting) else others))
        return int(edges[other]), min(length, int(edges[other + 1] - edges[other]))

    def _range(self, wanted: Wanted) -> tuple[Ints, Ints]:
        """Which part of ``by_size`` can hold each run that stays within one sentence."""
        inner = (wanted.begin != SENTENCE).astype(np.int64) + (wanted.end != SENTENCE)
        low = np.searchsorted(self.sizes, wanted.length + inner)
        high = np.where(inner > 0, len(self.sizes), np.searchsorted(self.sizes, wanted.length, side="right"))
        return low, high

    def _throw(self, wanted: Wanted) -> Ints:
        """A random candidate each, at an edge of the wanted kind where edges are sentence borders."""
        text, edges = self.text, self.text.edges
        low, high = self._range(wanted)
        single = wanted.single == 1
        low, high = np.where(single, low, 0), np.where(single, high, len(self.sizes))
        pick = low + (self.rng.random(len(low)) * (high - low)).astype(np.int64)
        sentence = self.by_size[np.minimum(pick, len(self.sizes) - 1)]
        fraction = self.rng.random(len(low))
        slack = np.maximum(0, edges[sentence + 1] - edges[sentence] - wanted.length - 1)
        within = edges[sentence] + 1 + (fraction * slack).astype(np.int64)
        anywhere = (fraction * (text.tokens - wanted.length + 1)).astype(np.int64)
        free = np.where(single, within, anywhere)
        by_end = np.where(wanted.end == SENTENCE, edges[sentence + 1] - wanted.length, free)
        return np.where(wanted.begin == SENTENCE, edges[sentence], by_end)

    def _fits(self, wanted: Wanted, starts: Ints) -> Bools:
        """Is each candidate a run of another usable document with the edges that are wanted?"""
        text = self.text
        ends = starts + wanted.length
        good = (starts >= 0) & (ends <= text.tokens)
        for test in (self._same_end, self._same_begin, self._same_single, self._other_document):
            rows = np.flatnonzero(good)
            good[rows] = test(wanted.take(rows), starts[rows], ends[rows])
        return good

    def _same_end(self, wanted: Wanted, starts: Ints, ends: Ints) -> Bools:
        return np.equal(self.text.kind(ends), wanted.end)

    def _same_begin(self, wanted: Wanted, starts: Ints, ends: Ints) -> Bools:
        return np.equal(self.text.kind(starts), wanted.begin)

    def _same_single(self, wanted: Wanted, starts: Ints, ends: Ints) -> Bools:
        single = self.text.sentence(starts) == self.text.sentence(ends - 1)
        same: Bools = np.equal(single, wanted.single) | (wanted.single < 0)
        return same

    def _other_document(self, wanted: Wanted, starts: Ints, ends: Ints) -> Bools:
        row = self.text.document(starts)
        whole = np.equal(row, self.text.document(ends - 1))
        other: Bools = whole & np.not_equal(self.text.owner[row], wanted.document) & self.usable[row]
        return other

    def _settle(self, wanted: Wanted) -> Ints:
        """A random one of all places that fit for each that is wanted, -1 where there is none."""
        found = np.full(len(wanted.length), -1)
        if not len(found):
            return found
        keys = np.stack([wanted.length, wanted.begin, wanted.end, wanted.single], axis=1)
        kinds, kind = np.unique(keys, axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        order = np.argsort(kind, kind="stable")
        for number, rows in enumerate(np.split(order, np.searchsorted(kind[order], np.arange(1, len(kinds))))):
            length, begin, end, single = kinds[number].tolist()
            starts, owners = self._listed((length, begin, end, single))
            low = np.searchsorted(owners, wanted.document[rows])  # its own document's places lie side by side
            own = np.searchsorted(owners, wanted.document[rows], side="right") - low
            free = len(starts) - own
            pick = (self.rng.random(len(rows)) * free).astype(np.int64)
            pick = np.minimum(pick + np.where(pick >= low, own, 0), len(starts) - 1)
            if len(starts):
                found[rows] = np.where(free > 0, starts[pick], -1)
        return found

    def _listed(self, key: Key) -> tuple[Ints, Ints]:
        """The places that fit, and their documents; :data:`LISTED` random ones where there are more."""
        if key not in self.listed:
            good = [np.zeros(0, np.int64)]
            for starts in self._places(*key):
                length, begin, end, single = (np.broadcast_to(np.int64(value), len(starts)) for value in key)
                anyone = np.broadcast_to(np.int64(-1), len(starts))
                wanted = Wanted(length=length, begin=begin, end=end, single=single, document=anyone, room=length)
                good.append(starts[self._fits(wanted, starts)])
            places = np.concatenate(good)
            if len(places) > LISTED:
                places = np.sort(self.rng.choice(places, LISTED, replace=False))
            self.listed[key] = np.sort(places), self.text.owner[self.text.document(np.sort(places))]
        return self.listed[key]

    def _places(self, length: int, begin: int, end: int, single: int) -> Iterator[Ints]:
        """All places that may fit, some :data:`CHUNK` at a time."""
        text, edges = self.text, self.text.edges
        sentences = np.arange(len(edges) - 1)
        if single == 1:
            inner = (begin != SENTENCE) + (end != SENTENCE)
            low = int(np.searchsorted(self.sizes, length + inner))
            high = len(self.sizes) if inner else int(np.searchsorted(self.sizes, length, side="right"))
            sentences = self.by_size[low:high]
        if begin == SENTENCE:
            yield edges[sentences]
        elif end == SENTENCE:
            yield edges[sentences + 1] - length
        else:
            first = edges[sentences] + 1 if single == 1 else text.document_edges[:-1]
            last = edges[sentences + 1] - length if single == 1 else text.document_edges[1:] - length + 1
            sizes = np.maximum(0, last - first)
            chunk = np.cumsum(sizes) // CHUNK
            for rows in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(chunk)) + 1):
                yield ragged(first[rows], sizes[rows])[0]
