"""Where a task's rows come from: folders, files, what is not there, what is held out."""

from pathlib import Path

import pytest

from bertkit.errors import DataError, MissingError, UsageError
from bertkit.notices import collecting
from bertkit.tasks.data import load_parts, require_gold, with_columns
from bertkit.tasks.registry import kind_of, task_named

MNLI_HEADER = "index\tsentence1\tsentence2\tgold_label\n"
OWN = task_named("classification")


def mnli_file(folder: Path, name: str, rows: int = 6, label: str = "neutral") -> None:
    (folder / name).write_text(
        MNLI_HEADER + "".join(f"{n}\tpremise {n}\thypothesis {n}\t{label}\n" for n in range(rows)), encoding="utf-8"
    )


def own_file(folder: Path, name: str, rows: int) -> str:
    path = folder / name
    path.write_text("text,label\n" + "".join(f"{name} {n},{n % 2}\n" for n in range(rows)), encoding="utf-8")
    return str(path)


def test_matched_and_mismatched_apart_and_an_absent_one_said(tmp_path: Path) -> None:
    task = task_named("mnli")
    for name in ("train.tsv", "dev_matched.tsv"):
        mnli_file(tmp_path, name)
    with collecting() as said:
        parts = load_parts(task, folder=str(tmp_path))
    assert list(parts) == ["train", "validation_matched"]
    assert [notice.kind for notice in said] == ["absent-part"]
    assert "validation_mismatched" in said[0].message
    mnli_file(tmp_path, "dev_mismatched.tsv", rows=4)
    with collecting() as said:
        parts = load_parts(task, ("validation",), folder=str(tmp_path), max_eval_samples=5)
    assert {name: len(part.rows) for name, part in parts.items()} == {"validation_matched": 5, "validation_mismatched": 4}
    assert said == []
    assert [row.text for row in parts["validation_matched"].rows] == [f"premise {n}" for n in range(5)]


def test_a_tenth_is_held_out_where_there_is_no_validation(tmp_path: Path) -> None:
    train = own_file(tmp_path, "train.csv", 200)
    with collecting() as said:
        parts = load_parts(OWN, train_file=train, max_train_samples=50, max_eval_samples=7)
    assert {name: len(part.rows) for name, part in parts.items()} == {"train": 50, "validation": 7}
    assert [notice.kind for notice in said] == ["held-out"]
    assert "20 of 200" in said[0].message
    whole = load_parts(OWN, folder=str(tmp_path))
    assert [row.id for row in whole["train"].rows[:50]] == [row.id for row in parts["train"].rows]
    assert not {row.text for row in whole["train"].rows} & {row.text for row in whole["validation"].rows}
    assert list(load_parts(OWN, ("train",), train_file=train)) == ["train"]


def test_a_training_file_that_is_also_the_validation_is_said(tmp_path: Path) -> None:
    train, other = own_file(tmp_path, "train.csv", 20), own_file(tmp_path, "dev.csv", 20)
    with collecting() as said:
        load_parts(OWN, train_file=train, validation_file=str(tmp_path / "." / "train.csv"))
    assert [notice.kind for notice in said] == ["same-file"]
    with collecting() as said:
        load_parts(OWN, train_file=train, validation_file=other)
        load_parts(OWN, ("validation",), train_file=train, validation_file=train)
    assert said == []


def test_named_files_come_before_the_folder(tmp_path: Path) -> None:
    for name in ("train.csv", "validation.csv", "mine.csv"):
        own_file(tmp_path, name, 3)
    parts = load_parts(OWN, folder=str(tmp_path), validation_file=str(tmp_path / "mine.csv"))
    assert parts["train"].rows[0].text == "train.csv 0"
    assert parts["validation"].rows[0].text == "mine.csv 0"


def test_one_file_as_data(tmp_path: Path) -> None:
    parts = load_parts(OWN, ("test",), folder=own_file(tmp_path, "any.csv", 3))
    assert [row.text for row in parts["test"].rows] == ["any.csv 0", "any.csv 1", "any.csv 2"]


