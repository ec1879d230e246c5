"""Runs of sentences of one document, as long as fits: the examples of masked language modelling alone (RoBERTa's)."""

from __future__ import annotations

import numpy as np

from bertkit.batches.pairs import walk_parts
from bertkit.batches.text import Bools, Ints, Text


def gather_runs(text: Text, taken: Bools) -> tuple[Ints, Ints]:
    """Start and end of each run; every token of the documents that are ``taken`` (``[D]``) lies in exactly one."""
    place, stop, _ = walk_parts(text, taken)
    starts, ends = [place[:0]], [place[:0]]
    while len(place):
        last = np.searchsorted(text.unit_ends, np.minimum(place + text.room, stop), side="right") - 1
        end = text.unit_ends[last]
        starts.append(place)
        ends.append(end)
        keep = end < stop
        place, stop = end[keep], stop[keep]
    return np.concatenate(starts), np.concatenate(ends)
