"""Parts of the body that stay as they are, rates by layer, labels' weights, windows and an early end, through the command."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_tests import Call, MakeModel, review
from safetensors.numpy import load_file
from small_runs import at_step, same_bits

from bertkit.jobs import finetuning
from bertkit.jobs.training import Course
from bertkit.tasks.prediction import Scores


@pytest.fixture
def command(make_model: MakeModel, sst2: Path) -> tuple[Any, ...]:
    model = make_model(layers=3)
    return ("finetune", "sst2", "--model", model, "--data", sst2, "--precision", "fp32", "--batch-size", "16")


def moved(command: tuple[Any, ...], run: str) -> dict[str, float]:
    """How far the furthest weight of each tensor of the body has gone."""
    before, after = load_file(command[3] / "model.safetensors"), load_file(Path(run) / "model.safetensors")
    return {name: float(np.abs(after[name] - before[name]).max()) for name in after if name in before}


def level(name: str) -> int | None:
    """0 for the embeddings, from 1 on for the layers, by the file's own names."""
    if name.startswith("bert.encoder.layer."):
        return int(name.split(".")[3]) + 1
    return 0 if name.startswith("bert.embeddings.") else None


@pytest.mark.slow
def test_frozen_parts_stay_and_the_others_move(bertkit: Call, command: tuple[Any, ...]) -> None:
    frozen = (*command, "--steps", "2", "--set", "tuning.freeze_embeddings=true", "--set", "tuning.freeze_layers=2")
    done = bertkit(*frozen, "--output", "run")
    assert done.code == 0
    assert "weights of the body stay as they are" in done.err
    for name, far in moved(command, "run").items():
        assert (far == 0) == (level(name) in (0, 1, 2)), name
    # It is stopped and goes on with what it has, and ends with the same.
    with at_step(1, lambda course: course.console.stop.request(signal.SIGINT)):
        assert bertkit(*frozen, "--output", "parted").code == 130
    assert bertkit(*frozen, "--output", "parted").code == 0
    assert same_bits(Path("run"), Path("parted"))
    assert bertkit(*command, "--steps", "1", "--set", "tuning.freeze_layers=2", "--output", "lower").code == 0
    assert {level(name) for name, far in moved(command, "lower").items() if far == 0} == {1, 2}
    refused = bertkit(*command, "--steps", "1", "--set", "tuning.freeze_layers=4", "--output", "deep")
    assert refused.code == 2
    assert "the model has 3" in refused.report["error"]["message"]


def test_lower_layers_move_by_their_share_of_the_rate(bertkit: Call, command: tuple[Any, ...]) -> None:
    # Adam's first step is the rate itself wherever there is a gradient: g / (|g| + ε).
    one = [
        "--steps",
        "1",
        "--lr",
        "1e-3",
        "--warmup",
        "0",
        "--set",
        "optimizer.weight_decay=0",
        "--set",
        "optimizer.epsilon=1e-12",
    ]
    assert bertkit(*command, *one, "--set", "tuning.layer_decay=0.5", "--output", "run").code == 0
    seen = set()
    for name, far in moved(command, "run").items():
        if (of := level(name)) is not None and not name.endswith("key.bias"):  # the softmax does not see that one
            seen.add(of)
            assert far == pytest.approx(1e-3 * 0.5 ** (3 - of), rel=1e-2), name
    assert seen == {0, 1, 2, 3}


def test_weights_of_labels_turn_the_answers(bertkit: Call, command: tuple[Any, ...]) -> None:
    flags = (*command, "--epochs", "2", "--lr", "1e-3", "--keep-last")
    for name in ("negative", "positive"):
        done = bertkit(*flags, "--set", f"kind.class_weights={{{name}: 1000.0}}", "--output", name)
        assert done.code == 0
        scored = bertkit("eval", "sst2", "--model", name)
        assert scored.code == 0
        assert not any("class" in said for said in scored.warned("as-trained"))  # weights are of the loss alone
        lines = Path(f"{name}/evals/sst2-validation/predictions.jsonl").read_text().splitlines()
        assert {json.loads(line)["prediction"] for line in lines} == {name}


@pytest.mark.slow
def test_long_texts_in_windows_are_trained_on_and_scored_once_each(bertkit: Call, tiny: Path) -> None:
    # What decides stands at the end, behind the length.
    rows = [review(number) for number in range(100)]
    filled = [(f"{'x y z ' * 12}{text.split()[2]}", label) for text, label in rows]
    for name, some in (("train.csv", filled[:80]), ("dev.csv", filled[80:])):
        Path(name).write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in some))
    flags = ("finetune", "classification", "--model", tiny, "--train-file", "train.csv", "--validation-file", "dev.csv")
    short = (*flags, "--lr", "0.01", "--epochs", "8", "--batch-size", "16", "--max-length", "24", "--precision", "fp32")
    cut = bertkit(*short, "--output", "cut")
    assert cut.metrics["accuracy"] == 0.5
    assert "20 of 20 texts were cut to the length" in cut.err
    done = bertkit(*short, "--set", "kind.windows=max", "--output", "windows")
    assert done.metrics["accuracy"] == 1.0
    assert done.metrics["examples"] == 20
    assert "20 of 20 texts are longer than 24 tokens" in done.err
    scored = bertkit("eval", "classification", "--model", "windows")  # in windows too, as it was trained
    assert (scored.metrics["accuracy"], scored.metrics["examples"]) == (1.0, 20)


# An early end


@pytest.fixture
def accuracies(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """What the validation at each step is to find; elsewhere 0.1."""
    wanted: dict[int, float] = {}
    plain, at = finetuning.all_scores, [0]
    validate = Course._validate

    def scores(*given: Any) -> Scores:
        real = plain(*given)
        values = real.values | {"accuracy": wanted.get(at[0], 0.1)}
        return Scores(values=values, primary="accuracy", examples=real.examples, interval=real.interval)

    def validated(self: Course) -> bool:
        at[0] = self.state.step
        return validate(self)

    monkeypatch.setattr(finetuning, "all_scores", scores)
    monkeypatch.setattr(Course, "_validate", validated)
    return wanted


@pytest.mark.slow
def test_patience_ends_the_training_at_the_same_step_after_a_stop(
    bertkit: Call, command: tuple[Any, ...], accuracies: dict[int, float]
) -> None:
    accuracies |= {2: 0.3, 4: 0.6, 6: 0.6, 8: 0.5, 10: 0.4, 12: 0.9}
    flags = (*command, "--steps", "20", "--eval-every", "2", "--set", "run.patience=3")
    done = bertkit(*flags, "--output", "whole")
    assert (done.metrics["steps"], done.metrics["accuracy"]) == (10, 0.6)
    assert "No better accuracy in 3 validations: the training ends at step 10." in done.err
    for step in (5, 8):  # between two validations, and behind one that was not better
        with at_step(step, lambda course: course.console.stop.request(signal.SIGINT)):
            assert bertkit(*flags, "--output", f"parted-{step}").code == 130
        again = bertkit(*flags, "--output", f"parted-{step}")
        assert (again.metrics["steps"], again.metrics["accuracy"]) == (10, 0.6)
        assert same_bits(Path("whole"), Path(f"parted-{step}"))
    patient = bertkit(*command, "--steps", "20", "--eval-every", "2", "--set", "run.patience=4", "--output", "patient")
    assert patient.metrics["accuracy"] == 0.9
