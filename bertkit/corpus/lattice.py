"""The cheapest way through the words that a text might be made of; numpy alone.

n characters, m words of two characters or more that are found among them. A *group* is a stretch of characters which no
found word leaves or enters, so each group is gone through by itself, and all of them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GROUP = 256
"""Characters of a group at most; words overlap for so long in no text that means anything."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def groups_of(starts: Ints, ends: Ints, size: int) -> Ints:
    """Where groups begin, rising: where no word crosses, and 256 characters behind the last beginning at the latest.

    Args:
        starts: ``[m]`` where each word begins.
        ends: ``[m]`` and where it ends.
        size: n. The first character begins a group.
    """
    crossed = np.zeros(size + 1, dtype=np.int64)
    np.add.at(crossed, starts + 1, 1)
    np.add.at(crossed, ends, -1)
    borders: Ints = np.flatnonzero(np.cumsum(crossed[:-1]) == 0)
    long = np.flatnonzero(np.diff(np.append(borders, size)) > GROUP)
    if not len(long):
        return borders
    reaches = np.arange(1, size + 1)
    np.maximum.at(reaches, starts, ends)
    more: list[int] = []
    for number in long.tolist():
        group = reach = int(borders[number])
        stop = int(borders[number + 1]) if number + 1 < len(borders) else size
        for place, end in enumerate(reaches[group:stop].tolist(), start=group):
            if place - group == GROUP or place == reach > group:
                more.append(place)
                group = reach = place
            reach = max(reach, end)
    return np.sort(np.concatenate([borders, np.array(more, dtype=np.int64)]))


def cheapest(single: Ints, ends: Ints, places: Ints, lengths: Ints, costs: Ints) -> Ints:
    """``[n]`` the length of the word to take at each character: that of the cheapest way from there to its group's end.

    All groups are gone through at once, from their last characters on.

    Args:
        single: ``[n]`` the cost of each character as a word.
        ends: ``[n]`` where each character's group ends.
        places: ``[m]`` where each longer word starts.
        lengths: ``[m]`` its characters.
        costs: ``[m]`` its cost.
    """
    left = ends - np.arange(len(ends))  # characters up to the group's end
    best = np.append(single, 0)
    taken = np.ones(len(single), dtype=np.int64)
    by_left = np.argsort(left, kind="stable")
    rows = np.searchsorted(left[by_left], np.arange(1, int(left.max(initial=0)) + 2))
    words = np.lexsort((lengths, left[places]))
    places, lengths, costs = places[words], lengths[words], costs[words]
    width = int(lengths.max(initial=1)) + 1
    kinds = left[places] * width + lengths
    for distance in range(2, len(rows)):
        here = by_left[rows[distance - 1] : rows[distance]]
        best[here] += best[here + 1]
        first, behind = np.searchsorted(kinds, [distance * width, (distance + 1) * width])
        while first < behind:  # the words of one length, the shorter ones first
            last = int(np.searchsorted(kinds, kinds[first], side="right"))
            at, length = places[first:last], int(lengths[first])
            price = costs[first:last] + np.where(length < distance, best[at + length], 0)
            better = price <= best[at]
            best[at[better]], taken[at[better]] = price[better], length
            first = last
    return taken
