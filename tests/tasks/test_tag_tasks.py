"""The tagging tasks by name: their files, columns and official files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.errors import DataError, UsageError
from bertkit.labelled.rows import TaggedRow
from bertkit.notices import collecting
from bertkit.tasks.constant import constant_score
from bertkit.tasks.data import load_parts, with_columns
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import task_named
from bertkit.tasks.tagging import Tagging

KIND = Tagging()
TOKENS = task_named("tokens")
LABELS = Labels(names=("O", "B-X", "I-X"), problem="")


def said(rows: list[TaggedRow], *tags: str) -> list[Prediction]:
    return [Prediction(id=row.id, value=line.split()) for row, line in zip(rows, tags, strict=True)]


def test_any_column_of_a_conll_file_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("1 EU NNP B-ORG x\n2 rejects VBZ O x\n")
    rows, _ = KIND.read(path, with_columns(TOKENS, text="2", label="4"))
    assert (rows[0].words, rows[0].tags, rows[0].columns[0]) == (("EU", "rejects"), ("B-ORG", "O"), ("1", "NNP", "x"))
    assert KIND.read(path, with_columns(TOKENS, text="2", label="3"))[0][0].tags == ("NNP", "VBZ")
    with pytest.raises(DataError, match=r"no column 6: the line has 5.*--label-column counts from 1"):
        KIND.read(path, with_columns(TOKENS, label="6"))
    for name in ("word", "0"):
        with pytest.raises(UsageError, match="columns have no names"):
            KIND.read(path, with_columns(TOKENS, text=name))


@pytest.mark.parametrize("name", ["train.jsonl", "train.parquet", "train.conll", "train.tsv"])
def test_own_data_in_every_form(tmp_path: Path, name: str) -> None:
    records = [{"tokens": [f"w{i}", "b"], "tags": ["B-X", "O"]} for i in range(12)]
    path = tmp_path / name
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif name.endswith("parquet"):
        import pyarrow
        import pyarrow.parquet

        # As Hugging Face's writers leave it: integer classes with their names in the schema.
        names = {"info": {"features": {"tags": {"feature": {"names": ["O", "B-X"], "_type": "ClassLabel"}, "_type": "List"}}}}
        table = pyarrow.table({"tokens": [r["tokens"] for r in records], "tags": [[1, 0]] * 12})
        pyarrow.parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(names)}), path)
    else:
        path.write_text("".join(f"w{i}\tB-X\nb\tO\n\n" for i in range(12)))
    parts = load_parts(TOKENS, folder=str(tmp_path))
    assert (len(parts["train"].rows), len(parts["validation"].rows)) == (11, 1)
    assert parts["train"].rows[0].words == ("w0", "b")
    assert {row.tags for row in parts["train"].rows} == {("B-X", "O")}
    (written,) = KIND.write_official(tmp_path, said(parts["validation"].rows, "O O"), parts["validation"].rows, TOKENS, "test")
    assert written.read_text().endswith("b O O\n\n")


def test_bilou_is_said_trained_as_iob2_and_scored(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("a B-X\nb I-X\nc L-X\nd U-X\n")
    with collecting() as heard:
        rows, _ = KIND.read(path, TOKENS)
    assert [("BILOU" in notice.message) for notice in heard] == [True]
    assert KIND.labels(rows, TOKENS, None, for_training=True).names == ("O", "B-X", "I-X")
    assert KIND.golds(rows, LABELS) == [["B-X", "I-X", "I-X", "B-X"]]
    values = KIND.score(said(rows, "B-X I-X I-X O"), rows, TOKENS, LABELS).values
    assert (values["precision"], values["recall"], values["f1_strict"]) == (1.0, 0.5, pytest.approx(2 / 3))
    given = tmp_path / "said.txt"
    given.write_text("a B-X\nb I-X\nc L-X\nd U-X\n")
    assert KIND.score(KIND.read_official(given, rows, TOKENS, LABELS), rows, TOKENS, LABELS).values["f1_strict"] == 1.0


def test_one_tag_for_all_words_is_what_plain_tags_are_measured_by() -> None:
    rows = [TaggedRow(id="0", words=("a", "b", "c"), tags=("N", "N", "V"))]
    labels = Labels(names=("N", "V"), problem="")
    assert constant_score(KIND, rows, KIND.judged(TOKENS, rows), labels) == pytest.approx(2 / 3)


def test_a_line_of_text_is_a_row_of_its_words() -> None:
    row = KIND.from_line(3, "U.S.  firms", TOKENS)
    assert (row.id, row.words, row.text, str(row.place)) == ("2", ("U", ".", "S", ".", "firms"), "U.S.  firms", "stdin, line 3")
    assert KIND.from_line(1, "NBA 赛", task_named("weibo_ner")).words == ("N", "B", "A", "赛")
    assert KIND.from_line(1, "", TOKENS).words == ()


def test_cluener_reads_and_writes_clues_own_files(tmp_path: Path) -> None:
    task = task_named("cluener")
    record = {"id": 5, "text": "浙商 银行叶老桂", "label": {"name": {"叶老桂": [[5, 7]]}, "company": {"浙商 银行": [[0, 4]]}}}
    for name in ("train.json", "dev.json", "test.json"):
        (tmp_path / name).write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    parts = load_parts(task, ("train", "validation"), folder=str(tmp_path))
    rows = parts["validation"].rows
    gold = KIND.golds(rows, LABELS)
    assert gold == [["B-company", *["I-company"] * 3, "B-name", "I-name", "I-name"]]
    (path,) = KIND.write_official(tmp_path, [Prediction(id="5", value=gold[0])], rows, task, "test")
    assert json.loads(path.read_text(encoding="utf-8")) == {"id": 5, "label": record["label"]}
    found = KIND.read_official(path, rows, task, LABELS)
    assert KIND.score(found, rows, task, LABELS).values["f1"] == 1.0


@pytest.mark.parametrize("identity", ["007", "0", "12", "\u0663", "\u00b2", "3.0", "a"])
def test_clueners_file_is_read_back_whatever_the_ids(tmp_path: Path, identity: str) -> None:
    task = task_named("cluener")
    source = tmp_path / "dev.json"
    source.write_text(
        json.dumps({"id": identity, "text": "叶老桂", "label": {"name": {"叶老桂": [[0, 2]]}}}) + "\n", encoding="utf-8"
    )
    rows, _ = KIND.read(source, task)
    (path,) = KIND.write_official(tmp_path, said(rows, "B-name I-name I-name"), rows, task, "test")
    assert [one.id for one in KIND.read_official(path, rows, task, LABELS)] == [identity]


def test_an_id_that_comes_twice_in_clueners_file_is_refused_by_line(tmp_path: Path) -> None:
    task = task_named("cluener")
    (tmp_path / "dev.json").write_text('{"text": "叶老桂", "label": {}}\n{"text": "叶", "label": {}}\n', encoding="utf-8")
    rows, _ = KIND.read(tmp_path / "dev.json", task)
    given = tmp_path / "said.json"
    given.write_text('{"id": null, "label": {}}\n{"label": {"name": {"叶": [[0, 0]]}}}\n', encoding="utf-8")  # by their places
    assert [one.value for one in KIND.read_official(given, rows, task, LABELS)] == [["O"] * 3, ["B-name"]]
    given.write_text('{"id": 1, "label": {}}\n{"id": 0, "label": {}}\n{"id": 1, "label": {}}\n', encoding="utf-8")
    with pytest.raises(DataError, match="The id 1 comes twice") as caught:
        KIND.read_official(given, rows, task, LABELS)
    assert caught.value.where == f"{given}, line 3"


@pytest.mark.parametrize("name", ["dev.txt", "dev.jsonl"])
def test_clueners_file_has_the_entities_of_words_without_a_text(tmp_path: Path, name: str) -> None:
    """CLUENER is passed on as columns, too; its characters are counted as if nothing stood between them."""
    task = task_named("cluener")
    source = tmp_path / name
    record = {"text": ["在", "叶", "老", "桂"], "label": ["O", "B-name", "I-name", "I-name"]}
    lines = [f"{word} {tag}" for word, tag in zip(record["text"], record["label"], strict=True)]
    source.write_text("\n".join(lines) if name == "dev.txt" else json.dumps(record, ensure_ascii=False), encoding="utf-8")
    rows, _ = KIND.read(source, task)
    (path,) = KIND.write_official(tmp_path, said(rows, "B-place B-name I-name I-name"), rows, task, "test")
    assert json.loads(path.read_text(encoding="utf-8"))["label"] == {"place": {"在": [[0, 0]]}, "name": {"叶老桂": [[1, 3]]}}
    assert KIND.read_official(path, rows, task, LABELS)[0].value == ["B-place", "B-name", "I-name", "I-name"]


def test_the_file_that_bertkit_wrote_of_iobes_gives_its_own_figures_again(tmp_path: Path) -> None:
    """A young model begins many entities with I-: among IOBES that is no scheme of its own, and no lawful IOB2."""
    path = tmp_path / "dev.txt"
    path.write_text("a B-X\nb I-X\nc E-X\nd S-X\n")
    rows, _ = KIND.read(path, TOKENS)
    told = said(rows, "I-X I-X I-X B-X")
    (written,) = KIND.write_official(tmp_path, told, rows, TOKENS, "test")
    given = KIND.read_official(written, rows, TOKENS, LABELS)
    wanted = KIND.score(told, rows, TOKENS, LABELS).values
    assert (wanted["f1"], wanted["f1_strict"], wanted["accuracy"]) == (1.0, pytest.approx(2 / 3), 0.75)
    assert KIND.score(given, rows, TOKENS, LABELS).values == wanted


def test_words_of_records_are_read_back_from_columns(tmp_path: Path) -> None:
    records = [(["a", "", "New York", "b\nc"], ["O", "B-X", "B-Y", "I-Y"]), ([], []), (["d"], ["O"])]
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps({"tokens": words, "tags": tags}) + "\n" for words, tags in records))
    rows, _ = KIND.read(path, TOKENS)
    told = said(rows, "O B-X B-Y O", "", "B-X")
    (written,) = KIND.write_official(tmp_path, told, rows, TOKENS, "test")
    assert [one.value for one in KIND.read_official(written, rows, TOKENS, LABELS)] == [one.value for one in told]


def test_position_digits_behind_characters_go(tmp_path: Path) -> None:
    path = tmp_path / "weiboNER_2nd_conll.dev"
    path.write_text("口0\tO\n10\tO\np12\tB-PER.NOM\n\n酸1\tO\n", encoding="utf-8")
    rows, _ = KIND.read(path, task_named("weibo_ner"))
    assert [row.words for row in rows] == [("口", "1", "p"), ("酸",)]
    assert KIND.read(path, TOKENS)[0][1].words == ("酸1",)
    (written,) = KIND.write_official(tmp_path, said(rows, "O O O", "O"), rows, task_named("weibo_ner"), "test")
    assert written.read_text(encoding="utf-8").startswith("口0\tO\tO\n")
    assert [one.value for one in KIND.read_official(written, rows, task_named("weibo_ner"), LABELS)] == [["O"] * 3, ["O"]]


@pytest.mark.data
def test_weibo_in_both_of_its_forms(real_data: Path) -> None:
    folder = real_data / "data/zh/weibo_ner"
    task = task_named("weibo_ner")
    with collecting() as heard:
        ours = load_parts(task, ("train", "validation", "test"), folder=str(folder))
        theirs = load_parts(
            replace(task, parts=tuple(replace(part, files=part.files[-2:-1]) for part in task.parts)),
            ("train", "validation", "test"),
            folder=str(folder),
        )
    assert [len(part.rows) for part in ours.values()] == [1350, 270, 270]
    for name, part in ours.items():
        assert [(row.words, row.tags) for row in part.rows] == [(row.words, row.tags) for row in theirs[name].rows]
        assert {len(word) for row in part.rows for word in row.words} == {1}
    # 14 entities begin with I-, as published
    assert sum(int(notice.message.split(": ")[1].split()[0]) for notice in heard if "do not begin" in notice.message) == 2 * 14
