"""Hashes are counted exactly, however many parts and blocks they fall into, and from a point on as from the start."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bertkit.corpus import repeats
from bertkit.corpus.repeats import RepeatCounter, Repeats
from bertkit.errors import DataError
from bertkit.randomness import stream


def plain(hashes: list[int], largest: int = 20) -> Repeats:
    """Counted by a dictionary."""
    counts = Counter(hashes)
    most = sorted(((h, n) for h, n in counts.items() if n > 1), key=lambda pair: (-pair[1], pair[0]))
    return Repeats(total=len(hashes), distinct=len(counts), largest=tuple(most[:largest]))


values = st.one_of(st.integers(0, 30), st.integers(2**64 - 20, 2**64 - 1), st.integers(0, 2**64 - 1))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(arrays(np.uint64, st.integers(0, 40), elements=values), max_size=6),
    st.integers(1, 40),
    st.integers(1, 5),
)
def test_counts_are_a_dictionarys(
    tmp_path_factory: pytest.TempPathFactory, added: list[np.ndarray], at_once: int, files: int
) -> None:
    folder = tmp_path_factory.mktemp("repeats")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "FILES", files)  # so few that parts are read in ranges of values
        counter = RepeatCounter(folder, at_once=at_once)
        for hashes in added:
            counter.add(hashes)
        assert counter.finish() == plain([value for hashes in added for value in hashes.tolist()])
    assert list(folder.iterdir()) == []


def test_a_counter_goes_on_from_a_recorded_size(tmp_path: Path) -> None:
    hashes = stream(0, "test").integers(0, 5000, 200_000).astype(np.uint64)
    first = RepeatCounter(tmp_path)
    first.add(hashes[:90_000])
    size = first.flush()
    assert size == 8 * 90_000
    first.add(hashes[50_000:])  # written behind the point, then the process was killed
    first.flush()
    second = RepeatCounter(tmp_path, size=size, largest=3)
    second.add(hashes[90_000:])
    assert second.finish() == plain(hashes.tolist(), largest=3)


def test_a_new_counter_begins_with_nothing_whatever_lies_there(tmp_path: Path) -> None:
    left = RepeatCounter(tmp_path)
    left.add(np.arange(5, dtype=np.uint64))
    left.flush()
    assert RepeatCounter(tmp_path).finish() == Repeats(total=0, distinct=0)


@pytest.mark.parametrize("kept", [None, 40])
def test_a_file_shorter_than_its_recorded_size_is_damaged(tmp_path: Path, kept: int | None) -> None:
    if kept is not None:
        (tmp_path / "hashes.bin").write_bytes(bytes(kept))
    with pytest.raises(DataError, match="48 bytes"):
        RepeatCounter(tmp_path, size=48)


def test_what_came_before_is_counted(tmp_path: Path) -> None:
    counter = RepeatCounter(tmp_path)
    counter.add(np.array([7, 9, 7, 7, 9, 1], dtype=np.uint64))
    found = counter.finish()
    assert (found.repeated, found.largest) == (3, ((7, 3), (9, 2)))
