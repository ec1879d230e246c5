"""Training in low precision learns what fp32 learns: 100 steps of a very small model, with the run's own loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.text import VocabularyFacts
from bertkit.bench.curves import curve, mean_loss
from bertkit.corpus.store import TokenStore
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.tasks.models import build_model
from bertkit.training.device import DeviceSettings, make_accelerator
from bertkit.training.peers import Peers
from bertkit.training.schedule import Schedule

WORDS, TOKENS = 64, 4000
CONFIG = EncoderConfig(
    vocab_size=WORDS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16
)


def text() -> tuple[TokenStore, VocabularyFacts]:
    """Each word is one of three that may follow the one before it."""
    rng = np.random.default_rng(0)
    ids = [10]
    for _ in range(TOKENS - 1):
        ids.append(5 + (3 * ids[-1] + int(rng.integers(3))) % (WORDS - 5))
    store = TokenStore.from_arrays(ids, np.arange(10, TOKENS + 1, 10), np.arange(100, TOKENS + 1, 100), vocab_size=WORDS)
    inside, replaceable = np.zeros(WORDS, dtype=np.bool_), np.arange(5, WORDS, dtype=np.int64)
    return store, VocabularyFacts(pad_id=0, cls_id=2, sep_id=3, mask_id=4, continues=inside, replaceable=replaceable)


def source(micro_tokens: int | None = None) -> PretrainingSource:
    examples = ExampleSettings(max_length=16)
    return PretrainingSource(*text(), examples, MaskingSettings(), seed=0, batch_size=4, micro_tokens=micro_tokens)


def mean_of_100(precision: str, micro_tokens: int | None = None) -> float:
    asked = DeviceSettings(device="cpu", precision="bf16" if precision == "bf16" else "fp32", threads=1)
    machine = Machine.of(asked)
    model = build_model("pretraining", CONFIG, seed=1)
    torch.set_float32_matmul_precision("medium" if precision == "medium" else "highest")
    if precision == "fp16":  # no run computes in it on a CPU: autocast and the scaler as Accelerate sets them up on CUDA
        forward = model.forward
        model.forward = torch.autocast("cpu", torch.float16)(forward)  # type: ignore[method-assign]
        machine.accelerator.scaler = torch.amp.GradScaler("cpu")
    reports = curve(model, source(micro_tokens), machine, steps=100, rate=1e-2)
    assert reports[-1].step == 100
    return mean_loss(reports)


@pytest.mark.slow
def test_low_precision_learns_what_fp32_learns() -> None:
    """Within twice the spread of three fp32 runs that cut their batches otherwise, and so sum and drop in another order.

    With dropout off such runs agree to 1e-6 of the loss, which no bf16 product can; with it they show what a person sees.
    """
    before = torch.get_float32_matmul_precision()
    try:
        whole, *cut = (mean_of_100("fp32", micro) for micro in (None, 40, 20))
        spread = max(whole, *cut) - min(whole, *cut)
        assert 0 < spread < 0.1
        for precision in ("bf16", "fp16", "medium"):
            assert abs(mean_of_100(precision) - whole) <= 2 * spread, precision
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="fp16 trains on CUDA alone")
@pytest.mark.filterwarnings("error::UserWarning:torch")
def test_overflowed_fp16_steps_on_cuda_move_neither_rate_nor_count() -> None:  # C46
    """What a CPU can show of it is in tests/training/test_loop.py."""
    accelerator = make_accelerator(DeviceSettings(precision="fp16"), scale=2.0**24)
    machine = Machine(accelerator=accelerator, peers=Peers(accelerator))
    reports = curve(build_model("pretraining", CONFIG, seed=1), source(), machine, steps=10, rate=1e-2, warmup=5)
    skipped = [report for report in reports if not report.applied]
    applied = [report for report in reports if report.applied]
    rates = Schedule(peak=1e-2, warmup=5, steps=10)
    assert skipped
    assert all(report.step == 0 and report.rate == rates.rate(1) for report in skipped)
    assert [(report.step, report.rate) for report in applied] == [(step, rates.rate(step)) for step in range(1, 11)]
    assert reports[-1].skipped == len(skipped)
