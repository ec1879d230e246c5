"""Questions, tags and choices have what classification has: sweeps, an early end, intervals, coverage, gates and JUnit; and texts
at the edges are trained on, scored and predicted, or are one clear error. A few steps each, on rows that one word gives away.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from job_tests import Call, predictions

BRIEF = ("--precision", "fp32", "--lr", "0.01", "--batch-size", "8", "--max-length", "24")


def asked(number: int, *, impossible: bool = False) -> dict[str, Any]:
    letter = "abcdefgh"[number % 8]
    context = f"{'x ' * (number % 3)}{'bad' if impossible else 'good'} {letter}{number} ."
    gold = [] if impossible else [{"text": f"{letter}{number}", "answer_start": context.index(f"{letter}{number}")}]
    return {"context": context, "qas": [{"id": str(number), "question": "what ?", "answers": gold}]}


def squad(path: Path, numbers: range, *, nulls: bool = False) -> None:
    paragraphs = [asked(number, impossible=nulls and number % 3 == 0) for number in numbers]
    path.write_text(json.dumps({"version": "v2.0" if nulls else "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}))


def squad_v2(path: Path, numbers: range) -> None:
    squad(path, numbers, nulls=True)


def span(path: Path, numbers: range) -> None:
    rows = []
    for paragraph in map(asked, numbers):
        (qa,) = paragraph["qas"]
        rows.append({"question": qa["question"], "context": paragraph["context"], "answer": qa["answers"][0]["text"]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def tags(path: Path, numbers: range) -> None:
    sentences = [
        f"in {'O'}\ngood{number} {'B-LOC' if number % 2 else 'B-PER'}\nx I-{'LOC' if number % 2 else 'PER'}\n. O\n"
        for number in numbers
    ]
    path.write_text("\n".join(sentences))


def choices(path: Path, numbers: range) -> None:
    rows = [f"a {number},good,{'bad ' * (1 + number % 4)},{'poor' * (number % 2)},0\n" for number in numbers]
    path.write_text("context,candidate0,candidate1,candidate2,label\n" + "".join(rows))


def swag(path: Path, numbers: range) -> None:
    header = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
    path.write_text(header + "".join(f"a {n}.,It,bad,{'poor ' * (n % 3)}bad,good,poor,2\n" for n in numbers))


Writer = Callable[[Path, range], None]
KINDS: dict[str, tuple[Writer, str, str, set[str]]] = {  # its files, the figure that decides, and figures that gates may name
    "squad": (squad, "{}-v1.1.json", "f1", {"exact"}),
    "squad_v2": (squad_v2, "{}-v2.0.json", "f1", {"HasAns_f1", "NoAns_exact", "best_f1"}),
    "span": (span, "{}.jsonl", "f1", {"exact"}),
    "cmrc2018": (squad, "cmrc2018_{}.json", "f1", {"squad_f1", "squad_exact"}),
    "conll2003": (tags, "{}.txt", "f1", {"LOC_f1", "PER_recall", "f1_strict", "accuracy"}),
    "tokens": (tags, "{}.conll", "f1", {"LOC_precision"}),
    "swag": (swag, "{}.csv", "accuracy", set()),
    "choice": (choices, "{}.csv", "accuracy", set()),
}


@pytest.mark.parametrize("task", KINDS)
def test_what_every_task_has(bertkit: Call, tiny: Path, task: str) -> None:
    write, name, primary, more = KINDS[task]
    Path("data").mkdir()
    write(Path("data") / name.format("train"), range(16))
    write(Path("data") / name.format("dev"), range(100, 112))
    train = ("finetune", task, "--model", tiny, "--data", "data", *BRIEF)

    # A grid with seeds: every trial a run, means told, the best one's model kept.
    swept = bertkit(*train, "--lr", "0.01,1e-9", "--seeds", "1,2", "--steps", "2", "--output", "run")
    trials = swept.report["sweep"]["trials"]
    assert [trial["name"] for trial in trials] == [f"lr-{rate}-seed-{seed}" for rate in ("0.01", "1e-09") for seed in (1, 2)]
    assert {f"{primary}_mean", f"{primary}_std", f"{primary}_interval"} <= swept.metrics.keys()
    assert swept.metrics[primary] == max(trial["figures"][primary] or 0 for trial in trials)
    shown = bertkit(*train, "--lr", "0.01,1e-9", "--seeds", "1,2", "--steps", "2", "--output", "run", plain=True).out
    assert max(map(len, shown.splitlines())) < 130, shown

    # No better validation twice: it ends before its time.
    early = bertkit(*train, "--lr", "1e-9", "--steps", "9", "--eval-every", "1", "--set", "run.patience=2", "--output", "early")
    assert early.metrics["steps"] == 3

    # Gates: met, missed, of a figure that is not there, against itself and against one that is right.
    scored = bertkit("eval", task, "--model", "run", "--output", "scored")
    figures, place = scored.metrics, Path(scored.report["output"])
    low, high = figures[f"{primary}_interval"]
    assert low <= figures[primary] <= high
    facts = json.loads((place / "metrics.json").read_text())
    assert facts["coverage"]["rows"] == figures["examples"] == 12
    assert facts["coverage"]["unreachable"] == 0
    assert more <= figures.keys()
    gates = [flag for figure in (primary, *sorted(more)) for flag in ("--min", f"{figure}=0", "--max", f"{figure}=100")]
    run = ("eval", task, "--model", "run", "--output", "gated", "--junit", "gates.xml")
    met = bertkit(*run, *gates, "--not-worse-than", "scored")
    assert (met.code, [gate["outcome"] for gate in met.report["gates"]]) == (0, ["pass"] * (len(gates) // 2 + 1))
    suite = ElementTree.parse("gates.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == (str(len(gates) // 2 + 1), "0")
    told = {each.get("name"): float(str(each.get("value"))) for each in suite.iter("property")}  # in points, as on the page
    assert told[primary] == pytest.approx(figures[primary] * (1 if "exact" in figures else 100), abs=0.005)
    missed = bertkit(*run, "--min", f"{primary}=101%")
    assert missed.code == 2
    missed = bertkit(*run, "--max", f"{primary}=-1")
    assert (missed.code, missed.report["gates"][0]["outcome"]) == (7, "fail")
    assert ElementTree.parse("gates.xml").getroot()[0].get("failures") == "1"
    unknown = bertkit(*run, "--min", f"{primary}x=50")
    assert unknown.code == 2
    assert f"Did you mean '{primary}'?" in unknown.report["error"]["message"]
    right, wrong = [predictions(place / "predictions.jsonl") for _ in range(2)]
    for one, other in zip(right, wrong, strict=True):
        golds = one["gold"]
        one["prediction"] = (golds[0] if golds else "") if primary == "f1" and "nbest" in one else golds
        said = other["prediction"]
        other["prediction"] = ["O"] * len(said) if isinstance(said, list) else "zz" if isinstance(said, str) else 1
    for file, records in (("right.jsonl", right), ("wrong.jsonl", wrong)):
        Path(file).write_text("".join(json.dumps(record) + "\n" for record in records))
    compared = ("eval", task, "--data", "data", "--predictions")
    assert bertkit(*compared, "right.jsonl", "--not-worse-than", "wrong.jsonl").code == 0
    lost = bertkit(*compared, "wrong.jsonl", "--not-worse-than", "right.jsonl")
    assert (lost.code, lost.report["gates"][0]["outcome"]) == (7, "fail")
    assert lost.report["gates"][0]["other"] == pytest.approx(100)


STEP = ("--steps", "1", *BRIEF)


def test_questions_at_the_edges(bertkit: Call, tiny: Path) -> None:
    """A blank context, one of one word, answers at either end of one in windows, windows of one token; too long a question."""
    far = f"ab {'x ' * 40}yz"
    paragraphs: list[dict[str, Any]] = [
        {"context": " \n", "qas": [{"id": "blank", "question": "a", "answers": []}]},
        {"context": "word", "qas": [{"id": "word", "question": "a", "answers": [{"text": "word", "answer_start": 0}]}]},
        {
            "context": far,
            "qas": [
                {"id": text, "question": "a", "answers": [{"text": text, "answer_start": far.index(text)}]}
                for text in ("ab", "yz")
            ],
        },
    ]
    write = Path("edges.json").write_text
    write(json.dumps({"version": "v2.0", "data": [{"paragraphs": paragraphs}]}))
    data = ("--train-file", "edges.json", "--validation-file", "edges.json")
    done = bertkit("finetune", "squad_v2", "--model", tiny, *data, *STEP, "--stride", "4", "--output", "run")
    assert (done.metrics["examples"], done.metrics["NoAns_total"]) == (4, 1)
    for flags in ((), ("--max-length", "5", "--stride", "0")):
        named = ("--model", "run", "--test-file", "edges.json", "--set", "kind.null_threshold=1e9", *flags)
        assert bertkit("predict", "squad_v2", *named, "--output", "said.jsonl").metrics == {"examples": 4}
        said = {one["id"]: one["prediction"] for one in predictions(Path("said.jsonl"))}
        assert said["blank"] == ""
        assert all(text and text in ("word" if name == "word" else far) for name, text in said.items() if name != "blank")
    paragraphs[1]["qas"][0]["question"] = "a " * 40
    write(json.dumps({"version": "v2.0", "data": [{"paragraphs": paragraphs}]}))
    refused = bertkit("eval", "squad_v2", "--model", "run", "--validation-file", "edges.json")
    assert (refused.code, "no room" in refused.report["error"]["message"]) == (2, True)


@pytest.mark.parametrize(("task", "tag", "figure"), [("conll2003", "B-X", "f1"), ("tokens", "NN", "accuracy")])
def test_sentences_at_the_edges(bertkit: Call, tiny: Path, task: str, tag: str, figure: str) -> None:
    """A sentence of one word that the tokenizer deletes, one in many windows, windows of one token, tags with no prefix."""
    sentences = [["\u200e"], ["good", "."], ["good" if number % 3 else "\u200e" for number in range(60)]]
    lines = [[f"{word} {tag if word == 'good' else 'O'}" for word in words] for words in sentences]
    Path("edges.txt").write_text("\n\n".join("\n".join(each) for each in lines) + "\n", encoding="utf-8")
    data = ("--train-file", "edges.txt", "--validation-file", "edges.txt")
    done = bertkit("finetune", task, "--model", tiny, *data, *STEP, "--output", "run")
    assert done.metrics["examples"] == 3
    assert figure in done.metrics
    for flags in ((), ("--max-length", "3")):
        scored = bertkit("eval", task, "--model", "run", *flags)
        assert scored.metrics["examples"] == 3
        assert "21 words are deleted by the tokenizer" in scored.err
        said = predictions(Path(scored.report["output"]) / "predictions.jsonl")
        assert [len(one["prediction"]) for one in said] == [1, 2, 60]
        assert (said[0]["prediction"], said[0]["score"]) == (["O"], None)


def test_candidates_of_very_different_lengths(bertkit: Call, tiny: Path) -> None:
    rows = [
        {"context": "a " * (50 * (number % 2)), "candidates": ["b", "good " * 150, "c d"], "label": number % 3}
        for number in range(6)
    ]
    Path("edges.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = ("--train-file", "edges.jsonl", "--validation-file", "edges.jsonl")
    done = bertkit("finetune", "choice", "--model", tiny, *data, *STEP, "--output", "run")
    assert done.metrics["examples"] == 6
    scored = bertkit("eval", "choice", "--model", "run")
    assert scored.metrics["accuracy"] == done.metrics["accuracy"]
    assert "6 candidates are longer than a sequence by themselves and lost their ends" in scored.err
    said = predictions(Path(scored.report["output"]) / "predictions.jsonl")
    assert all(sum(one["probabilities"]) == pytest.approx(1) for one in said)


@pytest.mark.parametrize(
    ("task", "columns", "row"),
    [
        ("classification", "text,label", "good {},{}"),
        ("regression", "text,label", "good {},{}"),
        ("choice", "context,candidate0,candidate1,label", "a {},b,c,{}"),
    ],
)
def test_a_label_that_dev_lacks_is_told_before_training(bertkit: Call, tiny: Path, task: str, columns: str, row: str) -> None:
    rows = [row.format(number, number % 2) + "\n" for number in range(8)]
    Path("train.csv").write_text(f"{columns}\n{''.join(rows)}")
    Path("dev.csv").write_text(f"{columns}\n{rows[0]}{rows[1].removesuffix('1' + chr(10))}\n")
    data = ("--train-file", "train.csv", "--validation-file", "dev.csv")
    refused = bertkit("finetune", task, "--model", tiny, *data, *STEP, "--output", "run")
    fault = refused.report["error"]
    assert (refused.code, fault["where"]) == (3, "dev.csv, line 3")
    assert fault["message"] == "This row has no label to be scored against."
    assert "Training:" not in refused.err
