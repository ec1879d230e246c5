"""Schedules and the optimizer, against torch, transformers' formula and hand-made numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from bertkit.errors import SettingsError
from bertkit.training.optimizer import OptimizerSettings, make_optimizer, parameter_groups, set_rate
from bertkit.training.schedule import Schedule, rate_factor


def test_linear_rates_by_hand() -> None:
    schedule = Schedule(peak=1.0, warmup=4, steps=9)
    expected = [1 / 4, 2 / 4, 3 / 4, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    assert [schedule.rate(step) for step in range(1, 10)] == pytest.approx(expected)
    assert [schedule.warming(step) for step in range(1, 10)] == [True] * 3 + [False] * 6


def test_without_warmup_it_is_transformers_linear_schedule() -> None:
    """get_linear_schedule_with_warmup(0, 7): max(0, (7 - s) / 7) for s = 0, 1, …"""
    schedule = Schedule(peak=3e-4, warmup=0.0, steps=7)
    assert [schedule.rate(step + 1) for step in range(7)] == pytest.approx([3e-4 * (7 - s) / 7 for s in range(7)])


def test_a_share_of_warmup_is_its_steps() -> None:
    share, steps = Schedule(peak=1.0, warmup=0.1, steps=100), Schedule(peak=1.0, warmup=10, steps=100)
    assert [share.rate(n) for n in range(1, 101)] == [steps.rate(n) for n in range(1, 101)]
    assert share.rate(10) == 1.0


def test_cosine_and_constant() -> None:
    cosine = Schedule(peak=2.0, shape="cosine", warmup=10, steps=99)
    assert cosine.rate(10) == 2.0
    assert cosine.rate(55) == pytest.approx(1.0)  # half way from 10 to 100
    assert cosine.rate(99) == pytest.approx(2.0 * 0.5 * (1 - math.cos(math.pi / 90)))
    constant = Schedule(peak=2.0, shape="constant", warmup=10, steps=99)
    assert constant.rate(5) == pytest.approx(1.0)
    assert {constant.rate(step) for step in range(10, 100)} == {2.0}


@pytest.mark.parametrize("shape", ["linear", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_every_rate_lies_between_0_and_the_peak_and_none_is_0(shape: str, warmup: float) -> None:
    for steps in (1, 2, 3, 10):
        schedule = Schedule(peak=1.0, shape=shape, warmup=warmup, steps=steps)  # type: ignore[arg-type]
        assert all(0 < schedule.rate(step) <= 1 for step in range(1, steps + 1))


def test_clock_schedule_follows_the_time_alone() -> None:
    schedule = Schedule(peak=1.0, warmup=0.2)
    assert schedule.rate(1, 0.1) == schedule.rate(999, 0.1) == pytest.approx(0.5)
    assert schedule.rate(5, 0.2) == pytest.approx(1.0)
    assert schedule.rate(5, 0.6) == pytest.approx(0.5)
    assert schedule.rate(5, 1.0) == 0.0
    assert 0 < schedule.rate(1, 0.0) < 0.05
    with pytest.raises(SettingsError, match="500 steps"):
        Schedule(peak=1.0, warmup=500)


def test_factor_is_continuous_at_the_end_of_the_warmup() -> None:
    for shape in ("linear", "cosine", "constant"):
        below, above = (rate_factor(shape, 0.3 + side, 0.3) for side in (-1e-9, 1e-9))  # type: ignore[arg-type]
        assert below == pytest.approx(above, abs=1e-6)


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)


def test_decay_is_for_matrices_alone() -> None:
    model = Body()
    by_id = {id(each): name for name, each in model.named_parameters()}
    groups = {group["weight_decay"]: {by_id[id(each)] for each in group["params"]} for group in parameter_groups(model, 0.01)}
    assert groups == {0.01: {"embedding.weight", "linear.weight"}, 0.0: {"linear.bias", "norm.weight", "norm.bias"}}


def test_one_step_is_adamw_by_hand() -> None:
    """Loshchilov and Hutter's algorithm 2, written out for one matrix and one bias."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2).double()
    optimizer = make_optimizer(model, OptimizerSettings(learning_rate=0.5))
    expected = {name: each.detach().clone() for name, each in model.named_parameters()}
    mean = {name: torch.zeros_like(each) for name, each in expected.items()}
    square = {name: torch.zeros_like(each) for name, each in expected.items()}
    for step, rate in enumerate((0.1, 0.05), start=1):
        set_rate(optimizer, rate)
        optimizer.zero_grad()
        functional.mse_loss(model(torch.ones(1, 3).double() * step), torch.ones(1, 2).double()).backward()
        for name, each in model.named_parameters():
            gradient = each.grad
            assert gradient is not None
            mean[name] = 0.9 * mean[name] + 0.1 * gradient
            square[name] = 0.999 * square[name] + 0.001 * gradient**2
            decay = 0.01 if name == "weight" else 0.0
            move = mean[name] / (1 - 0.9**step) / ((square[name] / (1 - 0.999**step)).sqrt() + 1e-6)
            expected[name] = expected[name] - rate * decay * expected[name] - rate * move
        optimizer.step()
        for name, each in model.named_parameters():
            torch.testing.assert_close(each.detach(), expected[name], rtol=1e-10, atol=1e-12)


def test_rates_can_be_scaled_by_name() -> None:
    model = Body()
    optimizer = make_optimizer(model, OptimizerSettings(), lambda name: 0.5 if name.startswith("embedding") else 1.0)
    set_rate(optimizer, 0.2)
    rates = {id(each): group["lr"] for group in optimizer.param_groups for each in group["params"]}
    assert rates[id(model.embedding.weight)] == pytest.approx(0.1)
    assert rates[id(model.linear.weight)] == rates[id(model.norm.bias)] == 0.2
