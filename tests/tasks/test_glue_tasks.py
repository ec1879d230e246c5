"""GLUE's tasks and SNLI: the published files' own forms, in small and as they are, and the server's files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.errors import UsageError
from bertkit.labelled.columns import Columns
from bertkit.labelled.rows import TextRow
from bertkit.notices import collecting
from bertkit.settings.commands import finetune_settings
from bertkit.settings.reading import Entry
from bertkit.settings.resolve import resolve
from bertkit.tasks.classification import Classification
from bertkit.tasks.data import load_parts, with_columns
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import all_tasks, task_named

KIND = Classification()
# Task, header of train and dev, a row of them, header of test, a row of it, and what the first must become.
NLI = "promptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
PARSES = "p\t7e\tfiction\t( a )\t( b )\t(ROOT a)\t(ROOT b)"
FORMS = [
    ("cola", "", "gj04\t0\t*\tThey drank the pub.", "index\tsentence", "0\tHe left.",
     ("They drank the pub.", None, "unacceptable")),
    ("sst2", "sentence\tlabel", "a ` fine ' film \t1", "index\tsentence", "0\tdull .", ("a ` fine ' film ", None, "positive")),
    ("mrpc", "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t7\t8\t" A said\tA told', "index\t#1 ID\t#2 ID\t#1 String"
     "\t#2 String", "0\t1\t2\ta\tb", ('" A said', "A told", "equivalent")),
    ("qqp", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "3\t1\t2\tWhy?\tHow?\t0", "id\tquestion1\tquestion2",
     "0\ta\tb", ("Why?", "How?", "not_duplicate")),
    ("stsb", "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
     "0\tcaptions\tMSRvid\t2012test\t0001\tnone\tnone\tA plane.\tA jet.\t4.750",
     "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2",
     "0\tcaptions\tMSRvid\t2012test\t0001\tnone\tnone\ta\tb", ("A plane.", "A jet.", 4.75)),
    ("qnli", "index\tquestion\tsentence\tlabel", "0\tWhen?\tIn 1900.\tnot_entailment", "index\tquestion\tsentence",
     "0\ta\tb", ("When?", "In 1900.", "not_entailment")),
    ("rte", "index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\tentailment", "index\tsentence1\tsentence2", "0\ta\tb",
     ("A.", "B.", "entailment")),
    ("wnli", "index\tsentence1\tsentence2\tlabel", "0\tA.\tB.\t1", "index\tsentence1\tsentence2", "0\ta\tb",
     ("A.", "B.", "entailment")),
    ("snli", f"index\tcaptionID\t{NLI.partition(chr(9))[2]}\tsentence1\tsentence2\tlabel1\tgold_label",
     f"0\tc\t{PARSES.partition(chr(9))[2]}\tA man.\tNobody.\tcontradiction\tcontradiction",
     f"index\tcaptionID\t{NLI.partition(chr(9))[2]}\tsentence1\tsentence2", f"0\tc\t{PARSES.partition(chr(9))[2]}\ta\tb",
     ("A man.", "Nobody.", "contradiction")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "header", "row", "test_header", "test_row", "wanted"), FORMS, ids=lambda value: str(value)[:5])
def test_the_published_forms(
    tmp_path: Path, name: str, header: str, row: str, test_header: str, test_row: str, wanted: tuple[object, ...]
) -> None:
    for part in ("train", "dev"):
        (tmp_path / f"{part}.tsv").write_text("".join(f"{line}\n" for line in (header, row) if line), encoding="utf-8")
    (tmp_path / "test.tsv").write_text(f"{test_header}\n{test_row}\n", encoding="utf-8")
    with collecting() as said:
        parts = load_parts(task_named(name), ("train", "validation", "test"), folder=str(tmp_path), strict=True)
    assert [notice.message for notice in said] == []
    for part in ("train", "validation"):
        assert [(found.text, found.pair, found.label) for found in parts[part].rows] == [wanted]
    assert [(found.text, found.pair, found.label) for found in parts["test"].rows] == [
        ("He left." if name == "cola" else "dull ." if name == "sst2" else "a", None if name in ("cola", "sst2") else "b", None)
    ]


def test_mnli_apart_and_its_parses_that_are_no_texts(tmp_path: Path) -> None:
    head = f"index\t{NLI}\tsentence1\tsentence2"
    for name in ("train", "dev_matched", "dev_mismatched"):
        (tmp_path / f"{name}.tsv").write_text(f"{head}\tlabel1\tgold_label\n0\t{PARSES}\tA.\tB {name}.\tneutral\tneutral\n")
    parts = load_parts(task_named("mnli"), folder=str(tmp_path))
    assert {name: part.rows[0].pair for name, part in parts.items()} == {
        "train": "B train.", "validation_matched": "B dev_matched.", "validation_mismatched": "B dev_mismatched.",
    }  # fmt: skip


def test_snli_leaves_out_what_its_annotators_did_not_agree_on(tmp_path: Path) -> None:
    """The original release: JSON lines (or tabs) with ``-`` for a gold that is none."""
    rows = [{"gold_label": gold, "sentence1": "a", "sentence2": gold, "pairID": f"{n}r", "annotator_labels": [gold]}
            for n, gold in enumerate(["neutral", "-", "entailment", "-"])]  # fmt: skip
    for part in ("train", "dev"):
        (tmp_path / f"snli_1.0_{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "snli_1.0_test.txt").write_text("gold_label\tsentence1\tsentence2\tpairID\n-\ta\tb\t1\nneutral\ta\tb\t2\n")
    with collecting() as said:
        parts = load_parts(task_named("snli"), ("train", "validation", "test"), folder=str(tmp_path))
    assert [(row.id, row.label) for row in parts["train"].rows] == [("0r", "neutral"), ("2r", "entailment")]
    assert [row.id for row in parts["test"].rows] == ["2"]
    assert [notice.kind for notice in said] == ["skipped-rows"] * 3
    assert said[0].message.startswith(f"2 rows were skipped: {tmp_path}/snli_1.0_train.jsonl, line 2: no label; ")


def test_a_csv_of_the_hubs_data_is_read_by_its_own_names(tmp_path: Path) -> None:
    """With the classes of a test part hidden as -1, and STS-B's numbers in a column of another name than in GLUE's file."""
    path = tmp_path / "copy.csv"
    path.write_text("idx,sentence,label\n0,a film,-1\n1,a book,1\n", encoding="utf-8")
    assert [row.label for row in KIND.read(path, task_named("sst2"))[0]] == [None, "positive"]
    path.write_text("sentence1,sentence2,label,idx\na,b,2.5,7\n", encoding="utf-8")
    assert [(row.id, row.label) for row in KIND.read(path, task_named("stsb"))[0]] == [("7", 2.5)]


def test_a_line_alone_where_pairs_are_asked_for_is_told() -> None:
    with collecting() as heard:
        rows = [KIND.from_line(number, line, task_named("rte")) for number, line in enumerate(("a\tb", "a", "c"), 1)]
    assert [row.pair for row in rows] == ["b", None, None]
    assert [notice.kind for notice in heard] == ["one-text"]
    with collecting() as silent:
        KIND.from_line(1, "a", task_named("sst2"))
    assert not silent


def test_hidden_labels_of_the_hub_are_none() -> None:
    """SNLI's -1 leaves its row out, STS-B's -1.0 hides all of a test part, and 0.0 is a score."""
    snli, stsb = (replace(task, columns=task.hub.columns) for task in map(task_named, ("snli", "stsb")) if task.hub)
    records = [{"premise": "a", "hypothesis": "b", "label": label} for label in ("neutral", None, "entailment")]
    rows, report = KIND.from_records(records, snli, source="hub, train")
    assert [row.label for row in rows] == ["neutral", "entailment"]
    assert (report.rows, len(report.skipped)) == (2, 1)
    records = [{"sentence1": "a", "sentence2": "b", "label": label, "idx": 9} for label in (-1.0, -1.0)]
    rows, report = KIND.from_records(records, stsb, source="hub, test")
    assert [(row.id, row.label) for row in rows] == [("9", None)] * 2
    assert KIND.from_records([{**records[0], "label": 0.0}], stsb, source="hub, train")[0][0].label == 0.0


def test_ax_has_no_training_and_takes_labels_where_there_are_some(tmp_path: Path) -> None:
    ax = task_named("ax")
    with pytest.raises(UsageError, match=r"models of mnli answer it.*`bertkit finetune mnli`"):
        resolve(finetune_settings("ax"), command="finetune", flags={"task": Entry("ax", "TASK")})
    (tmp_path / "diagnostic.tsv").write_text("index\tsentence1\tsentence2\n0\tA.\tB.\n")
    assert [row.label for row in load_parts(ax, ("test",), folder=str(tmp_path))["test"].rows] == [None]
    full = tmp_path / "diagnostic-full.tsv"  # the authors' file: other names, and labels
    full.write_text("Lexical Semantics\tLogic\tDomain\tPremise\tHypothesis\tLabel\n\tNegation\tNews\tA.\tB.\tcontradiction\n")
    own = with_columns(ax, text="Premise", pair="Hypothesis", label="Label")
    (row,) = load_parts(own, ("test",), test_file=str(full))["test"].rows
    assert (row.text, row.pair, row.label) == ("A.", "B.", "contradiction")


@pytest.mark.parametrize(
    ("name", "values", "spelled"),
    [
        ("cola", ["acceptable", "unacceptable"], ["1", "0"]),
        ("sst2", ["negative", "positive"], ["0", "1"]),
        ("mrpc", ["equivalent", "not_equivalent"], ["1", "0"]),
        ("qqp", ["not_duplicate", "duplicate"], ["0", "1"]),
        ("stsb", [-0.25, 3.125, 5.5], ["0.0", "3.125", "5.0"]),
        ("qnli", ["not_entailment", "entailment"], ["not_entailment", "entailment"]),
        ("rte", ["entailment", "not_entailment"], ["entailment", "not_entailment"]),
        ("wnli", ["entailment", "not_entailment"], ["1", "0"]),
        ("ax", ["neutral", "contradiction"], ["neutral", "contradiction"]),
    ],
)
def test_the_servers_files_and_back(tmp_path: Path, name: str, values: list[str | float], spelled: list[str]) -> None:
    task = task_named(name)
    (path,) = KIND.write_official(tmp_path, [Prediction(id="x", value=value) for value in values], [], task, "test")
    assert path.name == {"cola": "CoLA", "sst2": "SST-2", "stsb": "STS-B"}.get(name, name.upper()) + ".tsv"
    assert path.read_bytes() == "".join(f"{line}\n" for line in ["index\tprediction", *(
        f"{n}\t{value}" for n, value in enumerate(spelled))]).encode()  # fmt: skip
    rows = [TextRow(id=str(n), text="a") for n in range(len(values))]
    labels = Labels(names=task.labels or ("score",), problem=task.problem)
    back = [prediction.value for prediction in KIND.read_official(path, rows, task, labels)]
    assert back == (values if task.labels else [0.0, 3.125, 5.0])


# Rows of train, validation (each part) and test in the data folder; None where the file is not there.
COUNTS = {
    "cola": ("CoLA", 8551, 1043, 1063), "sst2": ("SST-2", 67349, 872, 1821), "mrpc": ("MRPC", 3668, 408, 1725),
    "stsb": ("STS-B", 5749, 1500, 1379), "rte": ("RTE", 2490, 277, 3000), "wnli": ("WNLI", 635, 71, 146),
    "qnli": ("QNLI", 8999, 5463, 5463), "qqp": ("QQP", 12000, 4000, None), "mnli": ("MNLI", 9471, 1000, None),
    "ax": ("AX", None, None, 1104),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("name", COUNTS)
def test_the_published_archives(real_data: Path, name: str) -> None:
    folder, *counts = COUNTS[name]
    task = task_named(name)
    roles = [role for role, count in zip(("train", "validation", "test"), counts, strict=True) if count is not None]
    parts = load_parts(task, roles, folder=str(real_data / "data/glue" / str(folder)), strict=True)
    assert [len(part.rows) for part in parts.values()] == [count for count in counts if count is not None]
    for part in parts.values():
        assert KIND.has_gold(part.rows) == (part.role != "test")
        if part.role == "test":
            continue
        golds = {row.label for row in part.rows}
        assert (min(golds), max(golds)) == task.bounds if task.bounds else golds == set(task.labels)


def test_every_task_of_the_benchmark_has_a_file_for_its_server() -> None:
    files = [file for task in all_tasks() for file in task.official.values() if file.endswith(".tsv")]
    assert sorted(files) == sorted([
        "CoLA.tsv", "SST-2.tsv", "MRPC.tsv", "STS-B.tsv", "QQP.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "QNLI.tsv", "RTE.tsv",
        "WNLI.tsv", "AX.tsv",
    ])  # fmt: skip


def test_a_spelling_for_no_label_hides_nothing_that_is_one() -> None:
    own = replace(task_named("classification"), columns=Columns(no_label=("-",)))
    rows, report = KIND.from_records([{"text": "a", "label": "-"}, {"text": "b", "label": "--"}], own, source="here")
    assert [row.label for row in rows] == ["--"]
    assert len(report.skipped) == 1
