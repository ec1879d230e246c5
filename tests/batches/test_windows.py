from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.batches.windows import check_windows, trusted_windows, windows
from bertkit.errors import UsageError


def test_the_stride_is_the_overlap() -> None:
    assert windows(157, 114, 0) == [(0, 114), (114, 43)]
    assert windows(157, 114, 113) == [(start, 114) for start in range(44)]
    assert windows(157, 61, 0) == [(0, 61), (61, 61), (122, 35)]
    assert windows(157, 114, 64) == [(0, 114), (50, 107)]


@pytest.mark.parametrize("stride", [114, 120, 128, -1])
def test_a_stride_that_leaves_tokens_out_is_refused_by_both_numbers(stride: int) -> None:
    with pytest.raises(UsageError, match=rf"stride of {stride} .*room for 114") as caught:
        windows(157, 114, stride)
    assert caught.value.exit_code == 2
    assert "0 to 113" in str(caught.value.hint)


@pytest.mark.parametrize("room", [0, -5])
def test_no_room_is_refused(room: int) -> None:
    with pytest.raises(UsageError, match="no room"):
        check_windows(room, 0, max_length=8)


def test_a_text_of_no_tokens_has_one_empty_window() -> None:
    assert windows(0, 5, 2) == [(0, 0)]
    assert trusted_windows([(0, 0)], 0).tolist() == []


@given(st.integers(0, 300), st.integers(1, 60), st.data())
def test_windows_cover_everything_in_order_and_none_is_for_nothing(length: int, room: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, room - 1))
    cuts = windows(length, room, overlap)
    covered = [token for start, size in cuts for token in range(start, start + size)]
    assert set(covered) == set(range(length))
    ends = [start + size for start, size in cuts]
    assert ends[-1] == length
    assert all(end < length for end in ends[:-1])
    assert all(size == room for _, size in cuts[:-1])
    shared = [before + size - after for (before, size), (after, _) in pairwise(cuts)]
    assert shared == [overlap] * (len(cuts) - 1)


@given(st.integers(1, 120), st.integers(1, 40), st.data())
def test_a_token_is_trusted_where_it_has_most_context(length: int, room: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, room - 1))
    cuts = windows(length, room, overlap)
    owner = trusted_windows(cuts, length)
    assert owner.dtype == np.int64
    for token in range(length):
        # google's run_squad.py, _check_is_max_context, with a hundredth of the length counted exactly
        best, expected = None, -1
        for index, (start, size) in enumerate(cuts):
            if start <= token < start + size:
                score = 100 * min(token - start, start + size - 1 - token) + size
                if best is None or score > best:
                    best, expected = score, index
        assert owner[token] == expected


def test_googles_own_example_of_most_context() -> None:
    # "the man went to the | to the store and bought | and bought a gallon of": bought has 1 left, 0 right in the second
    # window of google's comment and 4 right, 1 left in the third.
    owner = trusted_windows([(0, 5), (3, 5), (6, 5)], 11)
    assert owner.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
