"""``bertkit bench``: the two sides do the same work, and the figures are what they say."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.bench.alternate import Round, alternate, parts, ratios
from bertkit.bench.machine import product_rate
from bertkit.bench.made_text import made_text
from bertkit.bench.memory import peak_of
from bertkit.bench.pretraining import Ours
from bertkit.bench.reference import Pretraining
from bertkit.bench.work import pretraining_flops
from bertkit.cli.main import run
from bertkit.errors import DataError, ResourceError
from bertkit.jobs.signals import Stop, StopNow
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.training.device import DeviceSettings

CONFIG = EncoderConfig(
    vocab_size=30_522, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, pad_token_id=0
)


class Counted:
    """A side that does nothing, and notes when."""

    def __init__(self, name: str, seen: list[str], units: int) -> None:
        self.name, self.seen, self.units = name, seen, units

    def run(self, seconds: float) -> Round:
        self.seen.append(self.name)
        return Round(units=self.units, seconds=2.0, parts={"forward": 0.5})


def test_sides_take_turns_and_ratios_are_taken_within_a_round() -> None:
    seen: list[str] = []
    found = alternate([Counted("a", seen, 30), Counted("b", seen, 10)], rounds=3, seconds=1.0)
    assert seen == ["a", "b", "a", "b", "b", "a", "a", "b"]  # the first of each does not count
    assert [len(done) for done in found.values()] == [3, 3]
    assert ratios(found["a"], found["b"]) == {"median": 3.0, "low": 3.0, "high": 3.0}
    assert parts(found["a"]) == {"forward": 0.25, "other": 0.75}


def test_the_made_text_has_the_lengths_of_prose() -> None:
    store, facts = made_text(200_000)
    assert abs(store.tokens / 200_000 - 1) < 0.25
    assert 15 < store.tokens / store.sentences < 40
    assert 40 < store.sentences / store.documents < 110
    lengths = (
        PretrainingSource(store, facts, ExampleSettings(), MaskingSettings(), seed=0, batch_size=64)
        .step(0, 0)[0]
        .packed.boundaries.diff()
    )
    assert 80 < float(lengths.float().mean()) <= 128


def test_useful_work_by_hand() -> None:
    base = EncoderConfig.of_size("base", vocab_size=30_528)
    by_hand = 3 * (24 * 12 * 768**2 + 4 * 12 * 128 * 768 + 0.15 * (2 * 768**2 + 2 * 768 * 30_528))
    assert pretraining_flops(base, length=128, masked=0.15) == pytest.approx(by_hand, rel=1e-12)


def test_both_sides_see_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    store, facts = made_text(30_000)

    def source(micro: int | None) -> PretrainingSource:
        return PretrainingSource(store, facts, ExampleSettings(), MaskingSettings(), seed=3, batch_size=8, micro_tokens=micro)

    machine = Machine.of(DeviceSettings(device="cpu", precision="fp32"))
    ours = Ours(source(512), CONFIG, machine)
    theirs = Pretraining(source(None), CONFIG, torch.device("cpu"), "fp32")
    try:
        done = [(ours.run(0.0), theirs.run(0.0)) for _ in range(3)]
    finally:
        ours.close()
    assert [(mine.units, mine.texts) for mine, _ in done] == [(other.units, other.texts) for _, other in done]
    assert all({"data", "forward", "backward", "optimizer"} <= set(side.parts) for pair in done for side in pair)
    assert all(sum(side.parts.values()) <= side.seconds for pair in done for side in pair)


def hold(megabytes: int) -> None:
    np.ones(megabytes << 20, dtype=np.uint8).sum()


@pytest.mark.slow
def test_the_peak_of_memory_is_that_of_the_work() -> None:
    more = peak_of(hold, 400) - peak_of(hold, 1)
    assert more == pytest.approx(399 << 20, rel=0.1)


def refuse() -> None:
    raise DataError("There are no rows.", where="rows.tsv")


def end_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory runs out


def wait_long(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(60)


@pytest.mark.slow
def test_what_ends_a_measurement_of_memory_is_said() -> None:
    with pytest.raises(DataError, match=r"no rows. \(rows.tsv\)"):
        peak_of(refuse)
    with pytest.raises(ResourceError, match="SIGKILL"):
        peak_of(end_itself)


@pytest.mark.slow
def test_an_interrupted_measurement_of_memory_is_not_waited_for(tmp_path: Path) -> None:
    started, stop = tmp_path / "pid", Stop()

    def interrupt() -> None:
        while not started.exists() or not started.read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt).start()
    with stop.installed(), pytest.raises(StopNow):
        peak_of(wait_long, started)
    assert not psutil.pid_exists(int(started.read_text()))


def test_a_ceiling_is_measured() -> None:
    assert product_rate(torch.device("cpu"), "fp32") > 1e9


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    few = (
        "--size",
        "tiny",
        "--rounds",
        "1",
        "--seconds",
        "0.1",
        "--batch-size",
        "2",
        "--max-length",
        "32",
        "--precision",
        "fp32",
    )
    assert run(["bench", "pretrain", *few, "--vs", "transformers", "--no-memory", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metrics"]["tokens_per_second"] > 0
    assert set(told["bench"]["rates"]) == {"bertkit", "transformers"}
    ratio = told["bench"]["ratio"]["transformers"]
    assert ratio["low"] <= ratio["median"] <= ratio["high"]
    assert all(texts["median"] > 0 for texts in told["bench"]["texts_per_second"].values())
    assert 0 < told["bench"]["share_of_ceiling"] < 1.2
    assert told["machine"]["threads"] >= 1
    assert list(tmp_path.iterdir()) == []
    assert run(["bench", "pretrain", *few, "--no-memory"]) == 0
    assert "tokens/s" in capsys.readouterr().out
    assert run(["bench", "pretrain", *few, "--vs-precision", "bf16"]) == 2
    assert "give vs too. (--vs-precision)" in capsys.readouterr().err
    assert run(["bench", "pretrain", "--corpus", "a.txt"]) == 2
    assert "tokenizer" in capsys.readouterr().err
