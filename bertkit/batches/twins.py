"""Twins: for each true B that the coin rejects, a run of another document with the same length and the same edges.

Candidates for all pending examples at once are thrown and checked in numpy; the stubborn few are settled by listing
every place that fits. Where there is none, the run may leave its sentence, then differ in length as little as may be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertkit.batches.text import SENTENCE, Bools, Ints, Text

TRIES = 1_024  # throws per example before its places are listed; a border-to-border run takes some 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What each twin must be like; every field is ``[n]``.

    Attributes:
        length: Tokens.
        begin: Kind of its first edge. ``end``: of its last.
        single: 1 within one sentence, 0 over a border, -1 either.
        document: The document that it must not come from.
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
    """Start and end of a twin for each span ``[start, end)``; ``usable`` must hold two documents."""
    finder = _Finder(text, usable, rng)
    length = end - start
    single = (text.sentence(start) == text.sentence(end - 1)).astype(np.int64)
    wanted = Wanted(
        length=length, begin=text.kind(start), end=text.kind(end), single=single, document=text.document(start), room=room
    )
    found = finder.find(wanted)
    left = np.flatnonzero(found < 0)
    if len(left):
        found[left] = finder.find(wanted.take(left, single=np.full(len(left), -1)))
    for row in np.flatnonzero(found < 0):
        found[row], length[row] = finder.nearest(wanted.take(np.array([row])))
    return found, found + length


class _Finder:
    def __init__(self, text: Text, usable: Bools, rng: np.random.Generator) -> None:
        self.text, self.usable, self.rng = text, usable, rng
        sizes = np.diff(text.edges)
        self.by_size = np.argsort(sizes, kind="stable")
        self.sizes = sizes[self.by_size]
        self.listed: dict[tuple[int, ...], Ints] = {}

    def find(self, wanted: Wanted) -> Ints:
        """Where each twin starts, -1 where the store holds none."""
        found = np.full(len(wanted.length), -1)
        low, high = self._range(wanted)
        pending = np.flatnonzero((wanted.single != 1) | (high > low))  # no sentence is long enough: there is none
        thrown = 0
        while len(pending) and thrown < TRIES:
            times = min(TRIES - thrown, max(1, 65_536 // len(pending)))
            rows = np.repeat(pending, times)
            throws = wanted.take(rows)
            starts = self._throw(throws)
            good = np.flatnonzero(self._fits(throws, starts))
            found[rows[good[::-1]]] = starts[good[::-1]]  # the first good throw of a row stands
            pending = pending[found[pending] < 0]
            thrown += times
        for row in pending:
            found[row] = self._listed(wanted.take(np.array([row])))
        return found

    def nearest(self, wanted: Wanted) -> tuple[int, int]:
        """Start and length of the run that comes nearest in length; its edges matter less than that there is one."""
        length, room = int(wanted.length[0]), int(wanted.room[0])
        for step in range(1, max(length, room)):
            for other in (length - step, length + step):
                if 1 <= other <= room:
                    start = self._listed(wanted.take(np.array([0]), length=np.array([other]), single=np.array([-1])))
                    if start >= 0:
                        return start, other
        others = np.flatnonzero(self.usable)
        others = others[others != wanted.document[0]]
        edges = self.text.document_edges
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
        document = self.text.document(starts)
        whole = np.equal(document, self.text.document(ends - 1))
        other: Bools = whole & np.not_equal(document, wanted.document) & self.usable[document]
        return other

    def _listed(self, wanted: Wanted) -> int:
        """A random one of all places that fit, -1 where there is none."""
        key = tuple(int(getattr(wanted, name)[0]) for name in ("length", "begin", "end", "single"))
        if key not in self.listed:
            starts = self._places(wanted)
            everywhere = wanted.take(np.zeros(len(starts), np.int64), document=np.full(len(starts), -1))
            self.listed[key] = starts[self._fits(everywhere, starts)]
        starts = self.listed[key]
        starts = starts[self.text.document(starts) != wanted.document[0]]
        return int(self.rng.choice(starts)) if len(starts) else -1

    def _places(self, wanted: Wanted) -> Ints:
        edges, length = self.text.edges, int(wanted.length[0])
        sentences = np.arange(len(edges) - 1)
        if wanted.single[0] == 1:
            low, high = self._range(wanted)
            sentences = self.by_size[low[0] : high[0]]
        if wanted.begin[0] == SENTENCE:
            return edges[sentences]
        if wanted.end[0] == SENTENCE:
            return edges[sentences + 1] - length
        if wanted.single[0] != 1:
            return np.arange(self.text.tokens - length + 1)
        spans = [np.arange(edges[s] + 1, edges[s + 1] - length) for s in sentences]
        return np.concatenate(spans) if spans else np.zeros(0, np.int64)
