"""Runs that were stopped, killed or damaged, and the same command again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
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
    same_bits,
    start,
    steps,
)

from bertkit.training.checkpoint import open_checkpoint

# Several micro-batches a step, dropout as it is (0.1), an epoch of some 30 steps: 13 and 17 lie in its middle.
ARGUMENTS = "--steps 20 --micro-tokens 96 --save-every 10 --eval-every 10"


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The uninterrupted run; its checkpoints are of steps 10 and 20."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    done(*flags(corpus, folder, ARGUMENTS))
    return folder


@pytest.fixture
def part(whole: Path, tmp_path: Path) -> Path:
    """The same run as it was when a kill came behind its checkpoint of step 10."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "checkpoints" / "checkpoint-20")
    for name in ("model.safetensors", "config.json", "metrics.json", "README.md"):
        (folder / name).unlink()
    state = json.loads((folder / "bertkit.json").read_text(encoding="utf-8")) | {"state": "running"}
    (folder / "bertkit.json").write_text(json.dumps(state), encoding="utf-8")
    return folder


def equal(found: Path, whole: Path) -> None:
    """The logged losses of both, and all weights to the bit."""
    assert steps(found) == steps(whole)
    assert steps(found, "lr") == steps(whole, "lr")
    assert same_bits(found, whole)


