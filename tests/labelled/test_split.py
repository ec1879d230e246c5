"""Held-out rows: equal texts on one side, by the texts alone."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.errors import DataError
from bertkit.labelled.split import hold_out


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=120).filter(lambda values: len(set(values)) > 1))
def test_equal_texts_stay_on_one_side_and_nothing_is_lost(values: list[int]) -> None:
    rows = list(enumerate(values))
    kept, held = hold_out(rows, lambda row: f"text {row[1]}")
    assert sorted(kept + held) == rows
    assert kept == sorted(kept)
    assert held == sorted(held)
    assert kept
    assert held
    assert not {value for _, value in kept} & {value for _, value in held}


def test_a_tenth_whatever_the_order() -> None:
    rows = [f"text {n}" for n in range(1000)]
    kept, held = hold_out(rows, str)
    assert (len(kept), len(held)) == (900, 100)
    random.Random(3).shuffle(rows)
    assert set(hold_out(rows, str)[1]) == set(held)


def test_texts_that_differ_in_case_and_spaces_alone_are_equal() -> None:
    rows = [text for n in range(50) for text in (f"Some text {n}", f"some  TEXT {n} ")]
    kept, held = hold_out(rows, str)
    assert len(held) == 10
    assert not {" ".join(text.lower().split()) for text in kept} & {" ".join(text.lower().split()) for text in held}


def test_a_large_group_of_equal_texts_is_not_held_out() -> None:
    rows = ["same"] * 500 + [f"text {n}" for n in range(500)]
    kept, held = hold_out(rows, str)
    assert len(held) == 100
    assert kept.count("same") == 500


def test_no_side_may_be_empty() -> None:
    for rows in ([], ["a"], ["a", "A "]):
        with pytest.raises(DataError, match="--validation-file"):
            hold_out(rows, str)
    assert [len(side) for side in hold_out(["a"] * 9 + ["b"] * 8, str)] == [9, 8]


def test_no_class_loses_its_last_row() -> None:
    rows = [(n, "rare" if n % 25 == 0 else "common") for n in range(100)]
    for share in (0.1, 0.5, 0.9):
        kept, held = hold_out(rows, lambda row: str(row[0]), labels_of=lambda row: (row[1],), share=share)
        assert {label for _, label in kept} == {"rare", "common"}
        assert held
    with pytest.raises(DataError, match="a class would be left without an example"):
        hold_out([("a", "x"), ("b", "y")], lambda row: row[0], labels_of=lambda row: (row[1],))
