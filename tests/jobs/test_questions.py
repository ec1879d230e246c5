"""``span`` over people's own questions: finetune, eval, and predict by JSON lines of any length."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from job_tests import Call, MakeModel, predictions

BRIEF = ("--lr", "0.01", "--batch-size", "8", "--max-length", "20", "--stride", "4", "--precision", "fp32")


def question(number: int) -> dict[str, str]:
    """A question on a context of words and places of its own, whose answer is the word behind ``good``."""
    letter = "abcdefghij"[number % 10]
    before = " ".join("xyz"[place % 3] for place in range(number % 14))
    context = f"{before} \tgood  {letter}{letter}, bad poor"
    return {"question": f"what is {number % 7}?", "context": context, "answer": letter * 2}


def write_csv(path: Path, numbers: range, *, unanswered: int = 0) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("question", "context", "answer", "answer_start"))
        writer.writeheader()
        for number in numbers:
            row = question(number)
            start: object = row["context"].index(row["answer"])
            if unanswered and number % unanswered == 0:
                row |= {"context": f"bad poor {number} .", "answer": ""}
                start = ""
            writer.writerow({**row, "answer_start": start})


def write_lines(path: Path, numbers: range) -> None:
    asked = [{name: question(number)[name] for name in ("question", "context")} for number in numbers]
    path.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")


@pytest.mark.slow
def test_own_questions_from_training_to_answers_in_order(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", range(24))
    write_csv(tmp_path / "dev.csv", range(30, 42))
    done = bertkit(
        "finetune",
        "span",
        "--model",
        tiny,
        "--train-file",
        "train.csv",
        "--validation-file",
        "dev.csv",
        "--output",
        "run",
        *BRIEF,
    )
    assert done.metrics["examples"] == 12
    scored = bertkit("eval", "span", "--model", "run")
    assert {name: scored.metrics[name] for name in ("f1", "exact")} == {name: done.metrics[name] for name in ("f1", "exact")}
    write_lines(tmp_path / "asked.jsonl", range(260))  # two windows of rows
    said = bertkit("predict", "span", "--model", "run", "--test-file", "asked.jsonl", "--output", "out/said.jsonl")
    assert said.metrics == {"examples": 260}
    records = predictions(Path("out/said.jsonl"))
    assert [record["id"] for record in records] == [str(number) for number in range(260)]
    for number, record in enumerate(records):
        context = question(number)["context"]
        assert record["prediction"] == context[record["start"] : record["end"]] != ""
        assert record["gold"] is None
    official = json.loads(Path("out/predictions.json").read_text(encoding="utf-8"))
    assert list(official.items()) == [(record["id"], record["prediction"]) for record in records]
    n_best = json.loads(Path("out/nbest_predictions.json").read_text(encoding="utf-8"))
    assert [texts[0]["text"] for texts in n_best.values()] == list(official.values())
    assert not Path("out/null_odds.json").exists()
    # One by one they are answered as together.
    write_lines(tmp_path / "one.jsonl", range(259, 260))
    bertkit("predict", "span", "--model", "run", "--test-file", "one.jsonl", "--output", "one/said.jsonl")
    (alone,) = predictions(Path("one/said.jsonl"))
    assert (alone["start"], alone["end"]) == (records[259]["start"], records[259]["end"])
    assert alone["score"] == pytest.approx(records[259]["score"], abs=1e-5)
    # Columns of other names.
    Path("named.jsonl").write_text('{"frage": "what?", "absatz": "a b c", "antwort": "b"}\n', encoding="utf-8")
    names = ("--text-column", "frage", "--pair-column", "absatz", "--label-column", "antwort")
    renamed = bertkit("eval", "span", "--model", "run", "--test-file", "named.jsonl", *names, "--output", "named")
    assert renamed.metrics["examples"] == 1
    refused = bertkit("eval", "span", "--model", "run", "--test-file", "named.jsonl", "--output", "named")
    assert refused.code == 3
    assert "no column 'question'" in refused.report["error"]["message"]
    # A threshold that eval finds on a dev part with unanswered questions is predict's from then on.
    write_csv(tmp_path / "nulls.csv", range(60, 84), unanswered=3)
    found = bertkit("eval", "span", "--model", "run", "--validation-file", "nulls.csv")
    threshold = found.metrics["best_null_threshold"]
    assert found.metrics["HasAns_total"] == 16
    told = bertkit("predict", "span", "--model", "run", "--test-file", "asked.jsonl", "--output", "nulls/said.jsonl")
    assert any(f"null_threshold {threshold}" in message for message in told.warned("as-tuned"))
    for record in predictions(Path("nulls/said.jsonl")):
        assert record["prediction"] == ("" if record["null_odds"] > threshold else record["best_text"])
    assert Path("nulls/null_odds.json").exists()


@pytest.mark.parametrize("name", ["predictions.json", "nbest_predictions.json", "null_odds.json"])
def test_no_official_file_takes_the_place_of_the_output(bertkit: Call, make_model: MakeModel, tmp_path: Path, name: str) -> None:
    write_lines(tmp_path / "asked.jsonl", range(2))
    size = ("--max-length", "20", "--stride", "4")
    flags = ("predict", "span", "--model", make_model("span"), "--test-file", "asked.jsonl", *size)
    refused = bertkit(*flags, "--output", f"out/{name}")
    assert (refused.code, name in refused.report["error"]["message"], Path("out").exists()) == (2, True, False)
    assert bertkit(*flags, "--output", "out/said.json").metrics == {"examples": 2}
    assert len(predictions(Path("out/said.json"))) == 2


@pytest.mark.slow
def test_the_threshold_tuned_in_training_is_used_to_predict_and_never_to_evaluate(
    bertkit: Call, tiny: Path, tmp_path: Path
) -> None:
    write_csv(tmp_path / "train.csv", range(24), unanswered=2)
    write_csv(tmp_path / "dev.csv", range(30, 60), unanswered=2)
    named = ("--train-file", "train.csv", "--validation-file", "dev.csv", "--output", "run")
    done = bertkit("finetune", "span", "--model", tiny, *named, "--steps", "40", *BRIEF).metrics
    threshold = json.loads(Path("run/metrics.json").read_text())["best_null_threshold"]
    assert threshold == done["best_null_threshold"] > done["best_f1_thresh"]
    scored = bertkit("eval", "span", "--model", "run", "--precision", "fp32", plain=True)
    assert "validation by question word:" not in scored.out  # all ask in one word
    assert "validation by answer length:" in scored.out
    figures = json.loads(Path("run/evals/span-validation/metrics.json").read_text())
    for name in ("f1", "exact", "best_f1", "HasAns_f1", "NoAns_exact"):
        assert figures[name] == done[name]  # at threshold 0
    assert set(figures["groups"]["answer length"]) == {"1", "no answer"}
    assert figures["groups"]["answer length"]["no answer"]["exact"] == figures["NoAns_exact"]
    # The same rows with the threshold score what the search promised.
    write_csv(tmp_path / "test.csv", range(30, 60), unanswered=2)
    bertkit("predict", "span", "--model", "run", "--test-file", "test.csv", "--output", "said.jsonl")
    again = bertkit("eval", "span", "--predictions", "predictions.json", "--test-file", "test.csv", "--output", "again")
    assert again.metrics["f1"] == pytest.approx(done["best_f1"])
    asked = ("predict", "span", "--model", "run", "--test-file", "test.csv", "--output", "said.jsonl", "--set")
    other = bertkit(*asked, "kind.null_threshold=-1e9")
    assert other.warned("as-tuned") == [
        "As tuned on the validation part: null_answers True; --set kind.null_answers=… is another."
    ]
    assert {record["prediction"] for record in predictions(Path("said.jsonl"))} == {""}
    assert not bertkit(*asked, "kind.null_answers=false").warned("as-tuned")
    assert "" not in {record["prediction"] for record in predictions(Path("said.jsonl"))}
