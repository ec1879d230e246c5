"""Tables: aligned, numbers to the right, the last column wrapped to a terminal's width and whole elsewhere."""

from __future__ import annotations

from bertkit.jobs.columns import lines, shown_width

ROWS = [("task", "rows", "what"), ("cola", "8,551", "is it grammatical " * 5), ("情感", "12", "短 " * 30)]


def test_columns_line_up_and_numbers_stand_to_the_right() -> None:
    first, second, third = lines([(a, b, c.strip()) for a, b, c in ROWS], heading=True)
    assert first == "task   rows  what"
    assert second.startswith("cola  8,551  is it")
    assert third.startswith("情感     12  短 短")


def test_the_last_column_is_wrapped_to_the_width_alone() -> None:
    for width in (40, 60, 200):
        shown = list(lines([(a, b, c.strip()) for a, b, c in ROWS], heading=True, width=width))
        assert all(len(line) <= width for line in shown if line.isascii())
        assert " ".join(" ".join(line.split()) for line in shown).count("grammatical") == 5
    assert len(list(lines(ROWS, heading=True, width=25))) == 3  # too narrow to wrap
    assert list(lines([], heading=True)) == []
    assert shown_width("a中") == 3
