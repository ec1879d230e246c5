"""Pretraining at one length after another: the change, and runs that were stopped before, at and behind it."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_runs import (
    at_step,
    call,
    checkpoints,
    done,
    end,
    flags,
    log,
    same_bits,
    start,
    torchrun,
)

# 0.6 of 20 steps: the change comes behind step 12; batches of 8 sequences, then of 4.
PHASES = "--phases 16:0.6,32:0.4"
ARGUMENTS = f"{PHASES} --steps 20 --micro-tokens 96 --save-every 100 --eval-every 100"
PROGRAM = str(Path(__file__).with_name("small_runs.py"))


def halt(course: Any) -> None:
    course.console.stop.request(2)


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that was never stopped."""
    folder = tmp_path_factory.mktemp("phases") / "run"
    done(*flags(corpus, folder, ARGUMENTS))
    return folder


def changes(folder: Path) -> list[dict[str, Any]]:
    """The lines of the log that tell of a new phase."""
    return [line for line in log(folder) if "phase" in line and "loss" not in line]


def equal(found: Path, whole: Path) -> None:
    """The logged losses and rates of both, the change, and all weights to the bit."""
    for key in ("loss", "lr", "epoch", "batch", "phase", "max_length", "tokens"):
        assert at_steps(found, key) == at_steps(whole, key)
    assert changes(found) == changes(whole)
    assert same_bits(found, whole)


def at_steps(folder: Path, key: str) -> list[Any]:
    """One value of each training step, all of which are logged."""
    return [line[key] for line in log(folder) if "loss" in line]


def test_the_log_shows_length_and_phase(whole: Path) -> None:
    assert at_steps(whole, "phase") == [1] * 12 + [2] * 8
    assert at_steps(whole, "max_length") == [16] * 12 + [32] * 8
    assert at_steps(whole, "epoch") == [0] * 12 + [1] * 8
    assert at_steps(whole, "batch") == [*range(1, 13), *range(1, 9)]
    assert changes(whole) == [{"step": 12, "epoch": 1, "batch": 0, "phase": 2, "max_length": 32}]
    one_schedule = [n / 2 for n in (1, 2)] + [(21 - n) / 19 for n in range(3, 21)]  # a warm-up of 0.1, once
    assert at_steps(whole, "lr") == pytest.approx([max(at_steps(whole, "lr")) * factor for factor in one_schedule])
    assert "| phases | 16:0.6,32:0.4 |" in (whole / "README.md").read_text(encoding="utf-8")


def test_what_is_said_of_it(corpus: Path, tmp_path: Path) -> None:
    found = done(*flags(corpus, tmp_path / "run", f"{PHASES} --steps 5 --eval-every 5"))
    assert "60 % of the steps with L = 16 in batches of 8, then 40 % of the steps with L = 32 in batches of 4" in found.err
    assert "validation with L = 32" in found.err
    assert "Step 3: sequences are of up to 32 tokens from here on." in found.err
    assert "L 32  mlm" in found.err
    single = done(*flags(corpus, tmp_path / "single", "--steps 1"))
    assert "L = 32, batches of 8" in single.err
    assert "phase" not in log(tmp_path / "single")[0]


