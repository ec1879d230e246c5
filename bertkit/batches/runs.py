"""Runs of sentences of one document, as long as fits: the examples of masked language modelling alone (RoBERTa's)."""

from __future__ import annotations

import numpy as np

from bertkit.batches.pairs import walk_parts
from bertkit.batches.text import Ints, Text


def gather_runs(text: Text) -> tuple[Ints, Ints]:
    """Start and end of each run; every token lies in exactly one."""
    place, stop, _ = walk_parts(text, np.ones(text.documents, dtype=bool))
    starts: list[Ints] = []
    ends: list[Ints] = []
    while len(place):
        last = np.searchsorted(text.unit_ends, np.minimum(place + text.room, stop), side="right") - 1
        end = text.unit_ends[last]
        starts.append(place)
        ends.append(end)
        keep = end < stop
        place, stop = end[keep], stop[keep]
    return np.concatenate(starts), np.concatenate(ends)
