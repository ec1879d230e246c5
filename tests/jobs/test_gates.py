"""``eval``'s gates: figures to reach, runs not to be worse than, and how both are told: exit code, ``--json``, JUnit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from job_tests import Call, Done, MakeModel, predictions, review, sst2_lines

ROWS = 60


def dev(folder: Path, rows: int = ROWS) -> Path:
    (folder / "dev.tsv").write_text(sst2_lines(range(rows)))
    return folder / "dev.tsv"


def said(path: str, wrong: Iterable[int], rows: int = ROWS, **changes: Any) -> str:
    """Predictions of SST-2's rows, all right but some; ``changes`` by name go into every record."""
    missed, lines = set(wrong), []
    for number in range(rows):
        _, gold = review(number)
        other = {"positive": "negative", "negative": "positive"}[gold]
        record = {"id": str(number), "gold": gold, "prediction": other if number in missed else gold, "score": 0.5 + number / 200}
        lines.append(json.dumps(record | changes))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def evaluate(bertkit: Call, path: str, *flags: object, plain: bool = False) -> Done:
    return bertkit("eval", "sst2", "--predictions", path, "--validation-file", "dev.tsv", *flags, plain=plain)


# --min


def test_figures_that_are_reached_and_missed(bertkit: Call, tmp_path: Path) -> None:
    dev(tmp_path)
    ours = said("ours.jsonl", range(12))  # 48 of 60: 80 points
    done = evaluate(bertkit, ours, "--min", "accuracy=80", "--min", "matthews=-5", "--min", "f1=1%")
    assert (done.code, [gate["outcome"] for gate in done.report["gates"]]) == (0, ["pass"] * 3)
    assert done.report["gates"][0] == {
        "kind": "min", "metric": "accuracy", "part": None, "outcome": "pass", "met": True,
        "value": pytest.approx(80.0), "threshold": 80.0, "message": "accuracy is 80.00, at least 80",
    }  # fmt: skip
    missed = evaluate(bertkit, ours, "--min", "accuracy=80.1", "--min", "f1=50")
    assert (missed.code, missed.report["error"]["kind"], missed.report["exit_code"]) == (7, "gate", 7)
    assert "accuracy is 80.00, below 80.1" in missed.report["error"]["message"]
    assert [gate["met"] for gate in missed.report["gates"]] == [False, True]
    # Everything was written and is told all the same.
    assert missed.report["metrics"]["accuracy"] == pytest.approx(0.8)
    assert len(predictions(Path(missed.report["output"]) / "predictions.jsonl")) == ROWS
    most = evaluate(bertkit, ours, "--max", "accuracy=80", "--max", "f1=50")
    assert (most.code, [gate["outcome"] for gate in most.report["gates"]]) == (7, ["pass", "fail"])
    assert most.report["gates"][0]["message"] == "accuracy is 80.00, at most 80"
    shown = evaluate(bertkit, ours, "--min", "accuracy=80.1", plain=True)
    assert "FAIL  accuracy is 80.00, below 80.1" in shown.out
    assert "accuracy  80.00" in shown.out
    assert "Error: A gate was not met" in shown.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("accuracy=0.84", ["0.84 or 84 points?", "accuracy=84", "accuracy=0.84%"]),
        ("accuracy=1", ["1 or 100 points?"]),
        ("accuracy=101", ["NAME=POINTS"]),
        ("accuracy=nan", ["NAME=POINTS"]),
        ("accuracy", ["NAME=POINTS"]),
        ("=80", ["NAME=POINTS"]),
        ("acuracy=80", ["no figure 'acuracy'", "Did you mean 'accuracy'?"]),
        ("accuracy_of_all=80", ["no figure 'accuracy_of_all'", "Did you mean 'accuracy'?"]),
    ],
)
def test_what_is_no_threshold_is_refused(bertkit: Call, tmp_path: Path, text: str, words: list[str]) -> None:
    dev(tmp_path)
    refused = evaluate(bertkit, said("ours.jsonl", []), "--min", text)
    assert refused.code == 2
    told = f"{refused.report['error']['message']} {refused.report['error']['hint']}"
    assert all(word in told for word in words), told
    assert Path("runs").exists() == (text.startswith("accuracy_of"))  # a typo is found before any work


