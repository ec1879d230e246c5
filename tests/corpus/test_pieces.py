from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.pieces import WORD, Pieces, WordTable

RUNS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=20)


def flat(runs: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([i for run in runs for i in run], dtype=np.int32)
    return ids, np.array([len(run) for run in runs], dtype=np.int32)


@settings(deadline=None)
@given(st.lists(RUNS, max_size=5), st.randoms(use_true_random=False))
def test_runs_come_back_from_their_places(several: list[list[list[int]]], rng: object) -> None:
    pieces = Pieces(10, 8)
    places: list[int] = []
    runs: list[list[int]] = []
    for some in several:
        places += pieces.add(*flat(some)).tolist()
        runs += some
    order = list(range(len(runs)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    ids, counts = pieces.take(np.array([places[i] for i in order], dtype=np.int32))
    expected_ids, expected_counts = flat([runs[i] for i in order])
    assert ids.tolist() == expected_ids.tolist()
    assert counts.tolist() == expected_counts.tolist()
    assert {place for place, run in zip(places, runs, strict=True) if len(run) == 1} == {2 * r[0] for r in runs if len(r) == 1}


def test_what_is_cut_away_makes_room() -> None:
    pieces = Pieces(10, 8)
    kept = pieces.add(*flat([[1, 2], [3]]))
    before = len(pieces)
    pieces.add(*flat([[4, 5, 6]] * 1000))
    pieces.cut(before)
    assert len(pieces) == before
    assert pieces._values.nbytes == 4 * (21 + 8)
    again = pieces.add(*flat([[7, 8]]))
    assert pieces.take(np.concatenate([kept, again]))[0].tolist() == [1, 2, 3, 7, 8]


def words_of(texts: list[bytes], width: int) -> np.ndarray:
    return np.array(texts, dtype=f"S{8 * width}").view(WORD).reshape(len(texts), -1)


@pytest.mark.parametrize("width", [1, 2, 4])
@settings(deadline=None)
@given(st.lists(st.lists(st.binary(min_size=1, max_size=8).filter(lambda b: b[0] and b[-1]), max_size=8), max_size=8))
def test_a_table_is_a_dictionary(width: int, several: list[list[bytes]]) -> None:
    """Of 64 slots, so that many words want the same one."""
    table = WordTable(64, width)
    known: dict[bytes, int] = {}
    for some in several:
        texts = [text * width for text in some]
        if texts:
            assert table.find(words_of(texts, width)).tolist() == [known.get(text, -1) for text in texts]
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        if fresh and len(known) + len(fresh) < 64:
            table.add(words_of(fresh, width), np.arange(len(known), len(known) + len(fresh), dtype=np.int32))
            known.update({text: len(known) + i for i, text in enumerate(fresh)})
        assert len(table) == len(known)
        assert table.full == (len(known) > 32)
    if known:
        assert table.find(words_of(list(known), width)).tolist() == list(known.values())


def test_draining_keeps_the_oldest_of_what_was_found_again() -> None:
    table = WordTable(64, 2)
    texts = [f"word{number}".encode() for number in range(40)]
    table.add(words_of(texts, 2), np.arange(40, dtype=np.int32))
    table.find(words_of([*texts[5:30], b"other"], 2))
    words, places = table.drain()
    assert places.tolist() == list(range(5, 21))  # a quarter of the slots
    assert words.view("S16").ravel().tolist() == texts[5:21]
    assert len(table) == 0
    assert table.find(words_of(texts, 2)).tolist() == [-1] * 40
    assert table.drain()[1].tolist() == []
