from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.metrics.entities import entity_scores
from bertkit.metrics.entity_errors import EntityError, entity_errors


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        ("B-A I-A O", "B-A I-A O", []),
        ("B-A I-A O", "B-B I-B O", [("type", "A", "B")]),
        ("B-A I-A O", "B-A O O", [("borders", "A", "A")]),
        ("B-A I-A O", "O B-B I-B", [("type and borders", "A", "B")]),
        ("B-A O O", "O O B-A", [("missed", "A", ""), ("invented", "", "A")]),
        # a long one in two halves: one of them answers it, the other is invented
        ("B-A I-A I-A", "B-A I-A B-A", [("borders", "A", "A"), ("invented", "", "A")]),
        # the same words come before a shared word of the same type
        ("B-A I-A B-B", "B-B I-B B-A", [("type", "A", "B"), ("type", "B", "A")]),
        # what is right answers itself alone
        ("B-A B-A I-A", "B-A O B-A", [("borders", "A", "A")]),
    ],
)
def test_what_went_wrong(gold: str, found: str, expected: list[Any]) -> None:
    assert sorted(entity_errors([gold.split()], [found.split()]).elements()) == sorted(EntityError(*each) for each in expected)


TAGS = st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), min_size=8, max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(TAGS, TAGS), max_size=4))
def test_each_entity_is_right_or_in_one_error(both: list[tuple[list[str], list[str]]]) -> None:
    gold, found = [ours for ours, _ in both], [theirs for _, theirs in both]
    counts, total = entity_errors(gold, found), entity_scores(gold, found).total
    assert sum(n for error, n in counts.items() if error.fault != "invented") == total.gold - total.correct
    assert sum(n for error, n in counts.items() if error.fault != "missed") == total.found - total.correct