def test_a_figure_that_does_not_exist_is_not_reached(bertkit: Call, tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text(
        "index\tsentence1\tsentence2\tscore\n" + "".join(f"{n}\ta\tb {n}\t{n}.0\n" for n in range(5))
    )
    lines = [json.dumps({"id": str(n), "gold": float(n), "prediction": 2.5, "score": None}) for n in range(5)]
    (tmp_path / "ours.jsonl").write_text("\n".join(lines) + "\n")
    done = bertkit("eval", "stsb", "--predictions", "ours.jsonl", "--validation-file", "dev.tsv", "--min", "pearson=-100")
    assert (done.code, done.report["gates"][0]["value"]) == (7, None)
    assert "pearson is undefined" in done.report["error"]["message"]


def test_squads_figures_are_points_already(bertkit: Call, tmp_path: Path) -> None:
    asked = [{"id": str(n), "question": "a ?", "answers": [{"text": "b", "answer_start": 2}]} for n in range(4)]
    text = {"data": [{"title": "", "paragraphs": [{"context": "a b c", "qas": asked}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(text))
    (tmp_path / "said.json").write_text(json.dumps({"0": "b", "1": "b", "2": "b", "3": "c"}))
    flags = ("eval", "squad", "--predictions", "said.json", "--validation-file", "dev.json", "--min")
    assert bertkit(*flags, "f1=75", "--not-worse-than", "said.json").code == 0
    missed = bertkit(*flags, "exact=76", "--output", "out")
    assert "exact is 75.00, below 76" in missed.report["error"]["message"]
    wrong = predictions(Path("out/squad-validation/errors.jsonl"))
    assert wrong == [{"id": "3", "gold": ["b"], "prediction": "c", "probability": None, "question": "a ?"}]


# --not-worse-than


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        (range(12), range(12), "pass"),
        (range(20), range(8), "fail"),
        (range(8), range(20), "pass"),
        (range(0, 24, 2), range(1, 23, 2), "inconclusive"),  # 12 lost, 11 won
    ],
)
def test_a_comparison_by_hand(bertkit: Call, tmp_path: Path, ours: range, theirs: range, outcome: str) -> None:
    dev(tmp_path)
    mine, other = said("ours.jsonl", ours), said("theirs.jsonl", theirs)
    done = evaluate(bertkit, mine, "--not-worse-than", other)
    assert done.code == (7 if outcome == "fail" else 0)
    (gate,) = done.report["gates"]
    assert (gate["kind"], gate["metric"], gate["part"], gate["than"]) == ("not-worse-than", "accuracy", "validation", other)
    assert gate["outcome"] == outcome
    assert gate["value"] == pytest.approx(100 * (1 - len(ours) / ROWS))
    assert gate["difference"] == pytest.approx(100 * (len(theirs) - len(ours)) / ROWS)
    assert gate["examples"] == ROWS
    assert gate["differing"] == len(set(ours) ^ set(theirs))
    assert gate["interval"][0] <= gate["difference"] <= gate["interval"][1]
    assert evaluate(bertkit, mine, "--not-worse-than", other).report["gates"] == [gate]  # the same draws every time
    if outcome == "inconclusive":
        assert "Too few examples" in done.warned("inconclusive")[0]
        strict = evaluate(bertkit, mine, "--not-worse-than", other, "--inconclusive", "fail")
        assert (strict.code, strict.report["gates"][0]["met"]) == (7, False)
        assert (
            evaluate(bertkit, mine, "--not-worse-than", other, "--set", "gates.margin=30").report["gates"][0]["outcome"] == "pass"
        )


def test_runs_evals_and_files_are_compared_with(bertkit: Call, trained: Path, sst2: Path) -> None:
    first = bertkit("eval", "sst2", "--model", trained, "--data", sst2)
    folder = Path(first.report["output"])
    for other in (trained, trained / "evals", folder, folder / "predictions.jsonl"):
        done = bertkit("eval", "sst2", "--model", trained, "--data", sst2, "--not-worse-than", other, "--output", "out")
        assert done.report["gates"][0]["differing"] == 0
    for there, kind in ((sst2, "missing"), (Path("nowhere"), "missing")):
        missing = bertkit("eval", "sst2", "--model", trained, "--data", sst2, "--not-worse-than", there, "--output", "out2")
        assert (missing.code, missing.report["error"]["kind"]) == (4, kind)
        assert not Path("out2").exists()
    assert "bertkit eval sst2 --part validation" in bertkit(
        "eval", "sst2", "--model", trained, "--data", sst2, "--not-worse-than", sst2
    ).report["error"]["hint"]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        (ROWS - 2, {}, ["2 of 60 rows have no prediction", "'58'"]),
        (ROWS + 2, {}, ["2 examples ('60', '61') are there, but are not among the 60"]),
        (ROWS, {"gold": "negative"}, ["30 examples", "another gold"]),
        (ROWS, {"id": "7"}, ["59 predictions share an id"]),
        (ROWS, {"prediction": None}, ["None"]),
    ],
)
def test_other_examples_are_no_comparison(
    bertkit: Call, tmp_path: Path, rows: int, changes: dict[str, Any], words: list[str]
) -> None:
    dev(tmp_path)
    theirs = said("theirs.jsonl", [], rows, **changes)
    refused = evaluate(bertkit, said("ours.jsonl", []), "--not-worse-than", theirs, "--output", "out")
    assert (refused.code, refused.report["error"]["kind"]) == (3, "data")
    assert all(word in refused.report["error"]["message"] for word in words), refused.report["error"]["message"]
    assert rows == ROWS or "--max-eval-samples" in refused.report["error"]["hint"]
    assert not Path("out").exists()


