"""Several processes: started by torchrun, by Accelerate, by ``--processes``; what they learn, say and come to."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_runs import (
    call,
    checkpoints,
    done,
    end,
    environment,
    flags,
    log,
    run_commands,
    same_bits,
    split,
    start,
    steps,
    told,
    torchrun,
    weights,
)

from bertkit.errors import ResourceError, UsageError
from bertkit.jobs.processes import wanted
from bertkit.jobs.signals import Stop

pytestmark = pytest.mark.slow
# Batches of 7 over two or three processes have uneven shares.
UNEVEN = "--steps 8 --batch-size 7 --micro-tokens 64 --set model.dropout=0 --eval-every 4"
ALONE = "--steps 5 --batch-size 2 --set model.dropout=0 --eval-every 5"
WHOLE = "--steps 20 --micro-tokens 64 --save-every 10 --eval-every 10"
ONE_STEP = "--steps 1 --set model.dropout=0 --warmup 0 --eval-every 1"
NO_TARGETS = "--objective mlm --batch-size 1 --steps 6 --vocab-size 20"


def short_text(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "short.txt"
    path.write_text("a b\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def several(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes did, one command after another."""
    folder = tmp_path_factory.mktemp("two")
    commands: list[tuple[list[str], int, dict[str, str]]] = [
        (flags(corpus, folder / "uneven", UNEVEN), 0, {}),
        (flags(corpus, folder / "one-step", ONE_STEP), 0, {}),
        (flags(short_text(folder), folder / "no-targets", NO_TARGETS), 0, {}),
        (flags(corpus, folder / "whole", WHOLE), 0, {}),
        (flags(corpus, folder / "parts", WHOLE), 13, {}),  # gone behind the checkpoint of 10, in the middle of the epoch
        (flags(corpus, folder / "parts", WHOLE), 0, {}),
        (flags(folder / "nothing.txt", folder / "refused", "--json"), 0, {}),
    ]
    run_commands(folder, commands, 2)
    return folder


def alike(one: Path, other: Path) -> None:
    """The same samples and rates, and the same losses to rounding."""
    mine, theirs = ([line for line in log(folder) if "loss" in line] for folder in (one, other))
    assert len(mine) == len(theirs) > 0
    for a, b in zip(mine, theirs, strict=True):
        assert [a[key] for key in ("step", "epoch", "lr", "tokens")] == [b[key] for key in ("step", "epoch", "lr", "tokens")]
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-5)
        assert b["mlm_loss"] == pytest.approx(a["mlm_loss"], rel=1e-5)
    validated = [[line["valid_mlm_loss"] for line in log(folder) if "valid_mlm_loss" in line] for folder in (one, other)]
    assert validated[1] == pytest.approx(validated[0], rel=1e-5)


def test_two_processes_learn_what_one_does(several: Path, corpus: Path, tmp_path: Path) -> None:
    done(*flags(corpus, tmp_path / "one", UNEVEN))
    alike(tmp_path / "one", several / "uneven")
    # Only the first process speaks, and both come to the same end.
    first, second = told(several, 0, 0), told(several, 0, 1)
    assert (first["code"], second["code"]) == (0, 0)
    assert "validation: mlm_loss" in first["err"]
    assert first["out"].startswith("mlm_loss")
    assert (second["out"], second["err"]) == ("", "")


def test_an_error_is_one_object_from_the_first(several: Path) -> None:
    first, second = told(several, 6, 0), told(several, 6, 1)
    assert (first["code"], second["code"]) == (4, 4)
    assert json.loads(first["out"])["exit_code"] == 4
    assert (second["out"], second["err"]) == ("", "")


