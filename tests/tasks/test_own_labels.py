"""Labels of people's own tables: several of them in each form, numbers, every type of cell, and what is refused by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import DataError, ModelError, UsageError
from bertkit.labelled.rows import Place, TextRow
from bertkit.notices import collecting
from bertkit.tasks.classification import Classification
from bertkit.tasks.data import load_parts, require_gold, with_columns
from bertkit.tasks.labels import Labels
from bertkit.tasks.registry import task_named
from bertkit.tasks.task import Task
from bertkit.tasks.text_examples import _target

KIND = Classification()
SEVERAL, NUMBER, ONE = (task_named(name) for name in ("multilabel", "regression", "classification"))


def labels(path: Path, task: Task = SEVERAL) -> list[Any]:
    return [row.label for row in load_parts(task, ("train",), train_file=str(path))["train"].rows]


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def parquet(path: Path, **columns: list[Any]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_several_labels_in_one_cell_and_what_parts_them_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'text,label\na,"x, y"\nb,\nc,z\n')
    with collecting() as said:
        assert labels(path) == [("x", "y"), (), ("z",)]
    assert [notice.kind for notice in said] == ["label-form"]
    assert "parted by ','" in said[0].message
    other = write(tmp_path, "b.csv", "text,label\na,x;y\nb,z\n")
    assert labels(other) == [("x;y",), ("z",)]
    assert labels(other, with_columns(SEVERAL, separator=";")) == [("x", "y"), ("z",)]
    with pytest.raises(UsageError, match="one label a row"):
        with_columns(ONE, separator=";")


def test_several_labels_as_columns_of_0_and_1(tmp_path: Path) -> None:
    task = with_columns(SEVERAL, label="toxic, insult,threat")
    path = write(tmp_path, "a.csv", "text,toxic,insult,threat\na,1,0,1\nb,0,0,0\nc,true,FALSE,0\nd,,,\n")
    with collecting() as said:
        assert labels(path, task) == [("toxic", "threat"), (), ("toxic",), None]
    assert [notice.message for notice in said] == [
        "The labels of a row are those of the columns toxic, insult, threat that hold 1."
    ]
    table = parquet(tmp_path / "a.parquet", text=["a", "b"], toxic=[1, 0], insult=[False, True], threat=[0.0, 1.0])
    assert labels(table, task) == [("toxic",), ("insult", "threat")]
    for cell in ("2", "yes", ""):
        bad = write(tmp_path, "bad.csv", f"text,toxic,insult,threat\na,1,0,1\nb,0,{cell},1\n")
        with pytest.raises(DataError, match=f"'insult' should be 0 or 1, but holds '{cell}'") as caught:
            labels(bad, task)
        assert caught.value.where == f"{bad}, line 3"
    with pytest.raises(DataError, match=r"no column 'insult'.*Did you mean 'insults'"):
        labels(write(tmp_path, "c.csv", "text,toxic,insults,threat\na,1,0,1\n"), task)
    assert labels(write(tmp_path, "test.csv", "text\na\n"), task) == [None]  # a test part
    with_comma = write(tmp_path, "d.jsonl", json.dumps({"text": "a", "toxic, insult,threat": ["x"]}) + "\n")
    assert labels(with_comma, task) == [("x",)]  # a column of that very name


def test_several_labels_as_lists(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": ["x, y", "z"]}, {"text": "b", "label": []}, {"text": "c", "label": [1, True]}, {"text": "d"}]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert labels(path) == [("x, y", "z"), (), ("1", "true"), None]
    assert labels(parquet(tmp_path / "a.parquet", text=["a", "b", "c"], label=[["x"], [], None])) == [("x",), (), None]
    for bad, message in (([None], "holds nothing"), ([["x"]], "holds a list"), (["x", " "], "without a name")):
        path = write(tmp_path, "b.jsonl", json.dumps({"text": "a", "label": bad}) + "\n")
        with pytest.raises(DataError, match=message) as caught:
            labels(path)
        assert caught.value.where == f"{path}, line 1"
    with pytest.raises(DataError, match="without a name"):
        labels(write(tmp_path, "b.csv", 'text,label\na,"x,,y"\n'))


def test_a_part_in_which_no_row_has_any_label_is_one_without_gold(tmp_path: Path) -> None:
    path = write(tmp_path, "test.csv", "text,label\na,\nb,\n")
    part = load_parts(SEVERAL, ("test",), test_file=str(path))["test"]
    with pytest.raises(DataError, match="no labels"):
        require_gold(KIND, SEVERAL, part)


def test_classes_of_every_type(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": value} for value in (0, 1.5, True, "neg", "中\u2028文", " x ", None)]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert labels(path, ONE) == ["0", "1.5", "true", "neg", "中\u2028文", "x", None]
    table = parquet(tmp_path / "a.parquet", text=["a", "b", "c"], label=[1.0, float("nan"), None])
    assert labels(table, ONE) == ["1.0", None, None]  # what pandas writes for a missing number
    assert labels(parquet(tmp_path / "b.parquet", text=["a", "b"], label=[False, True]), ONE) == ["false", "true"]
    for bad, message in ((["x"], "several labels"), ({"a": 1}, "holds an object"), ("\ud800", r"surrogate pair \(U\+D800\)")):
        path = write(tmp_path, "b.jsonl", json.dumps({"text": "a", "label": bad}) + "\n")
        with pytest.raises(DataError, match=message) as caught:
            labels(path, ONE)
        assert caught.value.where == f"{path}, line 1"


def test_a_text_that_is_a_list_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": ["a", "b"], "label": "x"}\n')
    with pytest.raises(DataError, match="'text' holds a list, where a text is asked for"):
        labels(path, ONE)


def test_numbers_of_every_type(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": "a", "label": 2}\n{"text": "b", "label": "-1e2"}\n{"text": "c", "label": null}\n')
    assert labels(path, NUMBER) == [2.0, -100.0, None]
    assert labels(parquet(tmp_path / "a.parquet", text=["a", "b"], label=[1, None]), NUMBER) == [1.0, None]
    for bad in ("1,5", "x", "nan", "-inf"):
        with pytest.raises(DataError, match="should be a number") as caught:
            labels(write(tmp_path, "a.csv", f'text,label\na,1\nb,"{bad}"\n'), NUMBER)
        assert caught.value.where == f"{tmp_path / 'a.csv'}, line 3"


def test_labels_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    """They are matched without case, so the second could never be predicted."""
    rows = load_parts(ONE, ("train",), train_file=str(write(tmp_path, "a.csv", "text,label\na,US\nb,us\nc,eu\n")))["train"].rows
    with pytest.raises(DataError, match="'US' and 'us' differ in case alone"):
        KIND.labels(rows, ONE, None, for_training=True)


def test_a_label_that_the_head_lacks_is_named_by_itself() -> None:
    """Of several labels of a row the one that is unknown; and what a regression has is no label of the model's."""
    row = TextRow(id="0", text="a", label=("cat", "emu"), place=Place("dev.jsonl", 3))
    with pytest.raises(DataError, match="The label 'emu' is none of cat, dog") as fault:
        _target(row, Labels(names=("cat", "dog"), problem="multi_label_classification"), for_training=False)
    assert fault.value.where == "dev.jsonl, line 3"
    with pytest.raises(ModelError, match=r"2 labels \(bad, good\), but regression has 1 \(score\)"):
        KIND.labels([], NUMBER, ("bad", "good"), for_training=False)


def test_quotes_tabs_and_odd_characters_arrive_letter_for_letter(tmp_path: Path) -> None:
    odd = ['"', 'say "hi"', "a\tb", "two\nlines", "\u200e", "\ufeffx", "é e\u0301", "🙂", " ", ""]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps({"text": text, "pair": "", "label": 1}) + "\n" for text in odd))
    task = with_columns(ONE, pair="pair")
    rows = load_parts(task, ("train",), train_file=str(path))["train"].rows
    assert [(row.text, row.pair) for row in rows] == [(text, "") for text in odd]


def test_a_model_with_one_name_for_two_outputs_is_told_of_and_gets_a_new_head_in_training() -> None:
    rows = [TextRow(id=str(n), text="a", label=name, place=Place("x.csv", n)) for n, name in enumerate(("good", "bad"))]
    for names in (("good", "good"), ("good", "Good"), ("good", "bad", "bad")):
        with pytest.raises(ModelError, match="one name"):
            KIND.labels(rows, ONE, names, for_training=False)
        assert KIND.labels(rows, ONE, names, for_training=True).new_head