def test_edited_texts_under_the_same_ids_are_told(bertkit: Call, tmp_path: Path) -> None:
    lines = dev(tmp_path).read_text()
    ours = said("ours.jsonl", range(5))
    before = Path(evaluate(bertkit, ours, "--output", "before").report["output"])
    assert not evaluate(bertkit, ours, "--not-worse-than", before, "--output", "out").warned("other-texts")
    header, first, *others = lines.splitlines()
    Path("dev.tsv").write_text("\n".join([header, f"Edited {first}", *others]) + "\n")
    edited = evaluate(bertkit, ours, "--not-worse-than", before, "--output", "out")
    assert (edited.code, edited.report["gates"][0]["differing"]) == (0, 0)
    assert "read other texts than dev.tsv has" in edited.warned("other-texts")[0]
    assert not evaluate(bertkit, ours, "--not-worse-than", ours, "--output", "out").warned("other-texts")  # nobody knows


def test_label_names_in_another_case_are_the_same_labels(bertkit: Call, tmp_path: Path) -> None:
    dev(tmp_path)
    lines = Path(said("theirs.jsonl", range(5))).read_text()
    Path("loud.jsonl").write_text(lines.replace('"positive"', '"POSITIVE"').replace('"negative"', '"Negative"'))
    done = evaluate(bertkit, said("ours.jsonl", range(5)), "--not-worse-than", "loud.jsonl")
    assert done.report["gates"][0]["differing"] == 0
    assert evaluate(bertkit, "loud.jsonl").metrics["accuracy"] == pytest.approx(55 / 60)


def test_tags_are_compared_by_sentences(bertkit: Call, tmp_path: Path) -> None:
    gold, lost = "Ann B-PER\nsaid O\n\n", "Ann O O\nsaid O O\n\n"
    kept = "Ann B-PER B-PER\nsaid O O\n\n"
    (tmp_path / "valid.txt").write_text(gold * 20)
    (tmp_path / "ours.txt").write_text(kept * 12 + lost * 8)
    (tmp_path / "theirs.txt").write_text(kept * 20)
    flags = ("eval", "conll2003", "--predictions", "ours.txt", "--validation-file", "valid.txt", "--output", "out")
    done = bertkit(*flags, "--not-worse-than", "theirs.txt", "--min", "PER_f1=70", "--min", "f1_strict=60")
    assert done.code == 7
    assert [gate["outcome"] for gate in done.report["gates"]] == ["pass", "pass", "fail"]
    assert done.report["gates"][2]["differing"] == 8
    kept_figures = json.loads(Path("out/conll2003-validation/metrics.json").read_text())
    assert kept_figures["classes"] == {"PER": {"precision": 1.0, "recall": 0.6, "f1": pytest.approx(0.75), "support": 20}}
    assert len(predictions(Path("out/conll2003-validation/errors.jsonl"))) == 8


