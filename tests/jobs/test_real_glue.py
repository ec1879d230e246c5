"""The first rows of the published GLUE and Chinese files from end to end: trained, scored again, predicted for the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from job_tests import Call, predictions

pytestmark = pytest.mark.slow
FIRST = ("--max-train-samples", "48", "--max-eval-samples", "40")
QUICK = ("--steps", "3", "--batch-size", "16", "--max-length", "48", "--precision", "fp32")
# One of each form of label: task, folder, the figure that decides, and what the server's file may hold (None: numbers).
TASKS = [
    ("mrpc", "glue/MRPC", "f1", {"0", "1"}),
    ("stsb", "glue/STS-B", "pearson", None),
    ("qnli", "glue/QNLI", "accuracy", {"entailment", "not_entailment"}),
    ("tnews", "zh/tnews", "accuracy", set()),
]


@pytest.mark.parametrize(("name", "folder", "primary", "spelled"), TASKS)
def test_from_the_files_to_the_servers(
    bertkit: Call, tiny: Path, real_data: Path, name: str, folder: str, primary: str, spelled: set[str] | None
) -> None:
    data = ("--data", real_data / "data" / folder)
    done = bertkit("finetune", name, "--model", tiny, *data, *FIRST, *QUICK)
    assert done.metrics["examples"] == 40
    assert next(iter(done.metrics)) == primary
    scored = bertkit("eval", name, *FIRST[2:], "--precision", "fp32")
    assert scored.metrics == {key: done.metrics[key] for key in scored.metrics}
    if spelled is not None and not spelled:
        return  # no test part there
    assert bertkit("predict", name, *data, *FIRST[2:], "--output", "out/said.jsonl", "--precision", "fp32").code == 0
    said = predictions(Path("out/said.jsonl"))
    (official,) = Path("out").glob("*.tsv")
    header, *lines = official.read_text().splitlines()
    assert header == "index\tprediction"
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(40)] == [row["id"] for row in said]
    values = [line.split("\t")[1] for line in lines]
    if spelled is None:
        assert all(0 <= float(value) <= 5 for value in values)
    else:
        assert set(values) <= spelled


def test_the_diagnostic_pairs_are_answered_by_a_model_of_mnli(bertkit: Call, tiny: Path, real_data: Path, tmp_path: Path) -> None:
    glue = real_data / "data/glue"
    assert bertkit("finetune", "mnli", "--model", tiny, "--data", glue / "MNLI", *FIRST, *QUICK).code == 0
    said = bertkit("predict", "ax", "--data", glue / "AX", *FIRST[2:], "--output", "out/ax.jsonl")
    assert said.code == 0, said.err
    assert "newest finished run of mnli" in said.warned("model")[0]
    assert "max_length 48" in said.warned("as-trained")[0]
    lines = Path("out/AX.tsv").read_text().splitlines()
    assert len(lines) == 41
    assert {line.split("\t")[1] for line in lines[1:]} <= {"entailment", "neutral", "contradiction"}
    unlabelled = bertkit("eval", "ax", "--data", glue / "AX")
    assert (unlabelled.code, "no labels" in unlabelled.report["error"]["message"]) == (3, True)
    rows = predictions(Path("out/ax.jsonl"))
    (tmp_path / "gold.tsv").write_text(
        "index\tsentence1\tsentence2\tlabel\n" + "".join(f"{row['id']}\ta\tb\t{row['prediction']}\n" for row in rows)
    )
    scored = bertkit("eval", "ax", "--test-file", "gold.tsv", "--predictions", "out/AX.tsv")
    assert scored.metrics["accuracy"] == 1.0
    assert next(iter(scored.metrics)) == "matthews"
    refused = bertkit("finetune", "ax", "--model", tiny, "--data", glue / "AX")
    assert (refused.code, "bertkit finetune mnli" in json.dumps(refused.report)) == (2, True)
