"""Questions of people's own: tables with answers and where they start, and SQuAD's JSON under any name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import DataError
from bertkit.labelled.questions import QUESTIONS, question_records, read_questions, stream_questions
from bertkit.labelled.rows import Answer, QuestionRow, RowReport

CONTEXT = '  Café, "Paris" is\r\nbig. Paris'


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def read(path: Path) -> list[QuestionRow]:
    return read_questions(path, QUESTIONS)[0]


def test_a_context_of_csv_stays_letter_for_letter(tmp_path: Path) -> None:
    quoted = CONTEXT.replace('"', '""')
    path = tmp_path / "q.csv"
    path.write_bytes(
        f'question,context,answer,answer_start\r\n where?,"{quoted}",Paris,9\r\nwhat?,"{quoted}",Paris,\r\nwho?,x,,\r\n'.encode()
    )
    first, second, third = read(path)
    assert (first.id, first.question, first.context) == ("0", " where?", CONTEXT)
    assert first.answers == (Answer("Paris", 9),)
    assert second.answers == (Answer("Paris", 9),)  # the first place
    assert (third.answers, third.impossible, third.labelled) == ((), True, True)
    assert all(row.nullable for row in (first, second, third))  # a fact of the file
    assert str(third.place).endswith("line 6")


def test_json_lines_with_ids_lists_and_rows_without_gold(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "q.jsonl",
        {"id": "x", "question": "?", "context": "a b a", "answer": ["a", "b"], "answer_start": [4, 2]},
        {"id": 7, "question": "?", "context": "a", "answer": None},
        {"question": "?", "context": "a b", "answers": {"text": ["b"], "answer_start": [2]}},
        {"question": "?", "context": "a b", "answers": [{"text": "b", "answer_start": 2}]},
    )
    one, two, three, four = read(path)
    assert (one.id, one.answers) == ("x", (Answer("a", 4), Answer("b", 2)))
    assert (two.id, two.labelled, two.impossible) == ("7", False, False)
    assert (three.id, three.answers, three.nullable) == ("2", (Answer("b", 2),), False)
    assert four.answers == three.answers
    assert list(stream_questions(path, QUESTIONS, RowReport())) == [one, two, three, four]


@pytest.mark.parametrize("column", ["id", "question", "context", "answer"])
def test_half_a_surrogate_pair_is_named(tmp_path: Path, column: str) -> None:
    path = lines(tmp_path / "q.jsonl", {"id": "1", "question": "?", "context": "a", "answer": "a", column: "a\ud83d"})
    with pytest.raises(DataError, match=rf"Column '{column}' holds half a surrogate pair.*line 1"):
        list(stream_questions(path, QUESTIONS, RowReport()))


def test_a_json_file_is_squads_or_lines(tmp_path: Path) -> None:
    row = {"question": "?", "context": "a b", "answer": "b"}
    assert read(lines(tmp_path / "one.json", row))[0].answers == (Answer("b", 2),)
    qa = {"id": "1", "question": "?", "answers": [{"text": "b", "answer_start": 2}]}
    official = {"version": "v2.0", "data": [{"paragraphs": [{"context": "a b", "qas": [qa]}]}]}
    assert read(lines(tmp_path / "official.json", official))[0].nullable
    (tmp_path / "pretty.json").write_text(json.dumps(official, indent=1))
    assert read(tmp_path / "pretty.json")[0].id == "1"


def test_parquet_and_hub_records(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = {"question": ["?", "?"], "context": ["a b", "c"], "answer": ["b", None], "answer_start": [2, None]}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "q.parquet")
    rows = read(tmp_path / "q.parquet")
    assert [(row.answers, row.labelled) for row in rows] == [((Answer("b", 2),), True), ((), False)]
    records = [{"question": "?", "context": "a b", "answer": "b", "answer_start": 2}]
    (alone,), _ = question_records(records, QUESTIONS, source="hub")
    assert (alone.answers, alone.nullable) == ((Answer("b", 2),), False)
    records.append({"question": "?", "context": "a b", "answer": ""})
    assert all(row.nullable for row in question_records(records, QUESTIONS, source="hub")[0])


def test_every_answer_that_does_not_stand_there_is_named_with_its_row(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "q.jsonl",
        {"question": "?", "context": "価格は高い。 Key made it", "answer": "Key", "answer_start": 19},  # counted in bytes
        {"question": "?", "context": "a b", "answer": "b", "answer_start": 2},
        {"question": "?", "context": "a b", "answer": "c"},
        {"question": "?", "context": "a b", "answer": "b", "answer_start": -3},
    )
    with pytest.raises(DataError) as caught:
        read(path)
    told = caught.value.message
    assert told.startswith("3 answers do not stand")
    assert "line 1, 'Key': answer_start 19 shows" in told
    assert "it stands at 7" in told
    assert "line 3" in told
    assert "the context does not have it" in told
    assert "line 4" in told
    assert "line 2" not in told
    assert len(list(stream_questions(path, QUESTIONS, RowReport()))) == 4  # whoever predicts needs no gold


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"question": "?"}, "no column 'context'"),
        ({"question": "?", "context": None}, "no text here"),
        ({"question": ["?"], "context": "a"}, "a list"),
        ({"question": "?", "context": "a", "answer": "a", "answer_start": "one"}, "should be a whole number"),
        ({"question": "?", "context": "a", "answer": ["a"], "answer_start": [0, 1]}, "1 answers, but 2 starts"),
        ({"question": "?", "context": "a", "answers": 3}, "answers is no list"),
    ],
)
def test_rows_that_are_no_questions(tmp_path: Path, record: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(lines(tmp_path / "q.jsonl", record))


def test_ids_that_come_twice_and_empty_files(tmp_path: Path) -> None:
    row = {"id": "x", "question": "?", "context": "a"}
    with pytest.raises(DataError, match="comes twice"):
        read(lines(tmp_path / "q.jsonl", row, row))
    (tmp_path / "q.csv").write_text("question,context\n")
    with pytest.raises(DataError, match="no question"):
        read(tmp_path / "q.csv")
