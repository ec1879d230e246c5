"""Choices through the commands: trained on a small file, scored, predicted, gated, on several processes, and by transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from job_tests import Call, predictions

from bertkit.cli.main import run
from bertkit.corpus.wordpiece import load_wordpiece
from bertkit.labelled.choices import read_choices
from bertkit.tasks.choice import Choice, ChoiceSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.registry import task_named

PLAIN = ("--precision", "fp32")
GOOD, BAD = ("good", "fine", "a b good c d e f g"), ("bad", "poor", "h i j k bad", "q", "poor poor r s t u v")


def question(number: int) -> dict[str, object]:
    """Two to four candidates of uneven lengths, one of which has a word that says that it is right."""
    count = 2 + number % 3
    place = number * 7 % count
    candidates = [GOOD[number % 3] if n == place else BAD[(number + n) % 5] for n in range(count)]
    return {"context": f"{'abcdef'[number % 6]} {number} ." * (1 + number % 2), "candidates": candidates, "label": place}


def write(path: Path, numbers: range, *, gold: bool = True) -> Path:
    rows = [question(number) for number in numbers]
    path.write_text("".join(json.dumps(row if gold else row | {"label": None}) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chosen(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    place = tmp_path_factory.mktemp("choice")
    write(place / "train.jsonl", range(72))
    write(place / "validation.jsonl", range(200, 222))
    os.environ["OMP_NUM_THREADS"] = "1"
    flags = ["--model", str(tiny), "--data", str(place), "--output", str(place / "run"), "-q", *PLAIN]
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        assert (
            run(["finetune", "choice", *flags, "--lr", "0.01", "--epochs", "6", "--batch-size", "8", "--max-length", "48"]) == 0
        )
    finally:
        sys.stdout = stdout
    return place / "run"


def test_from_the_file_to_predictions(bertkit: Call, chosen: Path, tmp_path: Path) -> None:
    trained = json.loads((chosen / "metrics.json").read_text())
    assert trained["accuracy"] > 0.9
    scored = bertkit("eval", "choice", "--model", chosen, "--min", "accuracy=90", "--junit", "gates.xml", *PLAIN)
    assert (scored.metrics["accuracy"], scored.metrics["examples"]) == (trained["accuracy"], 22)
    assert len(scored.metrics["accuracy_interval"]) == 2
    assert scored.warned("label-form") == ["The right candidate is named by its number, counted from 0."]
    assert Path("gates.xml").exists()
    write(tmp_path / "new.jsonl", range(300, 320), gold=False)
    assert bertkit("predict", "choice", "--model", chosen, "--test-file", "new.jsonl", "--output", "said.jsonl").code == 0
    said = predictions(Path("said.jsonl"))
    right = [question(number)["label"] for number in range(300, 320)]
    assert np.mean([one["prediction"] == label for one, label in zip(said, right, strict=True)]) > 0.85
    assert [len(one["probabilities"]) for one in said] == [2 + number % 3 for number in range(300, 320)]
    assert all(one["score"] == max(one["probabilities"]) and one["gold"] is None for one in said)
    refused = bertkit("eval", "choice", "--model", chosen, "--test-file", "new.jsonl")
    assert refused.code == 3
    missed = bertkit("eval", "choice", "--model", chosen, "--min", "accuracy=100.5%")
    assert missed.code == 2
    # Predictions of any system, compared with what the model said.
    folder = Path(scored.report["output"])
    again = bertkit("eval", "choice", "--predictions", folder / "predictions.jsonl", "--data", chosen.parent)
    assert again.metrics["accuracy"] == scored.metrics["accuracy"]
    spelled = [one | {"prediction": str(one["prediction"])} for one in predictions(folder / "predictions.jsonl")]
    Path("texts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in spelled))
    other = bertkit("eval", "choice", "--predictions", "texts.jsonl", "--data", chosen.parent)
    assert other.code == 3
    assert "where 1 would be right" in other.out or "where 0 would be right" in other.out or "would be right" in other.out


def test_transformers_reads_the_model_and_says_the_same(chosen: Path, bertkit: Call) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    path = write(Path("new.jsonl"), range(400, 409))
    assert bertkit("predict", "choice", "--model", chosen, "--test-file", path, "--output", "said.jsonl", *PLAIN).code == 0
    model, loaded = transformers.AutoModelForMultipleChoice.from_pretrained(chosen, output_loading_info=True)
    assert (list(loaded["missing_keys"]), list(loaded["unexpected_keys"])) == ([], [])
    tokenizer = transformers.AutoTokenizer.from_pretrained(chosen)
    rows = read_choices(path, task_named("choice").columns)[0]  # type: ignore[arg-type]
    for row, said in zip(rows, predictions(Path("said.jsonl")), strict=True):
        inputs = tokenizer([row.context] * len(row.candidates), list(row.candidates), padding=True, return_tensors="pt")
        with torch.no_grad():
            logits = model.eval()(**{name: value[None] for name, value in inputs.items()}).logits[0]
        assert logits.softmax(0).tolist() == pytest.approx(said["probabilities"], abs=1e-5)
        assert said["prediction"] == int(logits.argmax())
    ours = Choice().encode(rows, load_wordpiece(chosen), Labels(names=(), problem=""), ChoiceSettings())
    example = ours.examples[0]
    cuts = pairwise(accumulate(example.tokens, initial=0))
    assert [example.ids[a:b].tolist() for a, b in cuts] == tokenizer([rows[0].context] * 3, list(rows[0].candidates))["input_ids"]


def test_an_untrained_head_is_refused(bertkit: Call, tiny: Path, make_model: object, chosen: Path) -> None:
    done = bertkit("eval", "choice", "--model", tiny, "--data", chosen.parent)
    assert done.code == 3
    assert "choice head" in done.out
    scored = bertkit("eval", "choice", "--model", chosen, "--data", chosen.parent, "--set", "data.label_form=text")
    assert scored.code == 3
    refused = bertkit("eval", "sst2", "--model", chosen, "--set", "data.label_form=text", "--data", chosen.parent)
    assert refused.code == 2
    assert "no candidates" in refused.out


SCRIPT = """
import json, sys
from bertkit.cli.main import run
for command in json.loads(sys.argv[1]):
    if code := run(command):
        sys.exit(code)
