"""Whatever a task's file is, its texts come out with their places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import DataError, MissingError
from bertkit.labelled.texts import RowTexts, evaluation_files, files_with_texts, row_texts
from bertkit.notices import collecting

QUESTION = {"id": "1", "question": "What?", "answers": []}
SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": "Paris is big.", "qas": [QUESTION]}]}]}


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("dev.tsv", 'index\tsentence\n0\t"A quote stays.\n', [("index", "sentence"), ("0", '"A quote stays.')]),
        ("dev.csv", 'text,label\n"two\nlines",1\n', [("two\nlines", "1")]),
        ("test.jsonl", '{"a": "one text", "n": 3, "list": ["x"]}\n', [("one text", "3")]),
        ("dev.json", json.dumps(SQUAD), [("Paris is big.", "What?")]),
        ("valid.txt", "-DOCSTART- -X- O\n\nParis NNP B-LOC\nis VBZ O\n\nBig JJ O\n", [("Paris is",), ("Big",)]),
        ("weibo.dev", "我\tO\n你\tB-PER\n", [("我 你",)]),
        ("valid.txt", "Just a line.\n\nAnother one O\n", [("Just a line.",), ("Another one O",)]),
    ],
)
def test_rows_of_every_kind_of_file(tmp_path: Path, name: str, content: str, texts: list[tuple[str, ...]]) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    rows = list(row_texts(tmp_path / name))
    assert [row.texts for row in rows] == texts
    assert all(name in row.place for row in rows)


def test_of_a_folder_the_evaluation_files_are_taken(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev_matched.tsv", "test.tsv", "train-dev.tsv", "notes.md", ".dev.tsv", "contest.tsv"):
        (tmp_path / name).write_text("a\tb\n")
    assert [path.name for path in evaluation_files(tmp_path)] == ["dev_matched.tsv", "test.tsv"]
    assert evaluation_files(tmp_path / "train.tsv") == [tmp_path / "train.tsv"]
    for name in ("dev_matched.tsv", "test.tsv"):
        (tmp_path / name).unlink()
    assert [path.name for path in evaluation_files(tmp_path)] == ["contest.tsv"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\n")
    with pytest.raises(MissingError, match="no evaluation file"):
        evaluation_files(tmp_path)
    with pytest.raises(MissingError, match=r"Did you mean 'train\.tsv'"):
        evaluation_files(tmp_path / "trian.tsv")


def test_a_file_of_a_folder_that_is_no_tasks_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(SQUAD))
    (tmp_path / "labels-dev.json").write_text('{"0": "news"}')
    with collecting() as heard:
        found = [(path.name, list(rows)) for path, rows in files_with_texts(tmp_path)]
    assert found == [("dev.json", [RowTexts(f"{tmp_path / 'dev.json'}, question 1", ("Paris is big.", "What?"))])]
    assert [notice.kind for notice in heard] == ["not-a-task-file"]
    with pytest.raises(DataError):
        list(files_with_texts(tmp_path / "labels-dev.json"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("dev.jsonl", '{"text": "fine \\ud83d\\ude00"}\n{"text": "\\ud83d"}\n'),
        (
            "dev.json",
            '{"data": [{"paragraphs": [{"context": "a \\ud83d b", "qas": '
            '[{"id": "1", "question": "b?", "answers": [{"text": "b", "answer_start": 4}]}]}]}]}',
        ),
    ],
)
def test_half_a_surrogate_pair_is_no_text(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match="half a surrogate pair"):
        list(row_texts(tmp_path / name))