@pytest.mark.slow
def test_kill_9_in_mid_epoch_and_the_same_command_again(whole: Path, corpus: Path, tmp_path: Path) -> None:  # C22
    """Killed in a process of its own, at no safe point; step 13 is logged and lies behind the last checkpoint."""
    commands = [[flags(corpus, tmp_path / "run", ARGUMENTS), 13, {"KILL": "1"}]]
    (tmp_path / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    program = str(Path(__file__).with_name("small_runs.py"))
    killed = end(start([str(tmp_path / "commands.json")], tmp_path, launcher=[program]), tmp_path)
    assert killed.code == -signal.SIGKILL, killed.err
    assert max(steps(tmp_path / "run")) >= 12
    assert checkpoints(tmp_path / "run") == [10]
    assert (tmp_path / "run" / "bertkit.lock").exists()  # of a process that is gone
    again = done(*flags(corpus, tmp_path / "run", ARGUMENTS))
    assert "Going on from" in again.err
    assert "(step 10)" in again.err
    equal(tmp_path / "run", whole)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_a_checkpoint_and_the_run_goes_on(
    whole: Path, corpus: Path, tmp_path: Path, number: int, code: int
) -> None:
    argv = flags(corpus, tmp_path / "run", ARGUMENTS)
    with at_step(7, lambda course: os.kill(os.getpid(), number)):
        stopped = call(*argv, "--json")
    assert stopped.code == code == stopped.object["exit_code"]
    assert checkpoints(tmp_path / "run") == [7]
    assert "checkpoint of step 7" in stopped.object["error"]["message"]
    assert json.loads((tmp_path / "run" / "bertkit.json").read_text(encoding="utf-8"))["state"] == "stopped"
    assert not (tmp_path / "run" / "model.safetensors").exists()
    done(*argv)
    equal(tmp_path / "run", whole)


def test_a_signal_in_the_middle_of_an_evaluation(
    whole: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertkit.jobs import pretrain

    real = pretrain.evaluate_losses

    def interrupted(*args: Any, **kinds: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*args, **kinds)

    argv = flags(corpus, tmp_path / "run", ARGUMENTS)
    for step in (10, 20):  # of the middle, and the last one
        with monkeypatch.context() as patch:
            patch.setattr(pretrain, "evaluate_losses", interrupted)
            assert call(*argv).code == 130
        assert checkpoints(tmp_path / "run")[-1] == step
        assert not (tmp_path / "run" / "metrics.json").exists()
    done(*argv)
    equal(tmp_path / "run", whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_text_is_read(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    from bertkit.jobs import building as room_of_text

    real = room_of_text.build_store

    def interrupted(*args: Any, **kinds: Any) -> Any:
        os.kill(os.getpid(), number)
        return real(*args, **kinds)

    monkeypatch.setattr(room_of_text, "build_store", interrupted)
    assert call(*flags(corpus, tmp_path / "new" / "run", ARGUMENTS)).code == 128 + number
    assert not (tmp_path / "new").exists()


def test_a_second_signal_stops_at_once(corpus: Path, tmp_path: Path) -> None:
    def twice(course: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it went on")

    argv = flags(corpus, tmp_path / "run", ARGUMENTS)
    with at_step(12, twice):
        assert call(*argv).code == 130
    assert checkpoints(tmp_path / "run") == [10]
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))
    assert not (tmp_path / "run" / "bertkit.lock").exists()


@pytest.mark.slow
def test_rates_and_moments_behind_a_stop_at_50_of_100(corpus: Path, tmp_path: Path) -> None:  # C23
    from safetensors.torch import load_file

    argv = "--steps 100 --lr 1e-4 --warmup 10 --save-every 51 --eval-every 100 --batch-size 2"
    with at_step(50, lambda course: course.console.stop.request(2)):
        assert call(*flags(corpus, tmp_path / "parts", argv)).code == 130
    with at_step(51, lambda course: course.console.stop.request(2)):
        assert call(*flags(corpus, tmp_path / "parts", argv)).code == 130
        assert call(*flags(corpus, tmp_path / "whole", argv)).code == 130
    assert steps(tmp_path / "parts", "lr")[51] == steps(tmp_path / "whole", "lr")[51] == pytest.approx(1e-4 * 50 / 91)
    one, other = (
        load_file(tmp_path / name / "checkpoints/checkpoint-51/training_state.safetensors") for name in ("parts", "whole")
    )
    assert one.keys() == other.keys()
    assert all(one[name].equal(other[name]) for name in one)
    # Adam's memory gone from the only checkpoint
    shutil.rmtree(tmp_path / "parts" / "checkpoints" / "checkpoint-50", ignore_errors=True)
    (only,) = (tmp_path / "parts" / "checkpoints").iterdir()
    (only / "training_state.safetensors").unlink()
    found = call(*flags(corpus, tmp_path / "parts", argv))
    assert found.code == 3
    assert "training_state.safetensors is missing" in found.err
    assert "--init-from" in found.err
    assert "--output" in found.err
    fresh = ["pretrain", "--corpus", str(corpus), "--init-from", str(only), "-o", str(tmp_path / "fresh")]
    done(*fresh, *["--steps", "1", "--max-length", "32", "--batch-size", "2"])


@pytest.mark.slow
def test_muon_goes_on_to_the_bit_from_memory_under_the_files_names(corpus: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    argv = "--steps 8 --save-every 4 --eval-every 8 --set optimizer.name=muon"
    done(*flags(corpus, tmp_path / "whole", argv))
    with at_step(4, lambda course: course.console.stop.request(2)):
        assert call(*flags(corpus, tmp_path / "parts", argv)).code == 130
    done(*flags(corpus, tmp_path / "parts", argv))
    equal(tmp_path / "parts", tmp_path / "whole")
    state = load_file(tmp_path / "whole" / "checkpoints" / "checkpoint-8" / "training_state.safetensors")
    query, words = "bert.encoder.layer.1.attention.self.query.weight", "bert.embeddings.word_embeddings.weight"
    assert state[f"exp_avg.{query}"].shape == (128, 128)
    assert f"exp_avg_sq.{query}" not in state
    assert state[f"exp_avg_sq.{words}"].shape == state[f"exp_avg.{words}"].shape == (300, 128)
    refused = call(*flags(corpus, tmp_path / "whole", argv.replace("muon", "adamw")))
    assert refused.code == 2
    assert "optimizer.name" in refused.err


def truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("damage", ["empty", "cut", "no state", "flipped"])
def test_a_damaged_last_checkpoint_is_passed_over(  # C25
    whole: Path, part: Path, corpus: Path, tmp_path: Path, damage: str
) -> None:
    last = part / "checkpoints" / "checkpoint-20"
    shutil.copytree(whole / "checkpoints" / "checkpoint-20", last)
    file = last / ("training_state.safetensors" if damage == "no state" else "model.safetensors")
    if damage == "no state":
        file.unlink()
    elif damage == "flipped":
        data = bytearray(file.read_bytes())
        data[-100] ^= 1
        file.write_bytes(data)
    else:
        truncate(file, 0 if damage == "empty" else file.stat().st_size // 2)
    argv = ["pretrain", "--corpus", str(corpus), "--init-from", str(last), "-o", str(tmp_path / "fresh"), "--steps", "1"]
    if damage != "no state":  # whose weights are whole
        explicit = call(*argv)
        assert explicit.code == 3
        assert file.name in explicit.err
        assert not (tmp_path / "fresh").exists()
    found = done(*flags(corpus, part, ARGUMENTS))
    assert "checkpoint-20 is not whole" in found.err
    assert file.name in found.err
    assert "(step 10)" in found.err
    equal(part, whole)
    assert open_checkpoint(last).step == 20


@pytest.mark.slow
def test_no_final_name_before_it_is_whole(whole: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C25 d, in one process: gone at any write of a save; ``tests/training`` kills processes at random moments."""
    from bertkit.training import checkpoint as room

    class Gone(BaseException):
        pass

    argv = flags(corpus, tmp_path / "run", ARGUMENTS)
    left = {"calls": 0}
    places = ("write_moments", "_write_json", "verify")
    reals = {name: getattr(room, name) for name in places}

    def counting(name: str) -> Any:
        def wrapped(*args: Any, **kinds: Any) -> Any:
            left["calls"] -= 1
            if left["calls"] == 0:
                raise Gone
            return reals[name](*args, **kinds)

        return wrapped

    for name in places:
        monkeypatch.setattr(room, name, counting(name))
    for left["calls"] in (1, 2, 3):
        with pytest.raises(Gone):
            run_raw(argv)
        for number in checkpoints(tmp_path / "run"):
            with monkeypatch.context() as patch:
                patch.setattr(room, "verify", reals["verify"])
                assert open_checkpoint(tmp_path / "run" / "checkpoints" / f"checkpoint-{number}").step == number
    left["calls"] = 10**6
    done(*argv)
    equal(tmp_path / "run", whole)


def run_raw(argv: list[str]) -> None:
    """Runs without the command line's net, as if the process were gone with the exception."""
    from bertkit.jobs import pretrain as room
    from bertkit.jobs.console import Console
    from bertkit.jobs.outcome import Outcome

    seen: list[Any] = []
    real = room.pretrain

    def see(settings: Any, console: Any) -> Outcome:
        seen.append(settings)
        return Outcome()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "pretrain", see)
        done(*argv)
    real(seen[0], Console(quiet=True))


# Other text, other tokenizer, other settings, another run


def test_changed_text_or_validation_text_is_refused_by_name(part: Path, corpus: Path, tmp_path: Path) -> None:
    for name in ("train.txt", "valid.txt"):
        (tmp_path / name).write_bytes(corpus.with_name(name).read_bytes())
    run = tmp_path / "mine"
    argv = flags(tmp_path / "train.txt", run, ARGUMENTS)
    with at_step(3, lambda course: course.console.stop.request(2)):
        assert call(*argv).code == 130
    for name, what in (("train.txt", "another text"), ("valid.txt", "another validation text")):
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(kept + b"\n\nOne more document. It is new.\nAnd it has three lines.\n")
        found = call(*argv)
        assert found.code == 2
        assert what in found.err
        (tmp_path / name).write_bytes(kept)
    assert checkpoints(run) == [3]


def test_a_bertkit_of_other_examples_is_refused_by_name(part: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checkpoints(part)
    monkeypatch.setattr("bertkit.jobs.pretrain.RULES", 1000)
    found = call(*flags(corpus, part, ARGUMENTS))
    assert found.code == 2
    assert "another version of bertkit's examples" in found.err
    assert checkpoints(part) == before


def test_a_changed_tokenizer_is_refused_by_name(whole: Path, corpus: Path, tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes((whole / "vocab.txt").read_bytes())
    argv = ["pretrain", "--corpus", str(corpus), "--tokenizer", str(vocabulary), "--uncased", "--size", "tiny", "--steps", "9"]
    argv += ["--max-length", "32", "--batch-size", "4", "-o", str(tmp_path / "run")]
    with at_step(2, lambda course: course.console.stop.request(2)):
        assert call(*argv).code == 130
    vocabulary.write_bytes((whole / "vocab.txt").read_bytes() + b"brandnew\n")
    found = call(*argv)
    assert found.code == 2
    assert "another" in found.err
    assert "tokenizer" in found.err


def test_intervals_and_workers_may_change_and_settings_may_not(part: Path, whole: Path, corpus: Path) -> None:
    refused = call(*flags(corpus, part, ARGUMENTS, "--lr 1e-3 --seed 7"))
    assert refused.code == 2
    assert "optimizer.learning_rate" in refused.err
    assert "run.seed" in refused.err
    done(*flags(corpus, part, "--steps 20 --micro-tokens 96 --save-every 7 --eval-every 3 --keep-checkpoints 1"))
    equal(part, whole)
    assert checkpoints(part)[-1] == 20
    assert not {7, 14} & set(checkpoints(part))


def test_overwrite_starts_anew_and_spares_what_no_run_made(part: Path, corpus: Path) -> None:
    (part / "notes.txt").write_text("mine", encoding="utf-8")
    done(*flags(corpus, part, "--steps 2 --overwrite"))
    assert (part / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert checkpoints(part) == [2]
    assert sorted(steps(part)) == [1, 2]


def test_two_runs_in_one_folder(corpus: Path, tmp_path: Path) -> None:
    def second(course: Any) -> None:
        found = call(*argv)
        assert found.code == 5
        assert socket.gethostname() in found.err
        assert f"process {os.getpid()}" in found.err

    argv = flags(corpus, tmp_path / "run", "--steps 2")
    with at_step(1, second):
        done(*argv)
    assert sorted(steps(tmp_path / "run")) == [1, 2]


def test_on_other_threads_the_run_goes_on_and_says_so(part: Path, corpus: Path) -> None:
    state = part / "checkpoints" / "checkpoint-10" / "state.json"
    before = json.loads(state.read_text(encoding="utf-8"))
    assert before["extra"]["machine"]["threads"] == 1
    from bertkit.training import files
    from bertkit.training.checkpoint import MANIFEST

    before["extra"]["machine"] |= {"threads": 7, "torch": "1.0"}
    state.write_text(json.dumps(before), encoding="utf-8")
    manifest = json.loads((state.parent / MANIFEST).read_text(encoding="utf-8"))
    manifest["files"]["state.json"] = {"size": state.stat().st_size, "sha256": files.digest(state)}
    (state.parent / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    told = done(*flags(corpus, part, ARGUMENTS), "--json").object
    (said,) = [each["message"] for each in told["warnings"] if each["kind"] == "machine"]
    assert "threads was 7, is 1" in said
    assert "torch was 1.0" in said


def test_a_run_that_goes_on_draws_no_epoch_that_is_over(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even to know how many steps the whole has: that was counted when it began."""
    from bertkit.batches.pretraining import PretrainingSource

    drawn: list[int] = []
    real = PretrainingSource.plan

    def plan(source: PretrainingSource, epoch: int, *more: Any) -> Any:
        if source.purpose == "training":
            drawn.append(epoch)
        return real(source, epoch, *more)

    argv = flags(corpus, tmp_path / "run", "--epochs 3 --batch-size 64 --eval-every 100")
    monkeypatch.setattr(PretrainingSource, "plan", plan)
    with at_step(2, lambda course: course.console.stop.request(2)):
        assert call(*argv).code == 130
    planned = json.loads((tmp_path / "run" / "bertkit.json").read_text(encoding="utf-8"))["planned_steps"]
    with at_step(planned // 3 + 2, lambda course: course.console.stop.request(2)):
        assert call(*argv).code == 130
    assert 0 in drawn
    drawn.clear()
    done(*argv)
    assert 0 not in drawn
    assert {1, 2} <= set(drawn)
    assert max(steps(tmp_path / "run")) == planned
