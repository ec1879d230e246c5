"""AdamW as BERT was trained: decay on matrices alone, and a rate that the schedule sets before each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from pydantic import Field
from torch import nn

from bertkit.fields import Settings


class OptimizerSettings(Settings):
    """AdamW's settings (Loshchilov and Hutter 2019), as Devlin et al. 2019 use it."""

    learning_rate: float = Field(1e-4, gt=0, description="Peak learning rate; not given: by size and task.")
    beta1: float = Field(0.9, ge=0, lt=1, description="Decay of the mean of gradients, per step.")
    beta2: float = Field(0.999, ge=0, lt=1, description="Decay of the mean of squared gradients, per step.")
    epsilon: float = Field(1e-6, gt=0, description="Added to the root of the second moment.")
    weight_decay: float = Field(0.01, ge=0, description="Decoupled decay of matrices; biases and LayerNorm have none.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are scaled down to this L2 norm over all weights.")


def parameter_groups(
    model: nn.Module, weight_decay: float, rate_scale: Callable[[str], float] | None = None
) -> list[dict[str, Any]]:
    """Splits the trainable parameters into groups of one decay and one rate.

    Matrices (two dimensions or more) decay, vectors (biases, LayerNorm) do not. ``rate_scale`` gives each parameter's
    share of the scheduled rate by its name, for lower rates in lower layers; ``rate_scale`` in a group keeps it.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decay = weight_decay if parameter.dim() >= 2 else 0.0
            scale = 1.0 if rate_scale is None else rate_scale(name)
            groups.setdefault((decay, scale), []).append(parameter)
    return [{"params": members, "weight_decay": decay, "rate_scale": scale} for (decay, scale), members in groups.items()]


def make_optimizer(
    model: nn.Module, settings: OptimizerSettings, rate_scale: Callable[[str], float] | None = None
) -> torch.optim.AdamW:
    """The optimizer of a model that lies on its device already (fused where the device has a fused kernel)."""
    device = next(model.parameters()).device
    return torch.optim.AdamW(
        parameter_groups(model, settings.weight_decay, rate_scale),
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=device.type in ("cpu", "cuda", "mps", "xpu"),
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the rate of the coming step in every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("rate_scale", 1.0)
