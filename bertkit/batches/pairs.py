"""Sentence pairs for next sentence prediction: where A ends, where B begins, and what the coin says.

In comes a :class:`Text`, out come spans of token offsets; masks and special tokens are others'. The pair is drawn
first, then a fair coin: heads keeps B, tails puts a *twin* in its place, a run of another document of the same length
with the same kinds of edges (``twins``). So lengths and borders have one joint distribution under both labels, and
only the words can tell them apart (Devlin et al. 2019, section 3.1; google's code gives the label away by length).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertkit.batches.text import Bools, Ints, Text

SEGMENT = 65_536  # documents are walked side by side, so one far longer than the others is walked in parts of this many tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """Pairs as they stand in the text: A is ``[start, cut)``, the true B ``[cut, end)``; each field is ``[n]`` int64.

    ``label`` is the coin: 0 keeps the true B, 1 asks for a twin (of order prediction: for B before A).
    """

    start: Ints
    cut: Ints
    end: Ints
    label: Ints
    document: Ints


def draw_chunks(text: Text, usable: Bools, short_share: float, rng: np.random.Generator) -> Chunks:
    """Walks all usable documents from end to end, side by side, one chunk each a round.

    After heads the walk goes on behind B, after tails behind A, so each token lies in an A or in a true B.
    """
    place, stop, document = walk_parts(text, usable)
    rounds: list[tuple[Ints, ...]] = []
    while len(place):
        target = np.full(len(place), text.room)
        short = rng.random(len(place)) < short_share
        target[short] = rng.integers(2, text.room + 1, size=len(place))[short]
        start, cut, end = _chunk(text, place, stop, target, document, rng)
        label = rng.integers(0, 2, size=len(place))
        rounds.append((start, cut, end, label, document))
        place = np.where(label == 0, end, cut)
        keep = place < stop
        place, stop, document = place[keep], stop[keep], document[keep]
    columns = [np.concatenate(column) for column in zip(*rounds, strict=True)]
    return Chunks(start=columns[0], cut=columns[1], end=columns[2], label=columns[3], document=columns[4])


def walk_parts(text: Text, usable: Bools) -> tuple[Ints, Ints, Ints]:
    """Start, end and document of each part that is walked on its own."""
    document = np.flatnonzero(usable)
    starts, ends = text.document_edges[document], text.document_edges[document + 1]
    parts = [(starts, ends, document)]
    long = np.flatnonzero(ends - starts > SEGMENT)
    for row in long:
        aims = np.arange(starts[row] + SEGMENT, ends[row], SEGMENT)
        inner = np.unique(text.unit_ends[np.searchsorted(text.unit_ends, aims)])
        edges = np.concatenate([starts[row : row + 1], inner[inner < ends[row]], ends[row : row + 1]])
        parts.append((edges[:-1], edges[1:], np.full(len(edges) - 1, document[row])))
    if len(long):
        kept = np.ones(len(starts), dtype=bool)
        kept[long] = False
        parts[0] = (starts[kept], ends[kept], document[kept])
    start, end, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start)
    return start[order], end[order], owner[order]


def _chunk(
    text: Text, place: Ints, stop: Ints, target: Ints, document: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Start, cut and end of the chunk that begins at each place: units while they fit the target, at least one."""
    units = text.unit_ends
    first = np.searchsorted(units, place, side="right")
    last = np.searchsorted(units, np.minimum(place + target, stop), side="right") - 1
    last = np.maximum(first, last)
    end = units[last]
    inner = rng.random(len(place))
    cut = units[np.minimum(first + (inner * (last - first)).astype(np.int64), len(units) - 1)]
    start = place.copy()
    alone = np.flatnonzero(first == last)
    cut[alone] = part_between_words(text, start[alone], end[alone], inner[alone])
    stuck = alone[cut[alone] < 0]
    if len(stuck):
        begin = np.where(first[stuck] > 0, units[first[stuck] - 1], 0)
        again = stuck[begin < place[stuck]]
        start[again] = begin[begin < place[stuck]]
        cut[again] = part_between_words(text, start[again], end[again], inner[again])
        for row in stuck[cut[stuck] < 0]:
            low, high = text.document_edges[document[row]], text.document_edges[document[row] + 1]
            start[row], cut[row], end[row] = join_word(text, int(start[row]), int(low), int(high), inner[row])
    return start, cut, end


def part_between_words(text: Text, start: Ints, end: Ints, inner: np.ndarray) -> Ints:
    """A uniform word border inside each span, -1 where it is one word."""
    borders, rows = text.inner_borders(start, end)
    count = np.diff(rows)
    chosen = np.minimum(rows[:-1] + (inner * count).astype(np.int64), max(0, len(borders) - 1))
    return np.where(count > 0, borders[chosen], -1) if len(borders) else np.full(len(start), -1)


def join_word(text: Text, place: int, low: int, high: int, inner: float) -> tuple[int, int, int]:
    """A unit of one word, which no border parts: it takes the sentence behind it, else the words before it again.

    Only where the neighbouring word does not fit either are pieces of words parted.
    """
    units, room = text.unit_ends, text.room
    unit = int(np.searchsorted(units, place, side="right"))
    end = int(units[unit])
    if end < high and units[unit + 1] - place <= room:
        return place, end, int(units[unit + 1])
    if place > low:
        before = np.arange(max(low, end - room), place)
        before = before[text.kind(before) != 2]
        if len(before):
            return int(before[0]), place, end
    if end < high:
        behind = np.arange(end + 1, min(high, place + room) + 1)
        behind = behind[text.kind(behind) != 2]
        if len(behind):
            return place, end, int(behind[-1])
    if end - place > 1:
        return place, place + 1 + int(inner * (end - place - 1)), end
    return (max(low, end - room), place, end) if place > low else (place, end, min(high, place + room))
