"""Several seeds, and a grid: trials are runs of their own, the best is kept, means are counted, a stopped sweep goes on."""

from __future__ import annotations

import io
import json
import signal
import statistics
from pathlib import Path
from typing import Any

import pytest
from job_tests import Call
from small_runs import at_step, same_bits

from bertkit.jobs.console import Console
from bertkit.jobs.swept import show
from bertkit.jobs.training import Course


@pytest.fixture
def command(tiny: Path, sst2: Path) -> tuple[Any, ...]:
    return ("finetune", "sst2", "--model", tiny, "--data", sst2, "--precision", "fp32", "--batch-size", "16")


def timeless(record: Any) -> Any:
    """A sweep's record without what the clock says."""
    if isinstance(record, dict):
        return {name: timeless(value) for name, value in record.items() if name != "train_seconds"}
    return [timeless(value) for value in record] if isinstance(record, list) else record


@pytest.mark.slow
def test_seeds_are_runs_of_their_own_and_the_best_is_kept(bertkit: Call, command: tuple[Any, ...], sst2: Path) -> None:
    flags = (*command, "--lr", "0.01", "--epochs", "2")
    done = bertkit(*flags, "--seeds", "1,2,3", "--output", "run")
    sweep, figures = done.report["sweep"], done.metrics
    trials = {each["name"]: each["figures"] for each in sweep["trials"]}
    assert list(trials) == ["seed-1", "seed-2", "seed-3"]
    for name in ("accuracy", "f1", "matthews"):
        values = [each[name] for each in trials.values()]
        assert figures[f"{name}_mean"] == pytest.approx(sum(values) / 3)
        assert figures[f"{name}_std"] == pytest.approx(statistics.stdev(values))
    assert figures["accuracy"] == max(each["accuracy"] for each in trials.values()) == trials[sweep["kept"]]["accuracy"]
    kept = Path("run/trials") / sweep["kept"]
    assert same_bits(Path("run"), kept)
    assert json.loads(Path("run/sweep.json").read_text()) == sweep
    assert not list(Path("run/trials").glob("*/checkpoints"))
    # Each is to the bit what it is alone, and the folder is a model as any run's.
    assert bertkit(*flags, "--seed", "2", "--output", "alone").code == 0
    assert same_bits(Path("alone"), Path("run/trials/seed-2"))
    scored = bertkit("eval", "sst2", "--model", "run")
    assert scored.metrics["accuracy"] == figures["accuracy"]
    assert "# run" in Path("run/README.md").read_text()
    # The same command again, the recipe that was left, and another one.
    again = bertkit(*flags, "--seeds", "1,2,3", "--output", "run")
    assert (again.report["state"], again.report["sweep"], again.metrics) == ("already finished", sweep, figures)
    assert bertkit("finetune", "--recipe", "run/settings.yaml", "--output", "run").report["state"] == "already finished"
    other = bertkit(*flags, "--seeds", "1,2", "--output", "run")
    assert other.code == 2
    assert "sweep.seeds: [1, 2, 3] before, [1, 2] now" in other.report["error"]["message"]


@pytest.mark.slow
def test_a_grid_with_seeds_prints_its_table_and_marks_who_did_not_learn(bertkit: Call, command: tuple[Any, ...]) -> None:
    flags = (*command, "--epochs", "6", "--lr", "1e-9,0.01", "--seeds", "1,2", "--output", "run")
    told = bertkit(*flags, plain=True)
    assert told.code == 0
    above, below = (part.splitlines() for part in told.out.split("\n\n"))
    assert above[0].split()[:3] == ["lr", "seed", "accuracy"]
    assert [line.split()[:2] for line in above[1:]] == [["1e-09", "1"], ["1e-09", "2"], ["0.01", "1"], ["0.01", "2"]]
    assert below[0].split()[0] == "lr"
    assert [line.split()[0] for line in below[1:]] == ["1e-09", "0.01"]
    assert below[1].endswith("0 of 2")
    sweep = bertkit(*flags).report["sweep"]
    assert sweep["constant"] == 0.5  # of 24 rows of dev half are positive
    for each, line in zip(sweep["trials"], above[1:], strict=True):
        assert each["learned"] == (each["figures"]["accuracy"] > 0.5) == ("did not learn" not in line)
    assert "did not learn" in told.err
    assert sweep["kept"].startswith("lr-0.01-")
    # Without seeds: each combination once, and no mean.
    done = bertkit(*command, "--epochs", "1,2", "--output", "grid")
    assert [each["values"] for each in done.report["sweep"]["trials"]] == [{"epochs": 1.0}, {"epochs": 2.0}]
    assert "accuracy_mean" not in done.metrics