def test_what_the_model_sees(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bertkit.tasks.models import TaskModel

    seen: list[tuple[bool, int, int]] = []
    forward = TaskModel.forward

    def watched(self: Any, batch: Any) -> Any:
        seen.append((self.training, len(batch.packed.boundaries) - 1, batch.packed.longest))
        return forward(self, batch)

    monkeypatch.setattr(TaskModel, "forward", watched)
    done(*flags(corpus, tmp_path / "run", f"{PHASES} --steps 10 --eval-every 5 --set device.threads=1"))
    trained = [each for each in seen if each[0]]
    assert [size for _, size, _ in trained] == [8] * 6 + [4] * 4
    assert max(longest for *_, longest in trained[:6]) <= 16
    assert 16 < max(longest for *_, longest in trained[6:]) <= 32
    validated = [each for each in seen if not each[0]]
    half = len(validated) // 2
    assert validated[:half] == validated[half:]  # before the change and behind it: the same, at the last length
    assert 16 < max(longest for *_, longest in validated) <= 32


@pytest.mark.parametrize("stops", [(5,), (12,), (16,), (3, 12, 13)])
def test_stopped_before_at_and_behind_the_change(whole: Path, corpus: Path, tmp_path: Path, stops: tuple[int, ...]) -> None:
    argv = flags(corpus, tmp_path / "run", ARGUMENTS)
    for step in stops:
        with at_step(step, halt):
            assert call(*argv).code == 130
        assert checkpoints(tmp_path / "run")[-1] == step
    done(*argv)
    equal(tmp_path / "run", whole)


def test_on_one_checkpoint_of_the_changing_step(whole: Path, corpus: Path, tmp_path: Path) -> None:
    """Gone behind the change, with a checkpoint that was written before it: the change comes again, and is told once."""
    argv = flags(corpus, tmp_path / "run", ARGUMENTS.replace("--save-every 100", "--save-every 12"))
    with at_step(15, gone_now), pytest.raises(KeyboardInterrupt):
        call_raw(argv)
    assert checkpoints(tmp_path / "run") == [12]
    assert len(changes(tmp_path / "run")) == 1
    done(*argv)
    equal(tmp_path / "run", whole)


def gone_now(course: Any) -> None:
    raise KeyboardInterrupt


def call_raw(argv: list[str]) -> None:
    """Without the command line's net: as if the process were gone."""
    from bertkit.jobs import pretrain as room
    from bertkit.jobs.console import Console
    from bertkit.jobs.outcome import Outcome

    seen: list[Any] = []
    real = room.pretrain
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "pretrain", lambda settings, console: seen.append(settings) or Outcome())
        done(*argv)
    real(seen[0], Console(quiet=True))


@pytest.mark.slow
@pytest.mark.parametrize(("every", "kill"), [(10, 11), (10, 14), (12, 13), (13, 17)])
def test_kill_9(whole: Path, corpus: Path, tmp_path: Path, every: int, kill: int) -> None:
    argv = flags(corpus, tmp_path / "run", ARGUMENTS.replace("--save-every 100", f"--save-every {every}"))
    (tmp_path / "commands.json").write_text(json.dumps([[argv, kill, {"KILL": "1"}]]), encoding="utf-8")
    killed = end(start([str(tmp_path / "commands.json")], tmp_path, launcher=[PROGRAM]), tmp_path)
    assert killed.code == -signal.SIGKILL, killed.err
    assert checkpoints(tmp_path / "run") == [every]
    done(*argv)
    equal(tmp_path / "run", whole)


def broken_loss(at: set[tuple[int, int]]) -> Any:
    """``Loop._accumulate`` whose loss is no number for the batches that end at these (epoch, batch)."""
    from bertkit.training.loop import Loop

    real = Loop._accumulate

    def accumulate(loop: Loop, place: Any, batches: Any, counts: Any) -> Any:
        sums, failed = real(loop, place, batches, counts)
        return (sums * math.nan if (place.epoch, place.batch) in at else sums), failed

    return accumulate


