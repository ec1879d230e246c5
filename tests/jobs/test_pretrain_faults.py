"""What goes wrong while a pretraining runs: time, memory, disk, numbers, and which checkpoints are left of it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import at_step, call, checkpoints, documents, done, end, flags, log, same_bits, start, steps, write

from bertkit.jobs import memory
from bertkit.model.config import EncoderConfig
from bertkit.training.checkpoint import newest_verified
from bertkit.training.report import PartSum


def said(told: Any, kind: str) -> list[str]:
    return [each["message"] for each in told["warnings"] if each["kind"] == kind]


def halt(course: Any) -> None:
    course.console.stop.request(2)


# Numbers


def test_a_loss_that_is_no_number_ends_with_exit_6(corpus: Path, tmp_path: Path) -> None:
    found = call(*flags(corpus, tmp_path / "run", "--steps 40 --lr 1e30 --warmup 0 --save-every 1 --json"))
    assert found.code == found.object["exit_code"] == 6
    assert found.object["error"]["kind"] == "diverged"
    assert "not finite" in found.err  # said when it began, and not at each step
    assert found.err.count("was not finite") == 1
    assert checkpoints(tmp_path / "run") == [1]
    assert newest_verified(tmp_path / "run" / "checkpoints")[1] == []
    assert not (tmp_path / "run" / "model.safetensors").exists()
    state = json.loads((tmp_path / "run" / "bertkit.json").read_text(encoding="utf-8"))
    assert state["state"] == "failed"
    assert state["error"] == {"kind": "diverged", "message": found.object["error"]["message"]}
    assert state["ended"] >= state["started"]
    skipped = [line["skipped"] for line in log(tmp_path / "run") if "loss" in line]
    assert skipped[-1] == 10
    assert [line["loss"] for line in log(tmp_path / "run") if "loss" in line][1:] == [None] * 10


def test_run_health_reaches_the_notices(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.training.health.ENOUGH_TARGETS", 1)
    monkeypatch.setattr("bertkit.training.health.NEAR", 0.5)  # 12 small batches lie that far from the mean of all words
    told = done(*flags(corpus, tmp_path / "run", "--steps 12 --lr 1e-12 --json")).object
    assert any("word frequencies alone" in each for each in said(told, "health"))


# Time


def test_the_forecast_after_five_steps_offers_a_smaller_run(corpus: Path, tmp_path: Path) -> None:
    with at_step(4, lambda course: None):
        short = done(*flags(corpus, tmp_path / "short", "--steps 6"))
    assert "The whole training will take about" in short.err
    assert "12 hours" not in short.err
    with at_step(6, halt):
        long = call(*flags(corpus, tmp_path / "long", "--steps 90000000"))
    assert "above 12 hours" in long.err
    assert f"bertkit pretrain --corpus {corpus} --size tiny --max-minutes 60" in long.err


@pytest.mark.slow
def test_minutes_end_on_time_with_validation_and_saving(corpus: Path, tmp_path: Path) -> None:
    began: list[float] = []
    budget = "--max-minutes 0.1 --eval-every 2s --save-every 2s --set inputs.validation_sequences=200"
    with at_step(1, lambda course: began.append(time.monotonic())):
        done(*flags(corpus, tmp_path / "run", budget))
    seconds = time.monotonic() - began[0]
    assert 4 < seconds < 6 + 2  # the bound is 10 s late; on a busy machine a second is little
    lines = log(tmp_path / "run")
    assert len([line for line in lines if "valid_mlm_loss" in line]) >= 2
    rates = [line["lr"] for line in lines if "loss" in line]
    assert rates[-1] < 0.2 * max(rates)  # the schedule runs on the clock
    assert checkpoints(tmp_path / "run")[-1] == len(rates)


def test_trained_time_counts_over_all_starts(corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "run", "--max-minutes 0.05 --eval-every 1000 --save-every 1000")  # 3 seconds

    def slow(course: Any) -> None:
        time.sleep(1.5)
        halt(course)

    with at_step(2, slow):
        assert call(*argv).code == 130
    done(*argv)
    seconds = [line["seconds"] for line in log(tmp_path / "run") if "loss" in line]
    assert seconds == sorted(seconds)
    assert seconds[2] > 1.5
    assert seconds[-1] <= 3.0


def test_a_run_that_goes_on_forecasts_its_validation_too(corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "run", "--max-minutes 10 --eval-every 1000")
    known: list[bool] = []
    with at_step(6, halt):
        assert call(*argv).code == 130

    def look(course: Any) -> None:
        known.append(course.clock.knows("validation"))
        halt(course)

    with at_step(7, look):
        assert call(*argv).code == 130
    assert known == [True]


# Memory


class Memory:
    """Forward passes of more than ``most`` tokens do not fit, so often as ``times`` says."""

    def __init__(self, most: int, times: int) -> None:
        self.most, self.times = most, times

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from bertkit.training.loop import Loop

        real = Loop._accumulate

        def accumulate(loop: Loop, at: Any, batches: Sequence[Any], counts: Any) -> Any:
            if self.times and any(batch.tokens > self.most for batch in batches):
                self.times -= 1
                return torch.zeros(3, len(loop._names)), True
            return real(loop, at, batches, counts)

        monkeypatch.setattr(Loop, "_accumulate", accumulate)


def test_memory_that_runs_out_halves_the_micro_batch_once(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done(*flags(corpus, tmp_path / "small", "--steps 8 --micro-tokens 128"))
    with monkeypatch.context() as patch:
        Memory(most=128, times=9).install(patch)
        with at_step(5, halt):
            found = call(*flags(corpus, tmp_path / "run", "--steps 8 --micro-tokens 256"))
    assert found.code == 130
    assert "128 tokens instead of 256" in found.err
    done(*flags(corpus, tmp_path / "run", "--steps 8 --micro-tokens 256"))  # keeps what it became, without running out again
    assert steps(tmp_path / "run") == steps(tmp_path / "small")
    assert same_bits(tmp_path / "run", tmp_path / "small")
    with monkeypatch.context() as patch:
        Memory(most=1, times=9).install(patch)
        found = call(*flags(corpus, tmp_path / "never", "--steps 8 --micro-tokens 256 --json"))
    assert found.code == 5
    assert "does not fit into memory" in found.object["error"]["message"]
    assert "--micro-tokens" in found.object["error"]["hint"]


def test_the_forecast_of_memory_comes_before_the_first_step(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = {"little": 20e6, "none": 1e6}
    with monkeypatch.context() as patch:
        patch.setattr("bertkit.jobs.fitting.room", lambda *_: rooms["little"])
        told = done(*flags(corpus, tmp_path / "little", "--steps 2 --json")).object
        (words,) = said(told, "memory")
        assert "20.0 MB are free" in words
        patch.setattr("bertkit.jobs.fitting.room", lambda *_: rooms["none"])
        found = call(*flags(corpus, tmp_path / "none", "--steps 2 --json"))
    assert found.code == 5
    assert "1.0 MB are free" in found.object["error"]["message"]
    assert "--size" in found.object["error"]["hint"]
    assert not (tmp_path / "none").exists()


def test_forecasts_by_hand() -> None:
    config = EncoderConfig.of_size("mini", vocab_size=1000)
    expected = memory.forecast(config, 10, longest=128, targets=0.0, device=torch.device("cpu"))
    # Three numbers of 4 bytes a weight; 10 of width 256, 2 of 1024 and 7 x 4 heads x 128 a token and layer.
    assert expected.total(1) == 120 + 4 * 4 * (10 * 256 + 2 * 1024 + 7 * 4 * 128)
    assert expected.fitting(4096, expected.total(1024)) == 1024
    assert expected.fitting(4096, 1e12) == 4096
    assert expected.fitting(4096, 1000) is None
    words = memory.forecast(config, 10, longest=128, targets=0.15, device=torch.device("cpu"))
    assert words.per_token - expected.per_token == pytest.approx(4 * 0.15 * 3 * 1000)
    saving = memory.forecast(config, 10, longest=128, targets=0.0, device=torch.device("cpu"), save_memory=True)
    assert saving.per_token == expected.per_token / 4 + 4 * 4 * 256  # one of four layers, and each one's input


# Disk


@pytest.fixture
def small_files() -> Iterator[Callable[[], None]]:
    """Files of more than 1 MB cannot be written, from when it is called: a quota."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_checkpoint(corpus: Path, tmp_path: Path, small_files: Callable[[], None]) -> None:
    argv = flags(corpus, tmp_path / "run", "--steps 8 --save-every 4")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with at_step(6, lambda course: small_files()):
        found = call(*argv, "--json")
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert found.code == 5
    assert "are needed" in found.object["error"]["message"]
    assert checkpoints(tmp_path / "run") == [4]
    assert not list((tmp_path / "run").glob("*.safetensors"))
    done(*argv)
    done(*flags(corpus, tmp_path / "whole", "--steps 8 --save-every 4"))
    assert same_bits(tmp_path / "run", tmp_path / "whole")


