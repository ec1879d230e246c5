from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import DataError, MissingError
from bertkit.labelled.rows import Answer, QuestionRow
from bertkit.labelled.squad import (
    answer_fault,
    read_predictions,
    read_squad,
    squad_records,
    write_json,
)

CONTEXT = "  Paris is big.\r\n\u4fa1\u683c Key"


def written(tmp_path: Path, qas: list[dict[str, Any]], context: Any = CONTEXT) -> Path:
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": context, "qas": qas}]}]}))
    return path


def asked(identity: str = "1", **more: Any) -> dict[str, Any]:
    return {"id": identity, "question": "   Where?", **more}


def test_texts_stay_letter_for_letter(tmp_path: Path) -> None:
    rows, report = read_squad(written(tmp_path, [asked(answers=[{"text": "Paris", "answer_start": 2}])]))
    assert rows[0].context == CONTEXT
    assert rows[0].question == "   Where?"
    assert rows[0].answers == (Answer("Paris", 2),)
    assert (rows[0].title, rows[0].impossible, rows[0].labelled, report.rows) == ("T", False, True, 1)


def test_questions_without_an_answer(tmp_path: Path) -> None:
    plausible = [{"text": "big", "answer_start": 11}]
    rows, _ = read_squad(
        written(
            tmp_path,
            [
                asked("a", answers=[], is_impossible=True, plausible_answers=plausible),
                asked("b", answers=[]),
                asked("c"),
                asked("d", answers=plausible, is_impossible=True),
                asked("e", answers=plausible, is_impossible=False),
            ],
        )
    )
    assert {row.id: (row.impossible, row.labelled, len(row.answers)) for row in rows} == {
        "a": (True, True, 0), "b": (True, True, 0), "c": (False, False, 0), "d": (True, True, 0), "e": (False, True, 1)
    }  # fmt: skip


def test_a_file_of_2_0_says_so_of_all_its_questions(tmp_path: Path) -> None:
    answers = [{"text": "Paris", "answer_start": 2}]
    one, other = asked("a", answers=answers), asked("d")  # with an answer, and of a test part
    for more, wanted in (
        ([], False),
        ([asked("b", answers=answers, is_impossible=False)], True),
        ([asked("c", answers=[])], True),
    ):
        path = written(tmp_path, [one, *more, other])
        assert {row.nullable for row in read_squad(path)[0]} == {wanted}
        records = [{"context": CONTEXT, "answers": None, **each} for each in (one, *more, other)]
        assert {row.nullable for row in squad_records(records, source="hub")[0]} == {wanted}
    path = written(tmp_path, [one, other])
    path.write_text(path.read_text().replace('"1.1"', '"v2.0"'))
    assert all(row.nullable for row in read_squad(path)[0])


def row(answers: tuple[Answer, ...], context: str = CONTEXT) -> QuestionRow:
    return QuestionRow(id="q", question="?", context=context, answers=answers)


def test_answers_that_do_not_stand_where_they_say() -> None:
    assert answer_fault(row((Answer("Paris", 2),))) is None
    assert answer_fault(row((Answer("Paris", 0), Answer("Paris", 2)))) is None
    assert answer_fault(row(())) is None
    assert answer_fault(row((Answer("paris", 2),))) is not None  # letter for letter
    assert answer_fault(row((Answer("Paris", -1),))) is not None
    assert answer_fault(row((Answer("", 2),))) is not None
    # characters, not bytes: Key's first byte is the 19th
    text = "価格は高い。 Key made it"
    assert answer_fault(row((Answer("Key", 7),), text)) is None
    assert answer_fault(row((Answer("Key", 19),), text)) == "question q: answer_start 19 shows '', not 'Key'"


def test_strict_makes_such_a_row_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, [asked(answers=[{"text": "Paris", "answer_start": 0}])])
    assert len(read_squad(path)[0]) == 1
    with pytest.raises(DataError, match="answer_start 0 shows '  Par', not 'Paris'"):
        read_squad(path, strict=True)