def test_steps_that_are_left_out_at_the_change(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each uses up a batch, moves no step, and is a line of the log, however rarely one is due."""
    from bertkit.training.loop import Loop

    monkeypatch.setattr(Loop, "_accumulate", broken_loss({(0, 4), (1, 1), (1, 2)}))
    argv = ARGUMENTS.replace("--eval-every 100", "--eval-every 100 --log-every 50")
    done(*flags(corpus, tmp_path / "whole", argv))
    left_out = [line for line in log(tmp_path / "whole") if line.get("left_out")]
    assert [(line["step"], line["epoch"], line["batch"]) for line in left_out] == [(3, 0, 4), (12, 1, 1), (12, 1, 2)]
    assert [line["phase"] for line in left_out] == [1, 2, 2]
    for step in (12, 13):
        folder = tmp_path / f"at-{step}"
        with at_step(step, halt):
            assert call(*flags(corpus, folder, argv)).code == 130
        done(*flags(corpus, folder, argv))
        assert same_bits(folder, tmp_path / "whole")
        again = [line for line in log(folder) if line.get("left_out")]
        assert [(line["step"], line["epoch"], line["batch"]) for line in again] == [(3, 0, 4), (12, 1, 1), (12, 1, 2)]
        assert len(changes(folder)) == 1


def test_three_phases_one_of_them_twice(corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "run", "--phases 16:0.4,32:0.2,16:0.4 --steps 10 --eval-every 100")
    with at_step(7, halt):
        assert call(*argv).code == 130
    done(*argv)
    assert at_steps(tmp_path / "run", "max_length") == [16] * 4 + [32] * 2 + [16] * 4
    assert at_steps(tmp_path / "run", "epoch") == [0] * 4 + [1] * 2 + [2] * 4


def test_shares_of_the_planned_steps_of_epochs(corpus: Path, tmp_path: Path) -> None:
    found = done(
        *flags(corpus, tmp_path / "run", "--phases 16:0.5,32:0.5 --epochs 0.1 --batch-size 32 --eval-every 100", "--json")
    )
    planned = found.object["metrics"]["steps"]
    assert planned > 2
    of_first = math.floor(planned / 2 + 0.5)
    assert at_steps(tmp_path / "run", "max_length") == [16] * of_first + [32] * (planned - of_first)


def test_a_phase_that_gets_no_step_is_said(corpus: Path, tmp_path: Path) -> None:
    found = done(*flags(corpus, tmp_path / "run", "--phases 16:0.9,32:0.1 --steps 2 --eval-every 2"))
    assert "The phase 32:0.1 gets none of the 2 steps" in found.err
    assert at_steps(tmp_path / "run", "max_length") == [16, 16]


# The clock


def test_shares_of_the_time(corpus: Path, tmp_path: Path) -> None:
    """Stopped in its first phase, it goes on in it: the change comes when the clock's share has passed."""
    argv = flags(corpus, tmp_path / "run", "--phases 16:0.5,32:0.5 --max-minutes 0.06 --eval-every 1000 --save-every 1000")
    with at_step(3, halt):
        assert call(*argv).code == 130
    done(*argv)
    lines = [line for line in log(tmp_path / "run") if "loss" in line]
    lengths = [line["max_length"] for line in lines]
    assert lengths == sorted(lengths)
    assert set(lengths) == {16, 32}
    (change,) = changes(tmp_path / "run")
    last = max(line["seconds"] for line in lines if line["phase"] == 1)
    assert 0.25 * 3.6 < last < 0.75 * 3.6  # half of the time but what the end takes, to a step
    before = max(line["epoch"] for line in lines if line["phase"] == 1)
    assert change["epoch"] == before + 1 == min(line["epoch"] for line in lines if line["phase"] == 2)


def test_stopped_in_the_second_phase_of_the_clock(corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "run", "--phases 16:0.3,32:0.7 --max-minutes 0.05 --eval-every 1000 --save-every 1000")

    def second(course: Any) -> None:
        if course.source.phase == 1:
            halt(course)

    with every_step(second):
        assert call(*argv).code == 130
    before = [line for line in log(tmp_path / "run") if "phase" in line]
    assert before[-1]["phase"] == 2
    done(*argv)
    after = [line for line in log(tmp_path / "run") if "phase" in line]
    assert after[: len(before)] == before
    assert {line["phase"] for line in after[len(before) :]} == {2}
    positions = [(line["epoch"], line["batch"]) for line in after]
    assert positions == sorted(set(positions))


def every_step(what: Any) -> Any:
    from contextlib import contextmanager

    from bertkit.jobs.training import Course

    @contextmanager
    def patched() -> Iterator[None]:
        before = Course._after

        def after(self: Course, report: Any) -> None:
            before(self, report)
            what(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Course, "_after", after)
            yield

    return patched()


# Processes


@pytest.mark.slow
def test_two_processes(corpus: Path, tmp_path: Path) -> None:
    """The samples of one, also stopped at the change; and by the clock all of them change at the same step."""
    plain = ARGUMENTS + " --set model.dropout=0"
    by_clock = "--phases 16:0.5,32:0.5 --max-minutes 0.1 --eval-every 1000 --save-every 1000"
    stopped = flags(corpus, tmp_path / "two", plain.replace("--save-every 100", "--save-every 12"))
    commands: list[Any] = [(stopped, 13, {}), (stopped, 0, {}), (flags(corpus, tmp_path / "clock", by_clock), 0, {})]
    (tmp_path / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    found = end(start([str(tmp_path / "commands.json")], tmp_path, launcher=[*torchrun(2), PROGRAM]), tmp_path)
    assert found.code == 0, found.err
    done(*flags(corpus, tmp_path / "one", plain))
    for key in ("step", "epoch", "batch", "lr", "tokens", "phase"):
        assert at_steps(tmp_path / "two", key) == at_steps(tmp_path / "one", key)
    assert at_steps(tmp_path / "two", "loss") == pytest.approx(at_steps(tmp_path / "one", "loss"), rel=1e-5)
    assert len(changes(tmp_path / "two")) == 1
    assert sorted(set(at_steps(tmp_path / "clock", "max_length"))) == [16, 32]


# Settings


def test_lengths_that_contradict_themselves(corpus: Path, tmp_path: Path) -> None:
    wrong = call(*flags(corpus, tmp_path / "run", "--phases 16:0.6,64:0.4 --steps 5"))  # --max-length 32 stands beside
    assert wrong.code == 2
    assert "--max-length" in wrong.err
    assert "--phases" in wrong.err
    assert "64 tokens at most" in wrong.err
    shares = call(*flags(corpus, tmp_path / "run", "--phases 16:0.6,32:0.6 --steps 5"))
    assert shares.code == 2
    assert "come to 1.2" in shares.err
    assert not (tmp_path / "run").exists()


def test_lengths_beyond_the_positions(whole: Path, corpus: Path, tmp_path: Path) -> None:
    argv = ["pretrain", "--corpus", str(corpus), "--init-from", str(whole), "--phases", "32:0.9,1024:0.1", "--steps", "2"]
    found = call(*argv, "-o", str(tmp_path / "run"))
    assert found.code == 2
    assert "1024" in found.err
    assert "512 positions" in found.err
    longer = ["pretrain", "--corpus", str(corpus), "--phases", "16:0.5,640:0.5", "--steps", "2", "--size", "tiny", "--batch-size"]
    done(*longer, "40", "--vocab-size", "300", "--eval-every", "2", "-o", str(tmp_path / "longer"))
    config = json.loads((tmp_path / "longer" / "config.json").read_text(encoding="utf-8"))
    assert config["max_position_embeddings"] == 640


def test_the_resolved_settings_make_the_run_again(whole: Path, tmp_path: Path, corpus: Path) -> None:
    text = (whole / "settings.yaml").read_text(encoding="utf-8")
    (tmp_path / "again.yaml").write_text(text, encoding="utf-8")
    done("pretrain", "--recipe", str(tmp_path / "again.yaml"), "-o", str(tmp_path / "again"))
    assert same_bits(tmp_path / "again", whole)
    same = done("pretrain", "--recipe", str(tmp_path / "again.yaml"), "-o", str(whole), "--json")
    assert same.object["state"] == "already finished"
    (tmp_path / "text.yaml").write_text("phases: 16:0.6,32:0.4\n", encoding="utf-8")
    argv = [word for word in flags(corpus, whole, ARGUMENTS) if word not in PHASES.split()]
    assert done(*argv, "--recipe", str(tmp_path / "text.yaml"), "--json").object["state"] == "already finished"
    refused = call(*flags(corpus, whole, ARGUMENTS.replace("16:0.6,32:0.4", "16:0.5,32:0.5")))
    assert refused.code == 2
    assert "phases" in refused.err


def test_memory_that_runs_out_in_the_second_phase(
    whole: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertkit.training.loop import Loop

    real, left = Loop._accumulate, [1]

    def accumulate(loop: Loop, at: Any, batches: Any, counts: Any) -> Any:
        if at.epoch == 1 and left[0]:
            left[0] = 0
            import torch

            return torch.zeros(3, len(loop._names)), True
        return real(loop, at, batches, counts)

    monkeypatch.setattr(Loop, "_accumulate", accumulate)
    found = done(*flags(corpus, tmp_path / "run", ARGUMENTS))
    assert "48 tokens instead of 96" in found.err
    assert at_steps(tmp_path / "run", "batch") == at_steps(whole, "batch")
    assert at_steps(tmp_path / "run", "loss") == pytest.approx(at_steps(whole, "loss"), abs=0.05)  # dropout is drawn otherwise
