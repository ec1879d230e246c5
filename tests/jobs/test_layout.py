"""Texts cut to a width, bars and histograms."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.jobs.columns import shown_width
from bertkit.jobs.layout import bar, beside, cut, histogram, page_width, shows_blocks


@given(st.text(max_size=40), st.integers(2, 30), st.booleans())
def test_a_cut_text_fits_and_is_whole_where_it_can_be(text: str, width: int, at_end: bool) -> None:
    plain = " ".join(text.split())
    shown = cut(text, width, at_end=at_end)
    assert shown_width(shown) <= width
    if shown_width(plain) <= width:
        assert shown == plain
    else:
        assert (shown[-1] if at_end else shown[0]) == "…"
        kept = shown.strip("…") if plain.strip("…") == plain else ""
        assert plain.startswith(kept) if at_end else plain.endswith(kept)


def test_chinese_takes_two_columns() -> None:
    assert cut("今天天气很好", 7) == "今天天…"
    assert cut("今天天气很好", 7, at_end=False) == "…气很好"


@pytest.mark.parametrize(
    ("share", "blocks", "shown"),
    [(1, True, "████"), (0.5, True, "██"), (0.001, True, "▏"), (0, True, ""), (0.001, False, "#"), (0.5, False, "##")],
)
def test_bars(share: float, blocks: bool, shown: str) -> None:
    assert bar(share, 4, blocks=blocks) == shown


def test_a_histogram_fits_its_width() -> None:
    lines = histogram([1, 5000, 0], ["1", "2-4", "5-8"], 38, blocks=True)
    assert lines == ["  1  <0.1 %  ▏", f"2-4 100.0 %  {'█' * 25}", "5-8   0.0 %"]
    assert max(map(len, lines)) == 38
    assert beside(["ab", "c"], ["1", "2", "3"], 4) == ["ab  1", "c   2", "    3"]


def test_what_a_stream_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert [shows_blocks(encoding) for encoding in ("utf-8", "ascii", None, "no such")] == [True, False, False, False]
    assert page_width(io.StringIO()) == 80
