"""Pairs for order prediction: two neighbouring runs of a document, and the coin that swaps them (Lan et al. 2020, section 3.1).

What can be alike in both orders is: the cut is as likely behind k units as before the last k, and half of the documents
are walked from their ends, since the unit that did not fit into a chunk, a long one as a rule, begins the next. What
cannot is where one sentence is cut between words, for its first part begins at a border and its second part ends at
one. So a chunk takes two units wherever two fit; at the end of a walk, the one beside it again.
"""

from __future__ import annotations

import numpy as np

from bertkit.batches.pairs import Chunks, join_word, part_between_words, walk_parts
from bertkit.batches.text import Bools, Ints, Text


def draw_orders(text: Text, usable: Bools, short_share: float, rng: np.random.Generator) -> Chunks:
    """Walks all usable documents, side by side, one chunk each a round; label 1 asks for the second run first.

    Every token lies in a chunk; a unit beside the end of a walk may lie in two.
    """
    units = np.append(np.zeros(1, np.int64), text.unit_ends)
    start, stop, document = walk_parts(text, usable)
    low, high = np.searchsorted(units, start), np.searchsorted(units, stop)
    forwards = rng.random(len(low)) < 0.5
    rounds: list[tuple[Ints, ...]] = []
    while len(low):
        target = np.full(len(low), text.room)
        short = rng.random(len(low)) < short_share
        target[short] = rng.integers(2, text.room + 1, size=len(low))[short]
        first, last = _units(units, low, high, target, text.room, forwards)
        spans = _spans(text, units, first, last, forwards, document, rng)
        rounds.append((*spans, rng.integers(0, 2, size=len(low)), document))
        low, high = np.where(forwards, last, low), np.where(forwards, high, first)
        keep = low < high
        low, high, forwards, document = low[keep], high[keep], forwards[keep], document[keep]
    columns = [np.concatenate(column) for column in zip(*rounds, strict=True)]
    return Chunks(start=columns[0], cut=columns[1], end=columns[2], label=columns[3], document=columns[4])


def _units(units: Ints, low: Ints, high: Ints, target: Ints, room: int, forwards: Bools) -> tuple[Ints, Ints]:
    """The first unit of each chunk and the one behind its last: those that fit the target, or two that fit the room, or one."""
    begin, end = units[low], units[high]
    ahead = np.searchsorted(units, np.minimum(begin + target, end), side="right") - 1
    two = np.searchsorted(units, np.minimum(begin + room, end), side="right") - 1
    ahead = np.maximum(np.maximum(ahead, low + 1), np.minimum(low + 2, two))
    behind = np.searchsorted(units, np.maximum(end - target, begin))
    two = np.searchsorted(units, np.maximum(end - room, begin))
    behind = np.minimum(np.minimum(behind, high - 1), np.maximum(high - 2, two))
    return np.where(forwards, low, behind), np.where(forwards, ahead, high)


def _spans(
    text: Text, units: Ints, first: Ints, last: Ints, forwards: Bools, document: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Start, cut and end of each chunk: cut between two units of its own, or beside a unit that it takes again, or in words."""
    inner = rng.random(len(first))
    cut = units[first + 1 + (inner * (last - first - 1)).astype(np.int64)]
    start, end = units[first].copy(), units[last].copy()
    single = last - first == 1
    before, behind = units[np.maximum(first - 1, 0)], units[np.minimum(last + 1, len(units) - 1)]
    edges = text.document_edges
    again = single & forwards & (start > edges[document]) & (end - before <= text.room)
    once_more = single & ~forwards & (end < edges[document + 1]) & (behind - start <= text.room)
    cut[again], start[again] = start[again], before[again]
    cut[once_more], end[once_more] = end[once_more], behind[once_more]
    alone = np.flatnonzero(single & ~again & ~once_more)
    cut[alone] = part_between_words(text, start[alone], end[alone], inner[alone])
    for row in alone[cut[alone] < 0]:
        bounds = int(edges[document[row]]), int(edges[document[row] + 1])
        start[row], cut[row], end[row] = join_word(text, int(start[row]), *bounds, inner[row])
    return start, cut, end
