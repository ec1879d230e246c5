"""A run that was stopped and started again ends like one that never was."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy_training import EMPTY, KILLED, MUON, UNEVEN, Toy, ToyRun, ToySource, start_script, train

from bertkit.errors import CheckpointError
from bertkit.training.checkpoint import MOMENTS, newest_verified, resume_point


def log(folder: Path, rank: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"log-{rank}.jsonl").read_text().splitlines()]


def losses(folder: Path) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in log(folder)}


def test_mid_epoch_resume_is_equal_to_the_bit_with_dropout(tmp_path: Path) -> None:
    options: dict[str, Any] = {"source": ToySource(samples=12, batch=2, micro=1), "steps": 14, "dropout": 0.2}
    whole = ToyRun.start(tmp_path / "whole", **options)
    expected = {report.step: (report.loss, report.rate, report.batch) for report in whole.steps()}

    first = ToyRun.start(tmp_path / "parts", **options)
    for report in first.steps():
        if report.step == 8:  # the second batch of the second epoch
            first.save()
            break
    second = ToyRun.start(tmp_path / "parts", **options)
    assert (second.loop.state.epoch, second.loop.state.batch) == (1, 2)
    found = {report.step: (report.loss, report.rate, report.batch) for report in second.steps()}
    assert found == {step: values for step, values in expected.items() if step > 8}
    for name, each in whole.model.state_dict().items():
        assert torch.equal(each, second.model.state_dict()[name]), name


def test_rate_and_moments_of_step_51(tmp_path: Path) -> None:
    options: dict[str, Any] = {"source": ToySource(), "steps": 100, "rate": 1e-4, "warmup": 10}
    whole = ToyRun.start(tmp_path / "whole", **options)
    steps = whole.steps()
    rate = [next(steps).rate for _ in range(51)][-1]
    # Step 51 of 100 after a warm-up of 10: (101 - 51) / (101 - 10) of the peak.
    assert rate == pytest.approx(1e-4 * 50 / 91)
    parts = ToyRun.start(tmp_path / "parts", **options)
    for report in parts.steps():
        if report.step == 50:
            parts.save()
            break
    again = ToyRun.start(tmp_path / "parts", **options)
    assert next(again.steps()).rate == rate
    for (name, mine), theirs in zip(again.model.named_parameters(), whole.model.parameters(), strict=True):
        for key in ("step", "exp_avg", "exp_avg_sq"):
            if theirs in whole.optimizer.state:
                assert torch.equal(again.optimizer.state[mine][key], whole.optimizer.state[theirs][key]), (name, key)
        assert (mine in again.optimizer.state) == (theirs in whole.optimizer.state)


def test_missing_training_state_names_the_way_out(tmp_path: Path) -> None:
    run = ToyRun.start(tmp_path, source=ToySource(), steps=2)
    list(run.steps())
    run.save()
    folder = tmp_path / "checkpoints"
    (folder / "checkpoint-2" / MOMENTS).unlink()
    with pytest.raises(CheckpointError) as caught:
        resume_point(folder)
    assert caught.value.exit_code == 3
    assert MOMENTS in caught.value.message
    assert "--init-from" in str(caught.value.hint)
    assert "--output" in str(caught.value.hint)


@pytest.mark.slow
def test_kill_after_step_7_and_the_same_command_again(tmp_path: Path) -> None:
    train(tmp_path / "whole", **KILLED)
    killed = tmp_path / "killed"
    assert start_script(killed, "killed") == -signal.SIGKILL
    found, rejected = newest_verified(killed / "checkpoints")
    assert found is not None
    assert (found.step, rejected) == (7, [])
    assert start_script(killed, "again") == 0
    assert [line["step"] for line in log(killed)] == list(range(1, 16))
    assert losses(killed) == losses(tmp_path / "whole")
    one, other = (load_file(tmp_path / name / "final.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_several_processes_train_like_one(tmp_path: Path, several: tuple[int, Path]) -> None:
    """Batches of 7 give uneven shares; batches of 2 over three processes leave one always without a share."""
    processes, together = several
    for name, options in {"uneven": UNEVEN, "empty": EMPTY, "muon": MUON}.items():
        train(tmp_path / "one" / name, **options)
        lines, one = log(tmp_path / "one" / name), load_file(tmp_path / "one" / name / "final.safetensors")
        other = load_file(together / name / "final.safetensors")
        for rank in range(processes):
            for mine, theirs in zip(lines, log(together / name, rank), strict=True):
                assert theirs["loss"] == pytest.approx(mine["loss"], rel=1e-5)
                for key in ("step", "epoch", "lr", "tokens", "mlm_accuracy", "nsp_accuracy"):
                    assert theirs[key] == mine[key], key
        for key, each in one.items():
            assert (other[key] - each).abs().max() <= 1e-4 * each.abs().max(), key  # twelve steps of Adam apart
        assert other["unused.weight"].equal(Toy().unused.weight)  # no gradient anywhere: not even decay
    whole, parts = losses(together / "whole"), losses(together / "parts")
    assert sorted(parts) == list(range(1, 21))
    assert [parts[step] for step in range(11, 21)] == pytest.approx([whole[step] for step in range(11, 21)], abs=1e-6)
    one, other = (load_file(together / name / "final.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)