"""


@pytest.mark.slow
def test_two_processes_train_and_score_as_one(bertkit: Call, chosen: Path, make_model: object, tiny: Path) -> None:
    plain = json.loads((tiny / "config.json").read_text()) | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (still := Path("still")).mkdir()
    for file in tiny.iterdir():
        (still / file.name).write_bytes(file.read_bytes())
    (still / "config.json").write_text(json.dumps(plain))
    train = ["finetune", "choice", "--model", "still", "--data", str(chosen.parent), "--steps", "4", "--batch-size", "7"]
    train += ["--set", "batch.micro_tokens=150", "--log-every", "1", *PLAIN]
    score = ["eval", "choice", "--model", str(chosen), "--data", str(chosen.parent), "--batch-size", "3", "-q", *PLAIN]
    Path("script.py").write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "script.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    commands = [[*train, "-q", "--output", "two"], [*score, "--output", "scored"]]
    done = subprocess.run(
        [*launch, json.dumps(commands)], env=environment, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    one = bertkit(*train, "--output", "one").metrics
    assert json.loads(Path("two/metrics.json").read_text())["accuracy"] == one["accuracy"]
    losses = [
        [line["loss"] for line in map(json.loads, Path(name, "log.jsonl").read_text().splitlines()) if "loss" in line]
        for name in ("one", "two")
    ]
    assert losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    alone = bertkit(*score[:-3], *PLAIN, "--output", "alone")
    assert alone.code == 0
    ours, theirs = (predictions(Path(name, "choice-validation/predictions.jsonl")) for name in ("alone", "scored"))
    assert [one["id"] for one in theirs] == [str(number) for number in range(22)]
    assert [one["prediction"] for one in theirs] == [one["prediction"] for one in ours]
    for here, there in zip(ours, theirs, strict=True):
        assert here["probabilities"] == pytest.approx(there["probabilities"], abs=1e-6)


@pytest.mark.data
@pytest.mark.slow
def test_codah_by_swags_name(bertkit: Call, tiny: Path, real_data: Path) -> None:
    data = ("--data", real_data / "data/codah")
    done = bertkit(
        "finetune",
        "swag",
        "--model",
        tiny,
        *data,
        "--max-train-samples",
        "40",
        "--max-eval-samples",
        "20",
        "--steps",
        "3",
        *PLAIN,
    )
    scored = bertkit("eval", "swag", "--max-eval-samples", "20", *PLAIN)
    assert scored.metrics["accuracy"] == done.metrics["accuracy"]
    said = predictions(Path(scored.report["output"]) / "predictions.jsonl")
    assert {len(one["probabilities"]) for one in said} == {4}