def test_the_folder_around_those_of_tasks(tmp_path: Path) -> None:
    def hint() -> str:
        with pytest.raises(MissingError, match="no train part") as caught:
            load_parts(OWN, folder=str(tmp_path))
        return str(caught.value.hint)

    for name, named in (("any", "any"), ("other", None), (OWN.name.upper() + "-", OWN.name.upper() + "-")):
        (tmp_path / name).mkdir()
        own_file(tmp_path / name, "train.csv", 3)
        assert (f"({tmp_path / named} is one)" in hint()) if named else (" is one)" not in hint())


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no train part") as caught:
        load_parts(OWN, folder=str(tmp_path))
    assert caught.value.exit_code == 4
    assert "train.csv" in str(caught.value.where)
    assert f"{tmp_path}/train.csv" in str(caught.value.where)
    with pytest.raises(MissingError, match="no validation part"):
        load_parts(OWN, ("validation",), folder=str(tmp_path))
    for name in (str(tmp_path / "none"), "own/dev.csv", "dev.jsonl"):  # the last two could be names of the hub, and are files'
        with pytest.raises(MissingError, match="no file or folder"):
            load_parts(OWN, folder=name)
    with pytest.raises(UsageError, match="no data of its own") as refused:
        load_parts(OWN)
    assert "--train-file" in str(refused.value.hint)


def test_test_parts_have_no_labels(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tThird.\n", encoding="utf-8")
    cola = task_named("cola")
    part = load_parts(cola, ("test",), folder=str(tmp_path))["test"]
    with pytest.raises(DataError, match="no labels") as caught:
        require_gold(kind_of(cola), cola, part)
    assert caught.value.exit_code == 3
    assert "predict cola" in str(caught.value.hint)
    (tmp_path / "test.tsv").write_text("index\tsentence\n", encoding="utf-8")
    with pytest.raises(DataError, match="no rows"):
        require_gold(kind_of(cola), cola, load_parts(cola, ("test",), folder=str(tmp_path))["test"])


def test_a_label_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,lable\nx,1\ny,0\n", encoding="utf-8")
    part = load_parts(OWN, ("train",), train_file=str(path))["train"]
    with pytest.raises(DataError, match=r"column 'label'; its columns are text, lable"):
        require_gold(kind_of(OWN), OWN, part)
    named = with_columns(OWN, label="lable")
    assert [row.label for row in load_parts(named, ("train",), train_file=str(path))["train"].rows] == ["1", "0"]


def test_columns_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("q,a,y\nhow,so,1\nwhy,thus,0\n", encoding="utf-8")
    own = with_columns(OWN, text="q", pair="a", label="y")
    rows = load_parts(own, ("train",), train_file=str(path))["train"].rows
    assert [(row.text, row.pair, row.label) for row in rows] == [("how", "so", "1"), ("why", "thus", "0")]
    with pytest.raises(UsageError, match="reads no columns"):
        with_columns(task_named("squad"), text="q")
    assert with_columns(task_named("squad")) is task_named("squad")


def test_skipped_rows_are_said_once_and_strict_refuses(tmp_path: Path) -> None:
    mnli_file(tmp_path, "train.tsv")
    mnli_file(tmp_path, "dev_matched.tsv")
    mnli_file(tmp_path, "dev_mismatched.tsv")
    with (tmp_path / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("9\tonly two\n")
    with collecting() as said:
        parts = load_parts(task_named("mnli"), folder=str(tmp_path))
    assert len(parts["train"].rows) == 6
    assert [(notice.kind, "line 8" in notice.message) for notice in said] == [("skipped-rows", True)]
    with pytest.raises(DataError, match="2 columns instead of 4"):
        load_parts(task_named("mnli"), folder=str(tmp_path), strict=True)


def test_a_csv_copy_of_the_hubs_data_by_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("premise,hypothesis,label,idx\na,b,2,7\n", encoding="utf-8")
    rows = load_parts(task_named("mnli"), ("validation",), validation_file=str(path))["validation"].rows
    assert [(row.id, row.text, row.pair, row.label) for row in rows] == [("7", "a", "b", "contradiction")]


def test_one_column_is_not_text_and_label_at_once() -> None:
    for wrong in ({"text": "label"}, {"pair": "text"}, {"text": "a", "label": "a"}):
        with pytest.raises(UsageError, match="cannot be two of text, pair, label and candidates"):
            with_columns(OWN, **wrong)


def test_a_class_of_one_row_stays_in_training(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    for n in range(40):  # whichever row it is
        lines = [f"text {m},{'rare' if m == n else m % 2}\n" for m in range(40)]
        path.write_text("text,label\n" + "".join(lines), encoding="utf-8")
        parts = load_parts(OWN, train_file=str(path))
        assert "rare" in {row.label for row in parts["train"].rows}
        assert len(parts["validation"].rows) == 4
