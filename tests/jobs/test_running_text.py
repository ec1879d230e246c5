"""Tags of running text: a file with a sentence on each line is read as what is piped in, entities stand at their characters."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from job_tests import Call, MakeModel, predictions

TEXT = "Peter lives in  New York, he said.\n\n\u200e\u00a0\nBonn\u2028 O\ttoo .\r\nSo good"
CHINESE = "我在 北京大学。\nNBA 很好\n"
TYPES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.mark.parametrize(("task", "text"), [("conll2003", TEXT), ("tokens", TEXT), ("weibo_ner", CHINESE)])
def test_a_file_of_sentences_is_tagged_as_what_is_piped_in(
    bertkit: Call, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch, task: str, text: str
) -> None:
    model = make_model("tagging", TYPES, seed=3)
    Path("x.txt").write_text(text, encoding="utf-8", newline="")
    done = bertkit("predict", task, "--model", model, "--test-file", "x.txt", "--output", "out/said.jsonl")
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    assert done.metrics == {"examples": len(lines)}
    told = "characters" if task == "weibo_ner" else "words and punctuation marks"
    assert done.warned("running-text") == [f"x.txt: a line is a sentence of running text, and tagged are its {told}."]
    records = predictions(Path("out/said.jsonl"))
    assert [(record["id"], record["text"]) for record in records] == [(str(n), line) for n, line in enumerate(lines)]
    for record, line in zip(records, lines, strict=True):
        assert [line[start:end] for start, end in record["offsets"]] == record["words"]
        assert len(record["prediction"]) == len(record["words"])
        assert all(line[one["start"] : one["end"]] == one["text"] for one in record["entities"])
    assert any(record["entities"] for record in records)
    assert records[0]["words"][:4] == (["我", "在", "北", "京"] if task == "weibo_ner" else ["Peter", "lives", "in", "New"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert bertkit("predict", task, "--model", model, "--output", "piped/said.jsonl").metrics == done.metrics
    assert predictions(Path("piped/said.jsonl")) == records
    official = Path("out/predictions.txt").read_text(encoding="utf-8")
    assert official.startswith(f"{records[0]['words'][0]} {records[0]['prediction'][0]}\n")
    assert official == Path("piped/predictions.txt").read_text(encoding="utf-8")


def test_columns_stay_columns_and_the_numbers_of_columns_say_so(bertkit: Call, make_model: MakeModel) -> None:
    named = (
        "predict",
        "tokens",
        "--model",
        make_model("tagging", ("DT", "NN")),
        "--test-file",
        "x.txt",
        "--output",
        "said.jsonl",
    )
    Path("x.txt").write_text("the DT\nhouse NN\n")
    by_number = bertkit(*named, "--label-column", "2")
    assert by_number.metrics == {"examples": 1}
    assert by_number.warned("running-text") == []
    (record,) = predictions(Path("said.jsonl"))
    assert (record["words"], record["gold"]) == (["the", "house"], ["DT", "NN"])
    Path("x.txt").write_text("the DT\nhouse NN\n\na DT\nred house NN\n")
    refused = bertkit(*named)
    assert (refused.code, refused.report["error"]["where"]) == (3, "x.txt, line 5")
    assert json.loads(refused.out)["exit_code"] == 3
