"""Passages are found where their ids stand in a document of the store, and nowhere else: by the letter, not by a hash."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus import overlap
from bertkit.corpus.overlap import LEAST, RUN, find_overlap, rolling_hashes
from bertkit.randomness import stream


@dataclass
class Text:
    ids: Any
    document_ends: Any


def text(*documents: list[int]) -> Text:
    return Text(np.array(list(chain(*documents)), dtype=np.uint16), np.cumsum([len(d) for d in documents]))


def plain(documents: list[list[int]], passage: list[int]) -> list[bool]:
    """Which pieces are covered, by comparing lists."""
    length = RUN if len(passage) >= RUN else len(passage)
    covered = [False] * len(passage)
    if length < LEAST:
        return covered
    for start in range(len(passage) - length + 1):
        window = passage[start : start + length]
        if any(document[at : at + length] == window for document in documents for at in range(len(document) - length + 1)):
            covered[start : start + length] = [True] * length
    return covered


few = st.lists(st.integers(0, 1), min_size=1, max_size=45)


@settings(max_examples=150, deadline=None)
@given(st.lists(few, min_size=1, max_size=3), st.lists(few | st.just([]), max_size=4), st.integers(1, 30), st.booleans())
def test_what_is_found_is_what_stands_there(
    documents: list[list[int]], passages: list[list[int]], block: int, weak: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if weak:  # nearly all hashes are one of four: the ids must decide

            def four(ids: Any, length: int) -> Any:
                hashes = rolling_hashes(ids, length)
                return (hashes >> np.uint64(62)) << np.uint64(62)

            patch.setattr(overlap, "rolling_hashes", four)
        patch.setattr(overlap, "AT_ONCE", 50)
        found = find_overlap(text(*documents), [np.array(p, dtype=np.int32) for p in passages], block=block)
    assert found.covered.tolist() == [sum(plain(documents, p)) for p in passages]
    assert found.lengths.tolist() == [len(p) for p in passages]
    everything = list(chain(*documents))
    for passage, covered, place in zip(passages, found.covered, found.places, strict=True):
        assert (place >= 0) == (covered > 0)
        if covered:
            length = min(RUN, len(passage))
            window = everything[place : place + length]
            assert window in [passage[at : at + length] for at in range(len(passage) - length + 1)]


def test_a_run_across_two_documents_is_none() -> None:
    passage = list(range(20))
    assert find_overlap(text(passage[:10], passage[10:]), [np.array(passage)]).covered.tolist() == [0]
    assert find_overlap(text([7], passage, [7]), [np.array(passage)]).covered.tolist() == [20]


def test_a_short_passage_counts_from_eight_pieces_on() -> None:
    passage = np.arange(8)
    found = find_overlap(text(list(range(30))), [passage, passage[:7]])
    assert found.covered.tolist() == [8, 0]
    assert found.shares.tolist() == [1.0, 0.0]


def test_hashes_of_windows_are_functions_of_the_window_alone() -> None:
    ids = stream(0, "test").integers(0, 3, 3000)
    for length in range(1, 20):
        hashes = rolling_hashes(ids, length)
        assert len(hashes) == len(ids) - length + 1
        windows: dict[bytes, int] = {}
        for start, value in enumerate(hashes.tolist()):
            assert windows.setdefault(ids[start : start + length].tobytes(), value) == value
        assert len(set(windows.values())) == len(windows)  # 3 000 of 2^64: by chance equal in one of 10^12 trials
    assert len(rolling_hashes(ids[:4], 5)) == 0


def test_progress_reaches_the_end() -> None:
    told: list[tuple[int, int]] = []
    find_overlap(text(list(range(100))), [np.arange(20)], block=30, progress=lambda done, total: told.append((done, total)))
    assert told == [(30, 100), (60, 100), (90, 100), (100, 100)]
