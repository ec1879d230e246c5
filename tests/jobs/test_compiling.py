"""``--compile``: the same losses and gradients, what it becomes where, and that a run goes on as it began."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from bertkit.batches.collator import PretrainingBatch
from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.bench.made_text import VOCABULARY, made_text
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.notices import collecting
from bertkit.settings.commands import Training
from bertkit.tasks.models import TaskModel, build_model
from bertkit.training import compiling
from bertkit.training.device import TrainingDeviceSettings

CPU = torch.device("cpu")
CONFIG = EncoderConfig(
    vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, pad_token_id=0
)


def gradients(model: TaskModel, batch: PretrainingBatch) -> dict[str, Tensor]:
    """Of the whole loss under one drawing of dropout, and the losses themselves."""
    model.zero_grad()
    torch.manual_seed(5)
    parts = model(batch)
    sum(part.total / part.count for part in parts.values()).backward()
    found = {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}
    return found | {f"loss {name}": part.total.detach() for name, part in parts.items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch itself, whose compiler gives up on a warning that is an error
@pytest.mark.skipif(compiling._lacks(CPU) is not None, reason="no C++ compiler")
def test_compiled_layers_compute_the_same() -> None:
    """With dropout: the masks are those of the plain way. Two batches of different counts of tokens."""
    store, facts = made_text(20_000)
    source = PretrainingSource(store, facts, ExampleSettings(), MaskingSettings(), seed=3, batch_size=3, micro_tokens=None)
    batches = [source.step(0, index)[0] for index in range(2)]
    assert batches[0].tokens != batches[1].tokens
    model = build_model("pretraining", CONFIG, seed=1).double().train()
    plain = [gradients(model, batch) for batch in batches]
    compiling.compile_layers(model)
    torch._dynamo.utils.counters.clear()
    for batch, expected in zip(batches, plain, strict=True):
        found = gradients(model, batch)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-9 * max(1e-3, float(value.abs().max())), msg=name)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0, "nothing was compiled"


def test_auto_is_off_and_no_compiler_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert compiling.resolve("auto", CPU) == compiling.resolve("off", CPU) == "off"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with collecting() as heard:
        assert compiling.resolve("on", CPU) == "off"
    assert any("no C++ compiler" in notice.message for notice in heard)
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    assert compiling.resolve("on", CPU) == "on"


def test_a_run_goes_on_as_it_began(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiling, "_lacks", lambda device: None)
    asked = TrainingDeviceSettings(device="cpu", precision="fp32")
    settings = cast(Training, SimpleNamespace(device=asked, run=SimpleNamespace(report_to=())))

    def goes_on(before: dict[str, Any], situation: str = "unfinished") -> str:
        folder = RunFolder(tmp_path, situation, {"resolved": before}, None)  # type: ignore[arg-type]
        return Machine.of(asked).as_before(folder, settings).compile

    assert goes_on({"device.precision": "fp32", "device.compile": "on"}) == "on"
    assert goes_on({"device.precision": "fp32", "device.compile": "off"}) == "off"
    assert goes_on({"device.precision": "fp32"}) == "off"  # a run of the time before there was such a setting
    assert goes_on({"device.compile": "on"}, "new") == "off"