def test_broken_json_is_located(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('{"version": "1.1",\n "data": [{"title": ')
    with pytest.raises(DataError, match=r"no valid JSON.*line 2, column"):
        read_squad(path)
    with pytest.raises(MissingError):
        read_squad(tmp_path / "nowhere.json")
    path.write_text("[" * 100_000)
    with pytest.raises(DataError):
        read_squad(path)


@pytest.mark.parametrize(
    ("qas", "context", "where"),
    [
        ([{"question": "?"}], CONTEXT, r"id is missing.*data\[0\]\.paragraphs\[0\]\.qas\[0\]"),
        ([{"id": "1"}], CONTEXT, "question is missing"),
        ([asked(answers=[{"text": "x"}])], CONTEXT, r"answer_start is missing.*qas\[0\]\.answers\[0\]"),
        ([asked(answers=[{"text": "x", "answer_start": "2"}])], CONTEXT, "answer_start is no int"),
        ([asked(answers="x")], CONTEXT, "answers is no list"),
        ([asked(is_impossible="no")], CONTEXT, "neither true nor false"),
        ([asked()], None, r"context is no str.*paragraphs\[0\]"),
        ([asked("7"), asked("7")], CONTEXT, "'7' comes twice"),
        ([asked("\ud83d")], CONTEXT, r"id holds half a surrogate pair \(U\+D83D\).*qas\[0\]"),
        ([asked()], "a \ud83d", r"context holds half a surrogate pair.*paragraphs\[0\]"),
        ([asked(answers=[{"text": "\ud83d", "answer_start": 0}])], CONTEXT, r"text holds half a surrogate pair.*answers\[0\]"),
        (["x"], CONTEXT, "an object is needed"),
        ([], CONTEXT, "no question"),
    ],
)
def test_what_is_no_squad_file_is_located(tmp_path: Path, qas: Any, context: Any, where: str) -> None:
    with pytest.raises(DataError, match=where):
        read_squad(written(tmp_path, qas, context))


def test_a_json_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    for text in ("[1]", '{"a": 1}', '{"data": 3}'):
        path.write_text(text)
        with pytest.raises(DataError, match="no SQuAD file"):
            read_squad(path)


def test_records_of_the_hub() -> None:
    records = [
        {"id": "a", "title": "T", "context": "x y", "question": "?", "answers": {"text": ["y"], "answer_start": [2]}},
        {"id": "b", "title": "T", "context": "x y", "question": "?", "answers": {"text": [], "answer_start": []}},
        {"id": "c", "context": "x y", "question": "?"},
    ]
    rows, report = squad_records(records, source="hub")
    assert [(r.answers, r.impossible, r.labelled) for r in rows] == [
        ((Answer("y", 2),), False, True),
        ((), True, True),
        ((), False, False),
    ]
    assert report.rows == 3
    with pytest.raises(DataError, match="1 texts, but 2 starts"):
        squad_records(
            [{"id": "a", "context": "", "question": "", "answers": {"text": ["y"], "answer_start": [2, 3]}}], source="h"
        )


def test_official_files_go_out_and_come_in(tmp_path: Path) -> None:
    texts = {"1": "中 é\r\n", "2": ""}
    path = write_json(tmp_path / "predictions.json", texts)
    assert read_predictions(path) == texts
    assert "中 é" in path.read_text(encoding="utf-8")
    for bad in ({"1": 3}, {"1": None}):
        with pytest.raises(DataError, match="no predictions"):
            read_predictions(write_json(tmp_path / "bad.json", bad))
    (tmp_path / "half.json").write_text('{"1": "a \\ud83d"}')
    with pytest.raises(DataError, match="The prediction of '1' holds half a surrogate pair"):
        read_predictions(tmp_path / "half.json")
    with pytest.raises(ValueError):
        write_json(tmp_path / "nan.json", {"1": float("nan")})


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "questions", "impossible"),
    [
        ("squad/dev-v1.1-1000", 1004, 0),
        ("squad/dev-v2.0-1000", 1003, 462),
        ("zh/drcd/DRCD_dev", 3524, 0),
        ("zh/cmrc2018/cmrc2018_dev", 3219, 0),
    ],
)
def test_real_files(real_data: Path, name: str, questions: int, impossible: int) -> None:
    rows, _ = read_squad(real_data / f"data/{name}.json")
    assert (len(rows), sum(row.impossible for row in rows)) == (questions, impossible)
    assert sum(answer_fault(row) is not None for row in rows) == 0
