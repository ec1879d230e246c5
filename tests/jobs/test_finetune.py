"""``bertkit finetune`` as people call it: what it does with nothing said, the same command again, signals, the best model."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from job_tests import QUICK, Call, MakeModel, predictions
from safetensors.numpy import load_file
from small_runs import at_step

from bertkit.jobs import finetuning, scoring, training
from bertkit.tasks.data import TaskPart
from bertkit.tasks.prediction import Scores

# Nothing said


def test_a_task_and_a_model_are_enough(bertkit: Call, tiny: Path, sst2: Path) -> None:
    (sst2 / "dev.tsv").unlink()
    done = bertkit("finetune", "sst2", "--model", tiny, "--data", sst2)
    told = done.report
    assert (done.code, told["state"], told["output"]) == (0, "finished", "runs/sst2")
    assert done.warned("held-out") == [
        "There is no validation part: 8 of 80 training rows are held out, equal texts on one side."
    ]
    assert len(done.warned("new-head")) == 1
    run = Path("runs/sst2")
    settings = yaml.safe_load((run / "settings.yaml").read_text())
    assert (settings["budget"]["epochs"], settings["batch"]["size"], settings["run"]["keep_best"]) == (3.0, 32, True)
    assert settings["optimizer"]["learning_rate"] == 3e-4  # the narrowest models'
    assert "output" not in settings
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "README.md"} <= {
        file.name for file in run.iterdir()
    }
    figures = json.loads((run / "metrics.json").read_text())
    assert figures == told["metrics"]
    assert (figures["steps"], figures["examples"]) == (9, 8)  # 72 rows in batches of 32, three times
    assert set(figures) >= {"accuracy", "f1", "matthews", "accuracy_interval"}
    steps = [
        record["step"]
        for line in (run / "log.jsonl").read_text().splitlines()
        if "valid_accuracy" in (record := json.loads(line))
    ]
    assert steps == [3, 6, 9]  # an epoch each
    assert json.loads((run / "config.json").read_text())["id2label"] == {"0": "negative", "1": "positive"}
    state = json.loads((run / "bertkit.json").read_text())
    assert (state["state"], state["task"], state["command_name"]) == ("finished", "sst2", "finetune")


def test_the_same_command_again_and_others(bertkit: Call, tiny: Path, sst2: Path) -> None:
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "2")
    first = bertkit(*command)
    before = (Path("runs/sst2/model.safetensors").read_bytes(), Path("runs/sst2/bertkit.json").read_bytes())
    again = bertkit(*command)
    assert (again.code, again.report["state"], again.metrics) == (0, "already finished", first.metrics)
    assert "Already finished" in again.err
    watched_differently = bertkit(*command, "--log-every", "1", "--keep-checkpoints", "5")
    assert watched_differently.report["state"] == "already finished"
    assert before == (Path("runs/sst2/model.safetensors").read_bytes(), Path("runs/sst2/bertkit.json").read_bytes())

    other = bertkit(*command, "--lr", "1e-3")
    assert (other.code, other.report["output"]) == (0, "runs/sst2-2")
    assert other.warned("output") == ["runs/sst2 is another run's, so this one goes to runs/sst2-2."]
    assert bertkit(*command, "--lr", "1e-3").report["state"] == "already finished"

    named = bertkit(*command, "--lr", "1e-3", "--seed", "7", "--output-dir", "runs/sst2")
    assert (named.code, named.report["exit_code"]) == (2, 2)
    message = named.report["error"]["message"]
    assert "optimizer.learning_rate" in message
    assert "run.seed: 42 before, 7 now" in message
    assert "budget.steps" not in message
    assert before[0] == Path("runs/sst2/model.safetensors").read_bytes()

    Path("runs/sst2/mine.txt").write_text("kept")
    anew = bertkit(*command, "--seed", "7", "--output-dir", "runs/sst2", "--overwrite")
    assert (anew.code, anew.report["state"]) == (0, "finished")
    assert Path("runs/sst2/mine.txt").read_text() == "kept"
    assert before[0] != Path("runs/sst2/model.safetensors").read_bytes()

    recipe = bertkit("finetune", "--recipe", "runs/sst2-2/settings.yaml", "--output-dir", "runs/again")
    assert recipe.code == 0
    assert Path("runs/again/model.safetensors").read_bytes() == Path("runs/sst2-2/model.safetensors").read_bytes()


def test_what_was_trained_is_what_is_scored_and_predicted(bertkit: Call, trained: Path, sst2: Path) -> None:
    kept = json.loads((trained / "metrics.json").read_text())
    assert kept["accuracy"] == 1.0
    scored = bertkit("eval", "sst2", "--model", trained, "--data", sst2)
    assert scored.metrics["accuracy"] == 1.0
    assert {name: kept[name] for name in scored.metrics} == scored.metrics


# Signals


def sending(monkeypatch: pytest.MonkeyPatch, number: int, *, step: int | None = None) -> None:
    """Sends this process a signal behind step ``step`` or, with None, in the first batch of the first validation."""
    if step is None:
        plain = scoring.Scorer._outputs
        sent: list[int] = []

        def outputs(self: Any, model: Any, batch: Any) -> Any:
            if not sent:
                sent.append(number)
                os.kill(os.getpid(), number)
            return plain(self, model, batch)

        monkeypatch.setattr(scoring.Scorer, "_outputs", outputs)
        return
    after = training.Course._after

    def behind(self: Any, report: Any) -> None:
        if report.step == step:
            os.kill(os.getpid(), number)
        after(self, report)

    monkeypatch.setattr(training.Course, "_after", behind)


@pytest.mark.parametrize(
    ("number", "code", "step"), [(signal.SIGINT, 130, 4), (signal.SIGTERM, 143, 4), (signal.SIGINT, 130, None)]
)
def test_a_signal_leaves_a_checkpoint_and_the_same_command_goes_on(
    bertkit: Call, tiny: Path, sst2: Path, number: int, code: int, step: int | None
) -> None:
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "12", "--eval-every", "6")
    whole = bertkit(*command, "--output", "whole")
    with pytest.MonkeyPatch.context() as patched:
        sending(patched, number, step=step)
        stopped = bertkit(*command, "--output", "parted")
    assert (stopped.code, stopped.report["exit_code"]) == (code, code)
    at = step or 6
    assert f"a checkpoint of step {at} was written" in stopped.report["error"]["message"]
    assert "same command again" in stopped.report["error"]["hint"]
    assert json.loads(Path("parted/bertkit.json").read_text())["state"] == "stopped"
    assert not Path("parted/model.safetensors").exists()
    assert [path.name for path in Path("parted/checkpoints").iterdir()] == [f"checkpoint-{at}"]
    resumed = bertkit(*command, "--output", "parted")
    assert resumed.code == 0
    assert f"Going on from parted/checkpoints/checkpoint-{at}" in resumed.err
    assert "new-head" not in {warning["kind"] for warning in resumed.report["warnings"]}
    assert Path("parted/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()
    timeless = {name: value for name, value in whole.metrics.items() if name != "train_seconds"}
    assert {name: value for name, value in resumed.metrics.items() if name != "train_seconds"} == timeless


def test_changed_data_or_settings_at_a_resume_are_refused_by_name(bertkit: Call, tiny: Path, sst2: Path) -> None:
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "6", "--output", "run")
    with pytest.MonkeyPatch.context() as patched:
        sending(patched, signal.SIGINT, step=2)
        assert bertkit(*command).code == 130
    held = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file() and path.name != "bertkit.json"}
    text = (sst2 / "train.tsv").read_text()
    (sst2 / "train.tsv").write_text(text.replace("good", "fine", 1))
    changed = bertkit(*command)
    assert (changed.code, changed.report["error"]["kind"]) == (2, "folder")
    assert "another training data" in changed.report["error"]["message"]
    (sst2 / "train.tsv").write_text(text)
    other = bertkit(*command, "--max-length", "64")
    assert other.code == 2
    assert "kind.max_length" in other.report["error"]["message"]
    assert held == {path: path.read_bytes() for path in held}
    assert bertkit(*command).code == 0


@pytest.mark.parametrize("since", ["before rows had texts", "before their absence was left out"])
def test_an_unfinished_run_of_tags_that_an_earlier_version_began(bertkit: Call, tiny: Path, since: str) -> None:
    """It goes on where its rows read as they did; else it is said that nobody's data have changed, and what to do."""
    known = ("id", "words", "tags", "columns", "document")
    if since != "before rows had texts":
        known += ("text", "offsets")

    def fingerprint(part: TaskPart) -> str:
        digest = hashlib.sha256()
        for row in part.rows:
            digest.update(repr([getattr(row, name) for name in known]).encode())
        return digest.hexdigest()[:16]

    for name, numbers in (("train.txt", range(16)), ("valid.txt", range(50, 58))):
        Path(name).write_text("\n".join(f"in O\ngood{n} B-{'LOC' if n % 2 else 'PER'}\n. O\n" for n in numbers))
    data = ("--train-file", "train.txt", "--validation-file", "valid.txt")
    command = ("finetune", "conll2003", "--model", tiny, *data, "--batch-size", "4", "--steps", "4", "--output", "run")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TaskPart, "fingerprint", fingerprint)
        sending(patched, signal.SIGTERM, step=2)
        assert bertkit(*command).code == 143
    again = bertkit(*command)
    if since == "before rows had texts":
        assert again.code == 0
        assert "Going on from run/checkpoints/checkpoint-2" in again.err
        return
    fault = again.report["error"]
    assert (again.code, fault["where"], fault["message"]) == (2, "run", "This run began with another training data.")
    assert "Where nothing was changed, an earlier version of bertkit read it otherwise" in fault["hint"]
    assert bertkit(*command, "--overwrite").code == 0  # as the hint says


