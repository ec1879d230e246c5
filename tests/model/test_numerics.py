"""No kernel, chunk or precision changes the mathematics: each beside transformers, in the same numbers and in fp32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from beside_transformers import CONFIGS, LENGTHS, assert_close, batch, both, our_outputs, reference, their_outputs
from torch import Tensor

from bertkit.bench.kernels import attention_apart
from bertkit.model import encoder as encoder_module
from bertkit.model.attention import _rectangle, attend_fused, attention_weights, layout_of
from bertkit.model.hf import to_hf
from bertkit.packed import PackedSequences
from bertkit.tasks import heads
from bertkit.tasks.models import TaskModel, load_model
from bertkit.tasks.pretraining import masked_lm_loss
from bertkit.training import compiling

CLOSE = 2**-6
"""Of the largest reference value: how far bf16, fp16 and ``medium`` products may lie from fp32."""
Kernel = Callable[..., Tensor]


def grouped(fused: Tensor, packed: PackedSequences, *, dropout: float = 0.0, layout: Any = None) -> Tensor:
    """The CPU's own: sequences of like length, two batched products a group."""
    return attend_fused(fused, packed, dropout=dropout, layout=layout_of(packed, fused.shape[2]))


def padded(fused: Tensor, packed: PackedSequences, *, dropout: float = 0.0, layout: Any = None) -> Tensor:
    """An accelerator's, where sequences cannot lie end to end: one rectangle, torch's own attention."""
    return as_many_rows(attend_fused(fused[: packed.tokens], packed, dropout=dropout, layout=_rectangle(packed)), fused)


def dense(fused: Tensor, packed: PackedSequences, *, dropout: float = 0.0, layout: Any = None) -> Tensor:
    """By the very weights that a person is shown (``attentions=True``)."""
    own = fused[: packed.tokens]
    weights = attention_weights(own, packed)  # [S, h, L, L]
    values = packed.pad(own[:, 2]).transpose(1, 2).to(weights.dtype)
    made = (weights @ values).transpose(1, 2)  # [S, L, h, d]
    return as_many_rows(made[packed.pad(torch.ones_like(packed.input_ids)) > 0].to(fused.dtype), fused)


def as_many_rows(context: Tensor, fused: Tensor) -> Tensor:
    """Zeros behind the tokens, where the CPU computes over a few rows more."""
    return F.pad(context, (0, 0, 0, 0, 0, fused.shape[0] - context.shape[0]))


KERNELS: dict[str, Kernel] = {"grouped": grouped, "padded": padded, "dense": dense}
PRECISIONS = ("fp32", "bf16", "fp16", "medium")


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every layer of every encoder attends by this kernel."""
    monkeypatch.setattr(encoder_module, "attend_fused", KERNELS[request.param])
    return str(request.param)


@contextmanager
def computing_in(precision: str, device: str = "cpu") -> Iterator[None]:
    """Products in the numbers of ``precision``; ``medium`` are fp32 products that may be cut short."""
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if precision == "medium" else "highest")
    try:
        with nullcontext() if low is None else torch.autocast(device, low):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def assert_same_mathematics(folder: Path, kind: torch.dtype, *, share: float, before: Callable[[TaskModel], None]) -> None:
    """Outputs, loss and gradients are transformers' own, within ``share`` of the largest; ``before`` is done to the model."""
    theirs, ours, made = both("pretraining", folder, CONFIGS["odd"], kind)
    before(ours)
    expected, said = their_outputs("pretraining", theirs, {**made.padded, **made.labels}, made.ours.packed)
    assert_close(our_outputs("pretraining", ours, made.ours.packed), expected, share)
    loss = sum(part.total / part.count for part in ours(made.ours).values())
    assert loss.item() == pytest.approx(said.loss.item(), rel=share)
    said.loss.backward()
    loss.backward()
    found = to_hf({name: p.grad for name, p in ours.named_parameters()}, vocab_size=theirs.config.vocab_size)
    assert_close(found, {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}, share)


@pytest.mark.parametrize("chunk", [1, 71 * 4, 2**23], ids=["a row", "some rows", "whole"])
def test_losses_and_gradients_in_fp64(kernel: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "masked_lm_loss", partial(masked_lm_loss, chunk=chunk))
    assert_same_mathematics(tmp_path, torch.float64, share=1e-9, before=lambda model: None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch itself, whose compiler gives up on a warning that is an error
@pytest.mark.skipif(compiling._lacks(torch.device("cpu")) is not None, reason="no C++ compiler")
@pytest.mark.parametrize(("kind", "share"), [(torch.float64, 1e-9), (torch.float32, 1e-5)], ids=["fp64", "fp32"])
def test_compiled_layers(kind: torch.dtype, share: float, tmp_path: Path) -> None:
    def compiled(model: TaskModel) -> None:
        compiling.compile_layers(model)
        torch._dynamo.utils.counters.clear()

    assert_same_mathematics(tmp_path, kind, share=share, before=compiled)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0, "nothing was compiled"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_outputs_and_losses_in_every_precision(kernel: str, precision: str, tmp_path: Path) -> None:
    theirs, ours, made = both("pretraining", tmp_path, CONFIGS["plain"], torch.float32)
    expected, said = their_outputs("pretraining", theirs, {**made.padded, **made.labels}, made.ours.packed)
    with computing_in(precision):
        outputs = our_outputs("pretraining", ours, made.ours.packed)
        loss = sum(part.total / part.count for part in ours(made.ours).values())
    share = 1e-5 if precision == "fp32" else CLOSE
    assert_close({name: value.float() for name, value in outputs.items()}, expected, share)
    assert loss.item() == pytest.approx(said.loss.item(), rel=share)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters() if p.grad is not None)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_row_of_nothing_but_padding_is_finite_and_alone(kernel: str, precision: str, tmp_path: Path) -> None:  # C47
    theirs = reference("encoder", tmp_path, **CONFIGS["plain"]).eval()
    model = load_model(tmp_path, "encoder")[0].encoder
    made = batch("encoder", LENGTHS, vocab=71, types=2).padded
    ids, types, mask = made["input_ids"], made["token_type_ids"], made["attention_mask"].clone()
    mask[2] = 0
    others = [row for row in range(len(ids)) if row != 2]
    with computing_in(precision):
        found = model(ids, mask, types)
        padded_out, laid = found.to_padded(), found.states
        without = model(ids[others], mask[others], types[others]).to_padded()
    assert laid.isfinite().all()
    largest = float(without.detach().abs().max())
    share = 1e-5 if precision == "fp32" else CLOSE
    assert float((padded_out[others] - without).detach().abs().max()) <= share * largest
    real = mask.bool()
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state[real]
    assert float((padded_out[real] - expected).detach().abs().max()) <= share * float(expected.abs().max())
    laid.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the variable-length kernel runs on CUDA alone")
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_the_variable_length_kernel(kind: torch.dtype) -> None:
    found = attention_apart(torch.device("cuda"), kind)
    assert found.kernel == "variable-length"
    assert found.worst <= CLOSE