@pytest.mark.slow
def test_a_sweep_that_was_stopped_goes_on(bertkit: Call, command: tuple[Any, ...]) -> None:
    flags = (*command, "--steps", "5", "--lr", "0.01", "--seeds", "1,2", "--save-every", "1")
    whole = bertkit(*flags, "--output", "whole").report["sweep"]
    seen: list[int] = []

    def stop_in_the_second(course: Course) -> None:
        seen.append(course.settings.run.seed)
        if len(seen) == 2:
            course.console.stop.request(signal.SIGTERM)

    with at_step(3, stop_in_the_second):
        stopped = bertkit(*flags, "--output", "parted")
    assert (stopped.code, seen) == (143, [1, 2])
    assert json.loads(Path("parted/bertkit.json").read_text())["state"] == "stopped"
    assert not Path("parted/model.safetensors").exists()
    first = Path("parted/trials/seed-1/model.safetensors").stat().st_mtime_ns
    went_on = bertkit(*flags, "--output", "parted")
    assert "Already finished: parted/trials/seed-1" in went_on.err
    assert "Going on from parted/trials/seed-2/checkpoints/checkpoint-3" in went_on.err
    assert timeless(went_on.report["sweep"]) == timeless(whole)
    assert Path("parted/trials/seed-1/model.safetensors").stat().st_mtime_ns == first
    assert same_bits(Path("parted"), Path("whole"))


def test_other_data_under_a_stopped_sweep_is_refused(bertkit: Call, command: tuple[Any, ...], sst2: Path) -> None:
    flags = (*command, "--steps", "3", "--seeds", "1,2", "--output", "run")

    def stop_in_the_second(course: Course) -> None:
        if course.settings.run.seed == 2:
            course.console.stop.request(signal.SIGINT)

    with at_step(2, stop_in_the_second):
        assert bertkit(*flags).code == 130
    (sst2 / "train.tsv").write_text((sst2 / "train.tsv").read_text().replace("good", "fine", 1))
    refused = bertkit(*flags)
    assert refused.code == 2
    assert "another training data" in refused.report["error"]["message"]


def test_a_trial_that_diverges_does_not_end_the_sweep(bertkit: Call, command: tuple[Any, ...]) -> None:
    flags = (*command, "--epochs", "3", "--set", "schedule.warmup=0", "--output", "run")
    done = bertkit(*flags, "--lr", "1e38,0.01")
    assert [each["state"] for each in done.report["sweep"]["trials"]] == ["diverged", "finished"]
    assert done.report["sweep"]["kept"] == "lr-0.01"
    assert "lr-1e+38 diverged" in done.warned("diverged")[0]
    alone = bertkit(*flags, "--lr", "1e37,1e38", "--overwrite")
    assert (alone.code, alone.report["error"]["kind"]) == (6, "diverged")
    again = bertkit(*flags, "--lr", "1e37,1e38")
    assert again.code == 6
    assert "The whole training will take" not in again.err  # what came to nothing is not tried again


def test_overwrite_removes_the_trials_and_nothing_else(bertkit: Call, command: tuple[Any, ...]) -> None:
    assert bertkit(*command, "--steps", "1", "--seeds", "1,2", "--output", "run").code == 0
    Path("run/trials/notes.txt").write_text("mine")
    assert bertkit(*command, "--steps", "1", "--output", "run", "--overwrite").code == 0
    assert [path.name for path in Path("run/trials").iterdir()] == ["notes.txt"]
    assert not Path("run/sweep.json").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--seeds", "1,1"), "sweep.seeds lists a value twice"),
        (("--seeds", "1,2", "--seed", "7"), "run.seed is 7"),
        (("--seeds", "1,x"), "sweep.seeds"),
        (("--lr", "1e-4,,1e-5"), "sweep.learning_rates"),
        (("--lr", "1e-4,-1"), "sweep.learning_rates"),
        (("--lr", "fast"), "optimizer.learning_rate"),
        (("--lr", "1e-4,1e-5", "--set", "optimizer.learning_rate=1"), "optimizer.learning_rate is 1"),
        (("--epochs", "1,2", "--steps", "3"), "no meaning where steps end every run"),
        (("--batch-size", "16,32", "--set", "batch.size=8"), "batch.size is 8"),
    ],
)
def test_lists_that_cannot_be_right(bertkit: Call, tiny: Path, sst2: Path, flags: tuple[str, ...], said: str) -> None:
    refused = bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, *flags, "--output", "run")
    assert refused.code == 2
    assert said in refused.report["error"]["message"]
    assert not Path("run").exists()


def test_a_table_of_one_of_squads_figures_has_points() -> None:
    trial = {"name": "seed-1", "values": {"seed": 1}, "state": "finished", "learned": True, "scores": {"exact": 25.0, "f1": 30.5}}
    page = io.StringIO()
    show({"trials": [trial], "combinations": [trial], "shown": ["f1"], "kept": "seed-1"}, Console(stdout=page, first=True))
    assert page.getvalue().split() == ["seed", "f1", "1", "30.50", "kept"]