def test_gradients_losses_and_weights_of_any_split(several: Path, corpus: Path, tmp_path: Path) -> None:  # C44
    done(*flags(corpus, tmp_path / "8x1", ONE_STEP, "--micro-tokens 4096"))
    done(*flags(corpus, tmp_path / "1x8", ONE_STEP, "--micro-tokens 16"))
    file = "checkpoints/checkpoint-1/training_state.safetensors"
    first = load_file(tmp_path / "8x1" / file)
    for folder in (tmp_path / "1x8", several / "one-step"):
        alike(tmp_path / "8x1", folder)
        other = load_file(folder / file)
        assert other.keys() == first.keys()
        checked = 0
        moved = weights(folder)
        for name, each in weights(tmp_path / "8x1").items():
            mean, other_mean = first[f"exp_avg.{name}"], other[f"exp_avg.{name}"]  # after one step a tenth of the gradient
            most = mean.abs().max()
            assert (other_mean - mean).abs().max() <= 1e-5 * max(most, 1e-6), name
            # Adam's first step is rate x g / (|g| + 1e-6): an error of 1e-5 x the largest gradient moves it by less than 1e-5 of
            # the rate where g² is above 1e-6 x that one. Smaller ones (of a key's bias, which moves no attention) are rounding.
            settled = (10 * mean) ** 2 >= 1e-6 * 10 * most
            apart = (moved[name] - each).abs() > 1e-5 * each.abs().max()
            assert not (apart & settled).any(), name
            checked += int(settled.sum())
        assert checked > sum(each.numel() for each in moved.values()) / 2


def test_a_share_without_targets(several: Path) -> None:  # C17
    assert told(several, 2, 0)["code"] == told(several, 2, 1)["code"] == 0
    assert sorted(steps(several / "no-targets")) == list(range(1, 7))
    assert all(math.isfinite(loss) for loss in steps(several / "no-targets").values())
    assert all(torch.isfinite(each).all() for each in weights(several / "no-targets").values())


def test_a_resume_of_two_processes_is_equal_to_the_bit(several: Path) -> None:  # C22
    assert [told(several, number, 0)["code"] for number in (3, 4, 5)] == [0, 1, 0]
    assert "(step 10)" in told(several, 5, 0)["err"]
    assert steps(several / "parts") == steps(several / "whole")
    assert same_bits(several / "parts", several / "whole")


def test_three_processes_learn_what_one_does(corpus: Path, tmp_path: Path) -> None:
    """Batches of 7 are shared unevenly; of batches of 2, one process always gets nothing."""
    commands = [(flags(corpus, tmp_path / "three", UNEVEN), 0, {}), (flags(corpus, tmp_path / "alone", ALONE), 0, {})]
    run_commands(tmp_path, commands, 3)
    done(*flags(corpus, tmp_path / "one", UNEVEN))
    alike(tmp_path / "one", tmp_path / "three")
    done(*flags(corpus, tmp_path / "two", ALONE))
    alike(tmp_path / "two", tmp_path / "alone")


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_launchers_of_others(corpus: Path, tmp_path: Path, launcher: str) -> None:
    words = [*torchrun(2), "-m", "bertkit"]
    if launcher == "accelerate":
        words = split("-m accelerate.commands.accelerate_cli launch --cpu --num_processes 2 --num_machines 1")
        words += split("--mixed_precision no --dynamo_backend no --main_process_port 0 -m bertkit")
    found = end(start(flags(corpus, tmp_path / "run", ONE_STEP, "--json"), tmp_path, launcher=words), tmp_path)
    assert found.code == 0, found.err
    assert found.object["state"] == "finished"
    done(*flags(corpus, tmp_path / "one", ONE_STEP))
    alike(tmp_path / "one", tmp_path / "run")