def test_the_disk_is_checked_before_the_first_step(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: Any) -> Any:
        return shutil._ntuple_diskusage(10**9, 10**9 - 1000, 1000)  # type: ignore[attr-defined]

    monkeypatch.setattr("bertkit.training.files.shutil.disk_usage", none_left)
    found = call(*flags(corpus, tmp_path / "run", "--steps 8 --json"))
    assert found.code == 5
    assert "has 1.0 kB free" in found.object["error"]["message"]
    assert not (tmp_path / "run").exists()


# Which checkpoints stay


def losses(monkeypatch: pytest.MonkeyPatch, values: Sequence[float]) -> None:
    """The validations give these losses, one after another."""
    queue = list(values)

    def evaluate(*_: Any, **__: Any) -> dict[str, PartSum]:
        return {"mlm": PartSum(total=queue.pop(0), count=1, correct=0.0)}

    monkeypatch.setattr("bertkit.jobs.pretrain.evaluate_losses", evaluate)


@pytest.fixture
def never_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is removed from ``checkpoints``, a whole one is there at that moment."""
    from bertkit.training import checkpoint as room

    real = shutil.rmtree

    def watched(path: Path, *args: Any, **kinds: Any) -> None:
        folder = Path(path).parent
        if folder.name == "checkpoints":
            assert newest_verified(folder)[0] is not None
        real(path, *args, **kinds)

    monkeypatch.setattr(room.shutil, "rmtree", watched)


@pytest.mark.parametrize(("values", "left"), [([1, 2, 3, 4], [5, 20]), ([4, 3, 2, 1], [20])])
def test_the_newest_and_the_best_stay(  # C26
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never_none: None, values: list[float], left: list[int]
) -> None:
    losses(monkeypatch, values)
    argv = "--steps 20 --save-every 5 --eval-every 5 --keep-checkpoints 1 --keep-best --batch-size 2"
    done(*flags(corpus, tmp_path / "run", argv))
    assert checkpoints(tmp_path / "run") == left
    assert same_bits(tmp_path / "run", tmp_path / "run" / "checkpoints" / f"checkpoint-{left[0]}")


@pytest.mark.parametrize("best", [6, 4])
def test_a_best_evaluation_saves_a_checkpoint_of_its_own(  # C27
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never_none: None, best: int
) -> None:
    losses(monkeypatch, [abs(step - best) + 1 for step in range(2, 25, 2)])
    argv = "--steps 24 --save-every 3 --eval-every 2 --keep-checkpoints 2 --keep-best --batch-size 2 --json"
    told = done(*flags(corpus, tmp_path / "run", argv)).object
    assert checkpoints(tmp_path / "run") == [best, 21, 24]
    assert same_bits(tmp_path / "run", tmp_path / "run" / "checkpoints" / f"checkpoint-{best}")
    assert told["metrics"]["mlm_loss"] == 1.0
    assert told["metrics"]["steps"] == 24


def test_a_tracker_that_is_not_installed(corpus: Path, tmp_path: Path) -> None:
    found = call(*flags(corpus, tmp_path / "run", "--steps 1 --report-to comet_ml --json"))
    assert found.code in (2, 4)
    assert "comet_ml" in found.object["error"]["message"]
    assert not (tmp_path / "run").exists()


# Platform


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.slow
def test_an_ascii_locale_and_streams_to_files(tmp_path: Path) -> None:  # C50, C51
    texts = documents(12)
    write(tmp_path / "données中.txt", [[*lines, "Un café 中文 über."] for lines in texts])
    argv = flags(tmp_path / "données中.txt", tmp_path / "résultats", "--steps 4 --eval-every 2")
    found = end(start(argv, tmp_path / "streams", **ASCII), tmp_path / "streams")
    assert found.code == 0, found.err
    assert (found.out + found.err).isascii()
    assert "\r" not in found.out + found.err
    assert "\x1b" not in found.out + found.err
    assert "r\\xe9sultats" in found.err
    assert [line.split()[0] for line in found.out.splitlines()] == [
        "mlm_loss", "mlm_accuracy", "unigram_loss", "steps", "tokens", "train_seconds",
    ]  # fmt: skip
    assert "中" in (tmp_path / "résultats" / "vocab.txt").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "résultats" / "bertkit.json").read_text(encoding="utf-8"))
    assert facts["asked"]["inputs.corpus"] == [str(tmp_path / "données中.txt")]


@pytest.mark.slow
def test_a_small_shared_memory_and_four_workers(corpus: Path, tmp_path: Path) -> None:  # C53
    inside = "mount -t tmpfs -o size=1m tmpfs /dev/shm"
    try:
        subprocess.run(["unshare", "-m", "sh", "-c", inside], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a small /dev/shm")
    done(*flags(corpus, tmp_path / "large", "--steps 12 --batch-size 64"))
    argv = flags(corpus, tmp_path / "run", "--steps 12 --batch-size 64 --workers 4")
    process = start(argv, tmp_path / "streams", launcher=["-c", SHARED], TOKENIZERS_PARALLELISM="false")
    found = end(process, tmp_path / "streams")
    assert found.code == 0, found.err
    assert steps(tmp_path / "run") == steps(tmp_path / "large")
    assert "fork" not in found.err


SHARED = """
import os, sys
mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \\"$@\\""
os.execvp("unshare", ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, "-m", "bertkit", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_dirt_from_the_text_to_the_model(tmp_path: Path) -> None:  # C04
    texts = documents(10)
    texts[0][0] = "abc\x00def " + texts[0][0]
    texts[1].append("a" * 1_200_000)
    texts[2].append("word " * 40_000)
    write(tmp_path / "train.txt", texts)
    found = done(*flags(tmp_path / "train.txt", tmp_path / "run", "--steps 3 --json"))
    assert "abcdef" not in found.err
    (line,) = said(found.object, "huge-line")
    assert "train.txt, line 26 has 1,200,000 characters" in line
    assert os.path.getsize(tmp_path / "run" / "vocab.txt") < 100_000  # noqa: PTH202
