"""The Chinese tasks: CLUE's JSON lines, the same as columns, its prediction files, and the published data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import DataError
from bertkit.labelled.rows import TextRow
from bertkit.labelled.texts import row_texts
from bertkit.notices import collecting
from bertkit.tasks.classification import Classification
from bertkit.tasks.clue_files import read_answers, write_answers
from bertkit.tasks.data import load_parts, require_gold
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import task_named

KIND = Classification()
# Task, a record of train and dev as CLUE publishes it, and what it must become; test records lack the label and have an id.
RECORDS: list[tuple[str, dict[str, Any], tuple[object, ...]]] = [
    ("afqmc", {"sentence1": "花呗提额", "sentence2": "花呗额度", "label": "1"}, ("花呗提额", "花呗额度", "1")),
    ("tnews", {"label": "102", "label_desc": "news_entertainment", "sentence": "江疏影", "keywords": "甜甜圈,自拍"},
     ("江疏影", None, "news_entertainment")),
    ("iflytek", {"label": "11", "label_des": "薅羊毛", "sentence": "打开外卖"}, ("打开外卖", None, "11")),
    ("cmnli", {"sentence1": "甲", "sentence2": "乙", "label": "neutral"}, ("甲", "乙", "neutral")),
    ("ocnli", {"level": "medium", "sentence1": "甲", "sentence2": "乙", "label": "entailment", "label0": "entailment",
               "genre": "tv", "prem_id": "tv_1", "id": 7}, ("甲", "乙", "entailment")),
    ("csl", {"id": 1, "abst": "为解决传统均匀FFT", "keyword": ["水声学", "超宽带"], "label": "0"},
     ("水声学 超宽带", "为解决传统均匀FFT", "0")),
]  # fmt: skip


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


@pytest.mark.parametrize(("name", "record", "wanted"), RECORDS)
def test_clues_files(tmp_path: Path, name: str, record: dict[str, Any], wanted: tuple[object, ...]) -> None:
    hidden = {key: value for key, value in record.items() if not key.startswith("label")} | {"id": 3}
    (tmp_path / ("train.50k.json" if name == "ocnli" else "train.json")).write_text(lines(record), encoding="utf-8")
    (tmp_path / "dev.json").write_text(lines(record, record), encoding="utf-8")
    (tmp_path / "test.json").write_text(lines(hidden), encoding="utf-8")
    task = task_named(name)
    parts = load_parts(task, ("train", "validation", "test"), folder=str(tmp_path), strict=True)
    for part in ("train", "validation"):
        assert {(row.text, row.pair, row.label) for row in parts[part].rows} == {wanted}
    (row,) = parts["test"].rows
    assert (row.id, row.text, row.pair, row.label) == ("3", *wanted[:2], None)
    assert wanted[2] in task.labels
    assert all(texts.texts for texts in row_texts(tmp_path / "dev.json")), "its texts are found for looking into a corpus"


def test_rows_without_an_agreed_label_are_left_out(tmp_path: Path) -> None:
    made = [{"sentence1": "a", "sentence2": "b", "label": label} for label in ("neutral", "-", "contradiction")]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.json").write_text(lines(*made), encoding="utf-8")
    with collecting() as said:
        parts = load_parts(task_named("cmnli"), folder=str(tmp_path))
    assert [row.label for row in parts["train"].rows] == ["neutral", "contradiction"]
    assert [notice.message.split(":")[0] for notice in said] == ["1 rows were skipped"] * 2


@pytest.mark.parametrize(
    ("name", "values", "codes"),
    [
        ("tnews", ["news_game", "news_story"], ["116", "100"]),
        ("afqmc", ["0", "1"], ["0", "1"]),
        ("ocnli", ["neutral", "entailment"], ["neutral", "entailment"]),
        ("iflytek", ["118", "0"], ["118", "0"]),
    ],
)
def test_clues_prediction_files_and_back(tmp_path: Path, name: str, values: list[str], codes: list[str]) -> None:
    task = task_named(name)
    said = [Prediction(id=one, value=value) for one, value in zip(("12", "7"), values, strict=True)]
    (path,) = KIND.write_official(tmp_path, said, [], task, "test")
    assert path.name == task.official["test"]
    assert path.read_text() == f'{{"id": 12, "label": "{codes[0]}"}}\n{{"id": 7, "label": "{codes[1]}"}}\n'
    rows = [TextRow(id="7", text="a"), TextRow(id="12", text="a")]  # by id, not by line
    labels = Labels(names=task.labels)
    assert [one.value for one in KIND.read_official(path, rows, task, labels)] == values[::-1]
    with pytest.raises(DataError, match="1 of 3 rows have no prediction, the first is id 8"):
        KIND.read_official(path, [*rows, TextRow(id="8", text="a")], task, labels)
    path.write_text('{"id": 7, "label": "what"}\n{"id": 12, "label": "0"}\n')
    with pytest.raises(DataError, match="'what' is none of") as caught:
        KIND.read_official(path, rows, task, labels)
    assert caught.value.where == f"{path}, line 1"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": 1, "abst": "x", "keyword": {"a": 1}, "label": "0"}, "'keyword' holds an object"),
        ({"id": 1, "abst": ["x"], "keyword": ["a"], "label": ["0"]}, "holds several labels"),
    ],
)
def test_a_record_of_another_form_is_refused_by_line(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    good = {"id": 0, "abst": "x", "keyword": ["a", "b"], "label": "1"}
    (tmp_path / "dev.json").write_text(lines(good, record), encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        load_parts(task_named("csl"), ("validation",), folder=str(tmp_path))
    assert str(caught.value.where).endswith("dev.json, line 2")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [("chnsenticorp", [9600, 1200, 1200]), ("afqmc", [10000, 4316]), ("tnews", [20000, 10000])],
)
def test_the_published_data(real_data: Path, name: str, counts: list[int]) -> None:
    task = task_named(name)
    roles = ("train", "validation", "test")[: len(counts)]
    parts = load_parts(task, roles, folder=str(real_data / "data/zh" / name), strict=True)
    assert [len(part.rows) for part in parts.values()] == counts
    for part in parts.values():
        require_gold(KIND, task, part)
        assert {row.label for row in part.rows} == set(task.labels)
        assert all(row.text for row in part.rows)
        assert all((row.pair is not None) == (name == "afqmc") for row in part.rows)


def test_tnews_names_are_those_that_clue_publishes(real_data: Path) -> None:
    task = task_named("tnews")
    published = [json.loads(line) for line in (real_data / "data/zh/tnews/labels.json").read_text().splitlines()]
    assert task.columns is not None
    assert {one["label"]: one["label_desc"] for one in published} == dict(task.columns.aliases)


@pytest.mark.parametrize("identity", ["007", "0", "12", "\u0663", "a"])
def test_clues_file_is_read_back_whatever_the_ids(tmp_path: Path, identity: str) -> None:
    path = tmp_path / "tnews.json"
    write_answers(path, [(identity, "x")], task_named("tnews"))
    assert [label for label, _ in read_answers(path, [identity])] == ["x"]