def processes_of(parent: int) -> list[int]:
    """The processes that ``parent`` started."""
    return [int(each) for each in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def wait_for(what: Path, process: Any) -> None:
    until = time.monotonic() + 120
    while not what.exists():
        assert process.poll() is None, "it ended before it came so far"
        assert time.monotonic() < until
        time.sleep(0.02)


def test_processes_are_started_stopped_and_go_on(corpus: Path, tmp_path: Path) -> None:
    """C51 and C52: streams to files, workers beside two processes, three epochs, Ctrl-C to the starting process alone."""
    plain = "--epochs 3 --batch-size 48 --save-every 1 --eval-every 100 --processes 2 --json"
    process = start(flags(corpus, tmp_path / "run", plain, "--workers 1"), tmp_path / "first", TOKENIZERS_PARALLELISM="")
    wait_for(tmp_path / "run" / "checkpoints" / "checkpoint-2", process)
    process.send_signal(signal.SIGINT)
    stopped = end(process, tmp_path / "first")
    assert stopped.code == 130, stopped.err
    assert stopped.object["exit_code"] == 130
    reached = checkpoints(tmp_path / "run")[-1]
    process = start(flags(corpus, tmp_path / "run", plain, "--workers 4"), tmp_path / "again", TOKENIZERS_PARALLELISM="true")
    again = end(process, tmp_path / "again")
    assert again.code == 0, again.err
    assert again.object["state"] == "finished"
    assert f"(step {reached})" in again.err
    for found in (stopped, again):
        assert "\r" not in found.out + found.err
        assert "\x1b" not in found.err
        assert "fork" not in found.err
        assert "Warning" not in found.err
        assert found.err.count("Vocabulary: 300 entries") == 1
    assert max(line["epoch"] for line in log(tmp_path / "run") if "epoch" in line) == 2


def test_a_process_that_is_killed_is_named_and_the_run_goes_on(corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "run", "--steps 4000 --save-every 2 --eval-every 4000 --processes 2 --json")
    process = start(argv, tmp_path / "first")
    wait_for(tmp_path / "run" / "checkpoints" / "checkpoint-2", process)
    second = next(
        child for child in processes_of(process.pid) if b"LOCAL_RANK=1\0" in Path(f"/proc/{child}/environ").read_bytes()
    )
    began = time.monotonic()
    os.kill(second, signal.SIGKILL)
    found = end(process, tmp_path / "first", timeout=90)
    assert time.monotonic() - began < 60
    assert found.code == 5, found.err
    assert found.object["exit_code"] == 5
    assert "Process 1 was ended by SIGKILL" in found.err
    again = call(*flags(corpus, tmp_path / "run", "--steps 4000 --save-every 2 --eval-every 4000 --lr 1"))
    assert again.code == 2  # the lock of the killed is no obstacle: what differs is


# What is asked for


def test_how_many_are_wanted() -> None:
    assert wanted(None, {}) == 1
    assert wanted("1", {}) == 1
    assert wanted("3", {}) == 3
    with pytest.raises(ResourceError, match="100000 processes are asked for"):
        wanted("100000", {})
    assert wanted("auto", {}) == max(1, torch.cuda.device_count())
    for wrong in ("0", "-1", "two", "1.5", ""):
        with pytest.raises(UsageError, match="--processes"):
            wanted(wrong, {})
    assert wanted("2", {"WORLD_SIZE": "2"}) == 1  # the launcher has started them
    assert wanted("auto", {"WORLD_SIZE": "2"}) == 1
    with pytest.raises(ResourceError, match="launcher started 2"):
        wanted("4", {"WORLD_SIZE": "2"})


def test_wrong_usage_starts_nothing(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.jobs.processes.subprocess.Popen", lambda *_, **__: pytest.fail("started"))
    assert call(*flags(corpus, tmp_path / "run", "--steps none --processes 2")).code == 2
    assert call(*flags(corpus, tmp_path / "run", "--processes several --json")).object["exit_code"] == 2


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([130, 130], 130), ([2, 2], 2), ([0, 5], 5), ([5, -9], 5), ([0, -9], 5), ([143, 5], 143)]
)
def test_the_code_of_the_whole(codes: list[int], code: int) -> None:
    from bertkit.jobs.processes import _answer

    said: list[str] = []
    assert _answer(codes, said.append) == code
    assert any("Process 1 was ended by SIGKILL" in each for each in said) == (-9 in codes)


def test_the_first_one_killed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertkit.jobs import processes

    monkeypatch.setattr(processes, "_start", lambda *_: _Dead())
    with pytest.raises(ResourceError, match="Process 0 was ended by SIGKILL"):
        processes.start([], 2, Stop(), lambda text: None)


class _Dead:
    returncode = -9

    def poll(self) -> int:
        return self.returncode


def test_the_environment_of_other_processes_is_plain() -> None:
    assert "RANK" not in environment()


def test_who_waits_for_a_lost_process_is_ended_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertkit.jobs import lost
    from bertkit.jobs.console import Console

    left: list[int] = []
    monkeypatch.setattr(lost.os, "_exit", left.append)
    out, err = io.StringIO(), io.StringIO()
    error = ResourceError("Process 1 has given no sign of life.", hint="Again.")
    lost.leave(Console(json=True, stdout=out, stderr=err, first=True), error, 0)
    lost.leave(Console(json=True, stdout=out, stderr=err, first=False), error, 1)
    assert left == [5, 5]
    assert json.loads(out.getvalue())["exit_code"] == 5
    assert err.getvalue().splitlines()[::2] == [f"Error: {error.message}", f"[process 1] Error: {error.message}"]