def test_of_two_parts_each_is_compared_with_its_own(bertkit: Call, make_model: MakeModel, tmp_path: Path) -> None:
    names = ("entailment", "neutral", "contradiction")
    for part in ("matched", "mismatched"):
        rows = "".join(f"{i}\ta {i} {part}\tb\t{names[i % 3]}\n" for i in range(8))
        (tmp_path / f"dev_{part}.tsv").write_text("index\tsentence1\tsentence2\tgold_label\n" + rows)
    flags = ("eval", "mnli", "--model", make_model("classification", names), "--data", ".", "--output")
    assert bertkit(*flags, "before").code == 0
    done = bertkit(*flags, "now", "--not-worse-than", "before")
    assert [(gate["part"], gate["outcome"]) for gate in done.report["gates"]] == [
        ("validation_matched", "pass"), ("validation_mismatched", "pass")
    ]  # fmt: skip
    assert set(done.report["parts"]) == {"validation_matched", "validation_mismatched"}
    one = bertkit(*flags, "now", "--not-worse-than", "before/mnli-validation_matched")
    assert (one.code, one.report["error"]["kind"]) == (2, "usage")
    assert "--part" in one.report["error"]["hint"]


# --junit

REQUIRED = {
    "testsuite": {"name", "package", "id", "tests", "failures", "errors", "time", "timestamp", "hostname"},
    "testcase": {"name", "classname", "time"},
    "property": {"name", "value"},
    "failure": {"type"},
    "error": {"type"},
}
"""Attributes that the common schemas of JUnit's XML require (Ant's, Jenkins's and its xUnit plugin's)."""


def suite(path: str) -> ElementTree.Element:
    root = ElementTree.parse(path).getroot()
    assert [child.tag for child in root] == ["testsuite"]
    for element in root.iter():
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib), element.tag
    (found,) = root
    assert [child.tag for child in found if child.tag != "testcase"] == ["properties", "system-out", "system-err"]
    counts = {name: sum(case.find(tag) is not None for case in found.iter("testcase")) for name, tag in
              (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))}  # fmt: skip
    assert {name: int(found.attrib[name]) for name in counts} == counts
    assert int(found.attrib["tests"]) == len(found.findall("testcase"))
    assert float(found.attrib["time"]) >= 0
    datetime.strptime(found.attrib["timestamp"], "%Y-%m-%dT%H:%M:%S")
    return found


def test_a_test_suite_for_ci(bertkit: Call, tmp_path: Path) -> None:
    dev(tmp_path)
    ours, theirs = said("ours.jsonl", range(0, 24, 2)), said("theirs.jsonl", range(1, 23, 2))
    flags = ("--not-worse-than", theirs, "--min", "accuracy=80", "--min", "f1=90", "--junit", "ci/gates.xml")
    assert evaluate(bertkit, ours, *flags).code == 7
    found = suite("ci/gates.xml")
    cases = {case.attrib["name"]: case for case in found.iter("testcase")}
    assert set(cases) == {"min accuracy", "min f1", "not worse accuracy (validation)"}
    assert len(cases["min accuracy"]) == 0
    failure = cases["min f1"].find("failure")
    assert failure is not None
    assert "below 90" in failure.attrib["message"]
    assert "threshold: 90.0" in str(failure.text)
    skipped = cases["not worse accuracy (validation)"].find("skipped")
    assert skipped is not None
    assert "inconclusive" in skipped.attrib["message"]
    assert {each.attrib["name"]: each.attrib["value"] for each in found.iter("property")}["accuracy"] == "80.00"
    # What was not scored at all is an error there, so that no older file is taken for its own.
    Path("dev.tsv").write_text("index\tsentence\n0\tno label \x1b <&>\n")
    assert evaluate(bertkit, ours, *flags).code == 3
    (case,) = suite("ci/gates.xml").iter("testcase")
    error = case.find("error")
    assert error is not None
    assert "no labels" in error.attrib["message"]
    for wrong in (("--junit", "gates.xml"), ("--min", "f1=90", "--junit", "ci"), ("--inconclusive", "fail")):
        assert evaluate(bertkit, ours, *wrong).code == 2