# The best model


@pytest.fixture
def accuracies(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What each validation is to find, in turn."""
    wanted: list[float] = []
    plain = finetuning.all_scores

    def scores(*given: Any) -> Scores:
        real = plain(*given)
        return Scores(
            values=real.values | {"accuracy": wanted.pop(0)}, primary="accuracy", examples=real.examples, interval=real.interval
        )

    monkeypatch.setattr(finetuning, "all_scores", scores)
    yield wanted
    assert not wanted


@pytest.mark.parametrize("peak", [6, 4])
def test_the_best_model_outlives_the_rotation_and_is_the_folders(
    bertkit: Call, tiny: Path, sst2: Path, accuracies: list[float], peak: int
) -> None:
    accuracies += [0.9 if step == peak else 0.5 - step / 100 for step in range(2, 25, 2)]
    done = bertkit(
        "finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "24",
        "--save-every", "3", "--eval-every", "2", "--keep-checkpoints", "2", "--output", "run",
    )  # fmt: skip
    assert done.metrics["accuracy"] == 0.9
    kept = {path.name for path in Path("run/checkpoints").iterdir()}
    assert kept == {f"checkpoint-{peak}", "checkpoint-21", "checkpoint-24"}
    best = Path(f"run/checkpoints/checkpoint-{peak}/model.safetensors").read_bytes()
    assert Path("run/model.safetensors").read_bytes() == best
    assert best != Path("run/checkpoints/checkpoint-24/model.safetensors").read_bytes()
    assert json.loads(Path("run/metrics.json").read_text())["accuracy"] == 0.9


@pytest.mark.parametrize(("found", "kept"), [([0.9, 0.5, 0.4, 0.3], {5, 20}), ([0.1, 0.2, 0.3, 0.9], {20})])
def test_one_checkpoint_is_kept_and_the_best_beside_it(
    bertkit: Call, tiny: Path, sst2: Path, accuracies: list[float], found: list[float], kept: set[int]
) -> None:
    accuracies += found
    bertkit(
        "finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "20",
        "--save-every", "5", "--eval-every", "5", "--keep-checkpoints", "1", "--output", "run",
    )  # fmt: skip
    assert {path.name for path in Path("run/checkpoints").iterdir()} == {f"checkpoint-{step}" for step in kept}


def test_a_best_model_that_is_damaged_by_then_gives_way_to_the_last(
    bertkit: Call, tiny: Path, sst2: Path, accuracies: list[float]
) -> None:
    accuracies += [0.9, 0.5, 0.4]

    def cut(course: Any) -> None:
        path = Path("run/checkpoints/checkpoint-2/model.safetensors")
        path.write_bytes(path.read_bytes()[:-1])

    with at_step(4, cut):
        done = bertkit(
            "finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "6", "--eval-every", "2",
            "--output", "run",
        )  # fmt: skip
    assert done.metrics["accuracy"] == 0.4
    assert "The best model, of step 2, is lost" in done.warned("checkpoint")[0]
    last = Path("run/checkpoints/checkpoint-6/model.safetensors").read_bytes()
    assert Path("run/model.safetensors").read_bytes() == last


def test_no_row_left_to_train_on(bertkit: Call, make_model: MakeModel) -> None:
    asked = {"id": "1", "question": "who ?", "answers": [{"text": "fine", "answer_start": 3}]}
    data = {"version": "x", "data": [{"title": "t", "paragraphs": [{"context": "a fine b", "qas": [asked]}]}]}
    Path("train.json").write_text(json.dumps(data))
    files = ("--train-file", "train.json", "--validation-file", "train.json")
    refused = bertkit("finetune", "squad", "--model", make_model("span"), *files, "--output", "run")
    assert (refused.code, refused.report["error"]["kind"]) == (3, "data")
    assert "every training row was left out" in refused.report["error"]["message"]
    assert not Path("run").exists()


def test_the_last_model_on_request(bertkit: Call, tiny: Path, sst2: Path, accuracies: list[float]) -> None:
    accuracies += [0.9, 0.5]
    done = bertkit(
        "finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "4", "--eval-every", "2",
        "--keep-last", "--output", "run",
    )  # fmt: skip
    assert done.metrics["accuracy"] == 0.5
    last = Path("run/checkpoints/checkpoint-4/model.safetensors").read_bytes()
    assert Path("run/model.safetensors").read_bytes() == last


def test_evaluating_more_often_changes_nothing(bertkit: Call, tiny: Path, sst2: Path) -> None:
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--batch-size", "8", "--steps", "10", "--keep-last")
    assert bertkit(*command, "--eval-every", "1", "--output", "often").code == 0
    assert bertkit(*command, "--eval-every", "10", "--output", "once").code == 0
    assert Path("often/model.safetensors").read_bytes() == Path("once/model.safetensors").read_bytes()


# Labels and rows


def test_a_head_of_three_labels_and_a_task_of_two(bertkit: Call, make_model: MakeModel, sst2: Path) -> None:
    three = make_model("classification", ("a", "b", "c"))
    for command in ("eval", "predict"):
        refused = bertkit(command, "sst2", "--model", three, "--data", sst2, "--output", "out")
        assert (refused.code, refused.report["error"]["kind"]) == (3, "model")
        assert "3 labels" in refused.report["error"]["message"]
        assert "2 (negative, positive)" in refused.report["error"]["message"]
        assert not Path("out").exists()
    done = bertkit("finetune", "sst2", "--model", three, "--data", sst2, "--steps", "1")
    assert "training starts a new head" in done.warned("new-head")[0]
    config = json.loads(Path("runs/sst2/config.json").read_text())
    assert config["id2label"] == {"0": "negative", "1": "positive"}
    assert bertkit("predict", "sst2", "--data", sst2, "--output", "said.jsonl").code == 0
    assert {record["prediction"] for record in predictions(Path("said.jsonl"))} <= {"negative", "positive"}
    config = json.loads((three / "config.json").read_text())
    config |= {"num_labels": 3, "id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}}
    (three / "config.json").write_text(json.dumps(config))
    for command in ("finetune", "eval", "predict"):
        refused = bertkit(command, "sst2", "--model", three, "--data", sst2, "--output", "out")
        assert (refused.code, refused.report["error"]["kind"]) == (3, "model")
        assert "id2label" in str(refused.report["error"])


def test_mnli_answers_are_matched_by_name_whatever_their_order(bertkit: Call, make_model: MakeModel, tmp_path: Path) -> None:
    task = ("entailment", "neutral", "contradiction")
    words = {"entailment": "good", "neutral": "poor", "contradiction": "bad"}
    folder = tmp_path / "MNLI"
    folder.mkdir()
    rows = [f"{i}\t{words[task[i % 3]]} {i}\tthe {i} .\t{task[i % 3]}\n" for i in range(9)]
    for name in ("train.tsv", "dev_matched.tsv"):
        (folder / name).write_text("index\tsentence1\tsentence2\tgold_label\n" + "".join(rows))
    own = make_model("classification", ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))
    rigged = bertkit(
        "finetune", "mnli", "--model", own, "--data", folder, "--lr", "0.01", "--steps", "60", "--batch-size", "9",
        "--output", "rigged",
    )  # fmt: skip
    assert any("no validation_mismatched part" in message for message in rigged.warned("absent-part"))
    assert rigged.metrics["accuracy"] == 1.0  # of nine rows, by heart: the head that was there was trained on
    config = json.loads(Path("rigged/config.json").read_text())
    order = list(config["id2label"].values())
    assert [name.casefold() for name in order] == ["contradiction", "neutral", "entailment"]
    config["id2label"] = {"0": "CONTRADICTION", "1": "Neutral", "2": "ENTAILMENT"}
    config["label2id"] = {"CONTRADICTION": 0, "Neutral": 1, "ENTAILMENT": 2}
    Path("rigged/config.json").write_text(json.dumps(config))
    scored = bertkit("eval", "mnli", "--model", "rigged", "--data", folder)
    assert (scored.metrics["accuracy"], scored.metrics["examples"]) == (1.0, 9)
    assert scored.warned("label-order") == []
    # Names that say nothing: the task's order, in which contradiction and entailment now change places.
    generic = {f"LABEL_{i}": i for i in range(3)}
    Path("rigged/config.json").write_text(
        json.dumps(config | {"id2label": {str(i): name for name, i in generic.items()}, "label2id": generic})
    )
    scored = bertkit("eval", "mnli", "--model", "rigged", "--data", folder)
    assert scored.metrics["accuracy"] == pytest.approx(3 / 9)
    assert "LABEL_0 = entailment" in scored.warned("label-order")[0]


def test_cased_files_that_do_not_say_so(bertkit: Call, make_model: MakeModel, sst2: Path) -> None:
    model = make_model()
    vocabulary = (model / "vocab.txt").read_text().split("\n")
    vocabulary[-3:-1] = ["Hello", "hello"]
    (model / "vocab.txt").write_text("\n".join(vocabulary))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).unlink()
    command = ("finetune", "sst2", "--model", model, "--data", sst2, "--steps", "1")
    asked = bertkit(*command, "--output", "run")
    assert asked.code == 2
    assert "--cased" in str(asked.report["error"])
    assert "--uncased" in str(asked.report["error"])
    done = bertkit(*command, "--cased", "--output", "cased")
    assert done.code == 0
    assert json.loads(Path("cased/tokenizer_config.json").read_text())["do_lower_case"] is False
    from bertkit.corpus.wordpiece import load_wordpiece

    kept = load_wordpiece(Path("cased"))
    assert [kept.vocabulary[number] for number in kept.encode(["Hello"])[0]] == ["Hello"]
    assert bertkit("predict", "sst2", "--model", "cased", "--data", sst2, "--output", "said.jsonl").code == 0


def test_malformed_rows_are_skipped_counted_and_located(bertkit: Call, tiny: Path, tmp_path: Path, sst2: Path) -> None:
    lines = (sst2 / "train.tsv").read_text().splitlines()
    lines[10] = '"' + lines[10].replace("\t", '"\tmore\t')
    lines[20] = "only a text"
    lines[30] = '"' + lines[30]  # a quote is a character
    (sst2 / "train.tsv").write_text("\n".join(lines) + "\n")
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "1")
    done = bertkit(*command, "--output", "run")
    (message,) = done.warned("skipped-rows")
    assert message.startswith("2 rows were skipped: ")
    assert "train.tsv, line 11: 3 columns instead of 2" in message
    assert "train.tsv, line 21: 1 columns instead of 2" in message
    assert "78 training rows" in done.err
    strict = bertkit(*command, "--strict", "--output", "strict")
    assert (strict.code, strict.report["error"]["where"]) == (3, f"{sst2}/train.tsv, line 11")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cola_has_a_header_in_its_test_part_alone(bertkit: Call, tiny: Path, tmp_path: Path, end: str) -> None:
    folder = tmp_path / "CoLA"
    folder.mkdir()
    train = ["gj04\t1\t\tFirst sentence.", "gj04\t0\t*\tSecond.", ""]
    (folder / "train.tsv").write_text(end.join(train), newline="")
    (folder / "dev.tsv").write_text(end.join(train), newline="")
    (folder / "test.tsv").write_text(end.join(["index\tsentence", "0\tThird.", ""]), newline="")
    done = bertkit("finetune", "cola", "--model", tiny, "--data", folder, "--steps", "1")
    assert "2 training rows" in done.err
    assert bertkit("eval", "cola", "--data", folder).metrics["examples"] == 2
    gold = [record["gold"] for record in predictions(Path("runs/cola/evals/cola-validation/predictions.jsonl"))]
    assert gold == ["acceptable", "unacceptable"]
    assert bertkit("predict", "cola", "--data", folder, "--output", "said/said.jsonl").metrics == {"examples": 1}
    lines = Path("said/CoLA.tsv").read_text().splitlines()
    assert (len(lines), lines[0]) == (2, "index\tprediction")
    assert lines[1] in ("0\t0", "0\t1")


def test_the_body_is_the_models_and_is_trained(bertkit: Call, tiny: Path, sst2: Path) -> None:
    assert (
        bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "1", "--lr", "1e-9", "--output", "still").code
        == 0
    )
    assert bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, *QUICK, "--output", "moved").code == 0
    before, still, moved = (load_file(folder / "model.safetensors") for folder in (tiny, Path("still"), Path("moved")))
    body = [name for name in before if name.startswith("bert.")]
    assert len(body) > 20
    for name in body:
        assert abs(before[name] - still[name]).max() < 1e-7
    assert any(abs(before[name] - moved[name]).max() > 1e-2 for name in body)


def test_a_changed_file_is_not_already_finished(bertkit: Call, tiny: Path, sst2: Path) -> None:
    files = ("--train-file", sst2 / "train.tsv", "--validation-file", sst2 / "dev.tsv")
    command = ("finetune", "sst2", "--model", tiny, *files, "--steps", "1", "--output", "out")
    assert bertkit(*command).report["state"] == "finished"
    assert bertkit(*command).report["state"] == "already finished"
    with (sst2 / "train.tsv").open("a") as file:
        file.write("one more good film\t1\n")
    changed = bertkit(*command)
    assert (changed.code, changed.report["error"]["kind"]) == (2, "folder")
    assert "train.tsv has changed" in changed.report["error"]["message"]
