"""Muon beside a plain one in fp64, matrix by matrix; what it leaves to AdamW; its memory in a checkpoint."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bertkit.errors import CheckpointError
from bertkit.training.muon import COEFFICIENTS, Muon, orthogonal, products_type
from bertkit.training.optimizer import OptimizerSettings, hidden_matrices, make_optimizer, set_rate
from bertkit.training.optimizer_state import read_moments, write_moments

WIDTH = 12
MATRICES = {f"layers.{n}.{name}.weight" for n in (0, 1) for name in ("three", "up", "down")}


class Product(nn.Linear):
    """Three matrices, one below the other, as the encoder's queries, keys and values."""

    stacked = 3


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.three = Product(WIDTH, 3 * WIDTH)
        self.up = nn.Linear(3 * WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.down(torch.tanh(self.up(self.three(x)))))


class Small(nn.Module):
    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.words = nn.Embedding(20, WIDTH)
        self.layers = nn.ModuleList(Part() for _ in range(2))
        self.head = nn.Linear(WIDTH, WIDTH)
        self.unused = nn.ModuleList([nn.Linear(WIDTH, WIDTH)])

    def loss(self, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        states = self.words(torch.randint(0, 20, (40,), generator=generator))
        for layer in self.layers:
            states = layer(states)
        return (self.head(states) - torch.randn(40, WIDTH, generator=generator)).square().mean()


def trained(model: Small, optimizer: torch.optim.Optimizer, steps: int, *, begin: int = 0, rate: float = 0.01) -> None:
    for step in range(begin, begin + steps):
        optimizer.zero_grad(set_to_none=True)
        model.loss(step).backward()
        set_rate(optimizer, rate / (1 + step))
        optimizer.step()


def plain_step(
    weight: Tensor, mean: Tensor, gradient: Tensor, *, rate: float, decay: float, momentum: float
) -> tuple[Tensor, Tensor]:
    """One matrix, written down as the papers say it, in fp64."""
    mean = momentum * mean + (1 - momentum) * gradient
    x = momentum * mean + (1 - momentum) * gradient
    turned = x.shape[0] > x.shape[1]
    x = x.T if turned else x
    x = x / (1.02 * (x @ x.T).square().sum().sqrt().sqrt())
    for a, b, c in COEFFICIENTS:
        x = a * x + b * (x @ x.T) @ x + c * (x @ x.T) @ (x @ x.T) @ x
    step = 0.2 * math.sqrt(max(weight.shape)) * (x.T if turned else x)
    return weight * (1 - rate * decay) - rate * step, mean


def test_steps_are_those_of_a_plain_one_in_fp64() -> None:
    settings = OptimizerSettings(name="muon", weight_decay=0.1, momentum=0.9)
    model = Small().double()
    optimizer = make_optimizer(model, settings, products=torch.float64)
    matrices = {name: each for name, each in model.named_parameters() if each in hidden_matrices(model) and "unused" not in name}
    assert set(matrices) == MATRICES
    pieces = {name: each.detach().clone().chunk(3 if "three" in name else 1) for name, each in matrices.items()}
    means = {name: [torch.zeros_like(each) for each in some] for name, some in pieces.items()}
    for step in range(4):
        rate = 0.05 / (1 + step)
        optimizer.zero_grad()
        model.loss(step).backward()
        for name, parameter in matrices.items():
            gradients = parameter.grad.chunk(len(pieces[name]))  # type: ignore[union-attr]
            found = [
                plain_step(weight, mean, gradient, rate=rate, decay=0.1, momentum=0.9)
                for weight, mean, gradient in zip(pieces[name], means[name], gradients, strict=True)
            ]
            pieces[name], means[name] = tuple(one for one, _ in found), [two for _, two in found]
        set_rate(optimizer, rate)
        optimizer.step()
        for name, parameter in matrices.items():
            assert torch.allclose(parameter.detach(), torch.cat(pieces[name]), rtol=1e-10, atol=1e-12), (step, name)


def test_all_other_parameters_move_as_under_adamw() -> None:
    one, two = Small(), Small()
    muon = make_optimizer(one, OptimizerSettings(name="muon"))
    adamw = make_optimizer(two, OptimizerSettings())
    assert isinstance(muon, Muon)
    assert isinstance(adamw, torch.optim.AdamW)
    for model, optimizer in ((one, muon), (two, adamw)):
        trained(model, optimizer, 1)
    moved = {
        name for (name, mine), theirs in zip(one.named_parameters(), two.parameters(), strict=True) if not mine.equal(theirs)
    }
    assert moved == MATRICES


@pytest.mark.parametrize("columns", [9, 20])  # wide ones are made from X Xᵀ alone, but in bfloat16
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
def test_every_direction_comes_out_alike(kind: torch.dtype, columns: int) -> None:
    """Singular values from 1 % of the norm on become 0.73 … 1.27 (and 3 bits of bfloat16 more), whatever the scale."""
    generator = torch.Generator().manual_seed(1)
    room = 0.06 if kind == torch.bfloat16 else 1e-3
    for scale in (1e-12, 1.0, 1e6):
        for values in (torch.logspace(-1.6, 0, 8), torch.ones(8), torch.tensor([1.0] + 7 * [0.05])):
            u = torch.linalg.qr(torch.randn(3, 8, 8, generator=generator, dtype=torch.float64))[0]
            v = torch.linalg.qr(torch.randn(3, columns, 8, generator=generator, dtype=torch.float64))[0]
            given = (scale * (u * values.double()) @ v.mT).to(torch.promote_types(kind, torch.float32))
            made = orthogonal(given, kind).double()
            found = torch.linalg.svdvals(made)
            assert 0.73 - room < found.min() <= found.max() < 1.27 + room, (scale, values)
            whole = (u.mT @ made @ v).diagonal(dim1=1, dim2=2)  # the directions are kept: U and V make it diagonal
            assert whole.min() > 0.73 - room


def test_one_direction_alone_and_none_at_all() -> None:
    row = torch.outer(torch.arange(1.0, 7.0), torch.linspace(-1, 1, 30))[None]
    for kind, most in ((torch.float32, 1e-3), (torch.bfloat16, 78 * 2**-9)):  # what is rounded off, grown as a small direction is
        values = torch.linalg.svdvals(orthogonal(row, kind).float())
        assert 0.7 < values[0, 0] < 1.3
        assert values[0, 1:].max() < most
    assert orthogonal(torch.zeros(2, 3, 5), torch.float32).equal(torch.zeros(2, 3, 5))


def test_many_matrices_go_through_in_several_products(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [Small(), Small()]
    for model, most in zip(models, (2**22, WIDTH * WIDTH), strict=True):
        monkeypatch.setattr("bertkit.training.muon._AT_ONCE", most)
        trained(model, make_optimizer(model, OptimizerSettings(name="muon")), 2)
    assert all(
        torch.allclose(one, two, atol=1e-6) for one, two in zip(models[0].parameters(), models[1].parameters(), strict=True)
    )


def test_rates_and_decay_by_group() -> None:
    model = Small()
    optimizer = make_optimizer(model, OptimizerSettings(name="muon"), lambda name: 0.5 if name.startswith("layers.0") else 1.0)
    set_rate(optimizer, 0.2)
    for name, parameter in model.named_parameters():
        group = next(group for group in optimizer.param_groups if any(each is parameter for each in group["params"]))
        assert group["lr"] == (0.1 if name.startswith("layers.0") else 0.2)
        assert group["weight_decay"] == (0.01 if parameter.dim() == 2 else 0.0)
        assert group["orthogonal"] == (name in MATRICES or name == "unused.0.weight")


def test_memory_survives_a_checkpoint_to_the_bit(tmp_path: Path) -> None:
    whole, parts, rest = Small(), Small(), Small(seed=5)
    settings = OptimizerSettings(name="muon")
    trained(whole, make_optimizer(whole, settings), 6)
    before = make_optimizer(parts, settings)
    trained(parts, before, 3)
    steps = write_moments(tmp_path / "moments", parts, before)
    assert set(steps.values()) == {3}
    assert not any(name.startswith("unused") for name in steps)
    rest.load_state_dict(parts.state_dict())
    after = make_optimizer(rest, settings)
    read_moments(tmp_path / "moments", rest, after, steps)
    trained(rest, after, 3, begin=3)
    assert all(one.equal(two) for one, two in zip(whole.parameters(), rest.parameters(), strict=True))
    with pytest.raises(CheckpointError, match="does not fit"):
        read_moments(tmp_path / "moments", rest, make_optimizer(rest, OptimizerSettings()), steps)


def test_products_are_in_fp32_wherever_the_run_is() -> None:
    assert products_type("fp32", torch.device("cpu")) == torch.float32
