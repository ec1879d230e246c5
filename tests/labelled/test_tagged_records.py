from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bertkit.corpus.basic_words import basic_words
from bertkit.errors import DataError
from bertkit.labelled.columns import Columns
from bertkit.labelled.conll import row_lines
from bertkit.labelled.rows import Place, TaggedRow
from bertkit.labelled.tagged_records import characters, tagged_records

COLUMNS = Columns(text="tokens", label="tags")
CLUENER = Columns(text="text", label="label", characters=True)


def read(*records: dict[str, Any], columns: Columns = COLUMNS) -> list[TaggedRow]:
    places = [(Place("data", number, "record"), record) for number, record in enumerate(records, 1)]
    rows, report = tagged_records(places, columns, source="data", split=characters if columns.characters else basic_words)
    assert (report.rows, report.columns) == (len(records), tuple(records[0]))
    return rows


def test_lists_of_words_and_tags() -> None:
    rows = read({"tokens": ["a", "b"], "tags": ["O", "B-X"]}, {"tokens": ["c"]})
    assert [(row.words, row.tags) for row in rows] == [(("a", "b"), ("O", "B-X")), (("c",), None)]
    assert list(row_lines(rows[:1], [["O", "O"]])) == ["a O O", "b B-X O", ""]


def test_columns_by_their_usual_names() -> None:
    assert read({"id": "7", "tokens": ["a"], "ner_tags": ["B-X"]})[0].tags == ("B-X",)
    assert read({"words": ["a"], "labels": [3]})[0].tags == ("3",)


HALF = "a\ud83d"


@pytest.mark.parametrize(
    ("record", "column"),
    [
        ({"tokens": [HALF], "tags": ["O"]}, "tokens"),
        ({"tokens": ["a"], "tags": [f"B-{HALF}"]}, "tags"),
        ({"text": HALF}, "text"),
        ({"id": HALF, "tokens": ["a"]}, "id"),
    ],
)
def test_half_a_surrogate_pair_is_named(record: dict[str, Any], column: str) -> None:
    with pytest.raises(DataError, match=rf"Column '{column}' holds half a surrogate pair.*record 1"):
        read(record, columns=replace(COLUMNS, id="id"))


def test_words_of_records_are_one_cell_of_columns_each() -> None:
    row = read({"tokens": ["New\tYork", "", "\n", "a\u00a0b"], "tags": ["B-X", "O", "O", "O"]})[0]
    assert list(row_lines([row], [["O"] * 4])) == ["New_York B-X O", "_ O O", "_ O O", "a\u00a0b O O", ""]


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(DataError, match=r"each of the 2 words.*record 1"):
        read({"tokens": ["a", "b"], "tags": ["O"]})
    with pytest.raises(DataError, match="each of the 1 words"):
        read({"tokens": ["a"], "tags": [None]})
    with pytest.raises(DataError, match="no list of words"):
        read({"tokens": 3})
    with pytest.raises(DataError, match="There is no column 'tokens'"):
        read({"sentence": "a"})


def test_a_raw_text_has_the_words_of_the_basic_splitting() -> None:
    (row,) = read({"text": "Mr. O'Hara\u200e, 北京"})
    assert row.words == ("Mr", ".", "O", "'", "Hara", ",", "北", "京")
    assert [row.text[start:end] for start, end in row.offsets if row.text] == list(row.words)
    assert row.tags is None


def test_spans_become_tags_of_characters() -> None:
    spans = {"name": {"叶老桂": [[9, 11]]}, "company": {"浙商 银行": [[0, 4]]}}
    (row,) = read({"text": "浙商 银行信贷部叶老桂博士", "label": spans}, columns=CLUENER)
    assert row.words == tuple("浙商银行信贷部叶老桂博士")
    assert row.tags is not None
    tagged = [(word, tag) for word, tag in zip(row.words, row.tags, strict=True) if tag != "O"]
    assert [word for word, _ in tagged] == list("浙商银行老桂博")
    assert [tag for _, tag in tagged] == ["B-company", *["I-company"] * 3, "B-name", "I-name", "I-name"]


def test_of_spans_that_overlap_the_longest_is_taken() -> None:
    spans = {"address": {"北京": [[0, 1]]}, "organization": {"北京大学": [[0, 3]]}}
    assert read({"text": "北京大学", "label": spans}, columns=CLUENER)[0].tags == ("B-organization", *["I-organization"] * 3)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ({"name": {"x": [[0, 9]]}}, "outside of the text, which has 3"),
        ({"name": {"x": [[1, 0]]}}, "outside of the text"),
        ({"name": {" ": [[1, 1]]}}, "not made of whole words"),
        ({"name": ["x"]}, "cannot be read"),
    ],
)
def test_spans_that_cannot_be(spans: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read({"text": "a b", "label": spans}, columns=CLUENER)