# What eval says beside its figures


def test_the_page_fits_80_columns(bertkit: Call, tmp_path: Path) -> None:
    names = [f"class {'x' * (number % 40)} {number}" for number in range(40)]
    rows = [(f"text {'long ' * 40}{number}", names[number % 40]) for number in range(200)]
    (tmp_path / "dev.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    lines = [
        json.dumps({"id": str(n), "gold": label, "prediction": names[(n * n) % 40], "score": n / 200})
        for n, (_, label) in enumerate(rows)
    ]
    (tmp_path / "said.jsonl").write_text("\n".join(lines) + "\n")
    done = bertkit("eval", "classification", "--predictions", "said.jsonl", "--validation-file", "dev.csv", plain=True)
    assert max(map(len, done.out.splitlines())) <= 80
    assert "the 12 worst of 40 by F1" in done.out
    wrong = predictions(Path("runs/evals/said-classification-validation/errors.jsonl"))
    assert f"(all {len(wrong)} in errors.jsonl)" in done.out
    assert [one["probability"] for one in wrong] == sorted((one["probability"] for one in wrong), reverse=True)
    assert wrong[0]["text"] == rows[int(wrong[0]["id"])][0]  # the whole text there, a shortened one on the page
    kept = json.loads(Path("runs/evals/said-classification-validation/metrics.json").read_text())
    assert len(kept["classes"]) == len(kept["confusion"]["labels"]) == 40
    assert sum(map(sum, kept["confusion"]["counts"])) == 200


def test_what_the_settings_put_out_of_reach_is_said(bertkit: Call, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\na good one and more of it .\t1\n\u200e\t1\n\ufffd\t0\na\t0\n")
    flags = ("eval", "sst2", "--model", trained, "--validation-file", "dev.tsv", "--output", "out")
    done = bertkit(*flags, "--max-length", "4")
    coverage = done.report["parts"]["validation"]["coverage"]
    assert {name: coverage[name] for name in ("rows", "cut_rows", "emptied", "unreachable")} == {
        "rows": 4, "cut_rows": 1, "emptied": 2, "unreachable": 1
    }  # fmt: skip
    assert coverage["ceilings"] == {"accuracy": 0.75}
    assert json.loads(Path("out/sst2-validation/metrics.json").read_text())["coverage"] == coverage
    for words in ("1 of 4 texts were cut", "2 of 4 texts have no token", "a perfect model could get accuracy 75.00"):
        assert words in done.err
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\ngood\t1\nbad\t0\n")
    assert "nothing is out of reach" in bertkit(*flags).err


@pytest.mark.slow
def test_two_processes_say_a_missed_gate_once(trained: Path, tmp_path: Path) -> None:
    right = [line.split("\t") for line in sst2_lines(range(100, 124)).splitlines()[1:]]
    turned = [f"{text}\t{1 - int(label) if number < 4 else label}" for number, (text, label) in enumerate(right)]
    (tmp_path / "dev.tsv").write_text("\n".join(["sentence\tlabel", *turned]) + "\n")
    command = ["eval", "sst2", "--model", str(trained), "--validation-file", "dev.tsv", "--min", "accuracy=99", "--output", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "bertkit", *command, "--processes", "2", "--precision", "fp32", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    report = json.loads(done.stdout)
    assert (report["exit_code"], report["gates"][0]["value"]) == (7, pytest.approx(100 * 20 / 24))
    assert done.stderr.count("was not met") == 1


def test_a_type_of_entities_may_have_any_name(bertkit: Call, tmp_path: Path) -> None:
    """``country`` has ``count`` in it, and is none."""
    (tmp_path / "gold.txt").write_text("a B-country\nb O\n\na B-country\n")
    (tmp_path / "said.txt").write_text("a B-country\nb O\n\na O\n")
    scored = ("eval", "tokens", "--test-file", "gold.txt", "--predictions", "said.txt", "--output", "out", "--min")
    assert bertkit(*scored, "country_f1=60").code == 0
    missed = bertkit(*scored, "country_f1=70")
    assert (missed.code, missed.report["gates"][0]["message"]) == (7, "country_f1 is 66.67, below 70")
