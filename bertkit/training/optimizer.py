"""AdamW as BERT was trained, or Muon: decay on matrices alone, and a rate that the schedule sets before each step."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertkit.fields import Settings
from bertkit.training.muon import Muon


class OptimizerSettings(Settings):
    """AdamW's settings (Loshchilov and Hutter 2019), as Devlin et al. 2019 use it, and Muon's."""

    name: Literal["adamw", "muon"] = Field(
        "adamw",
        description="adamw, or muon: steps of the matrices inside the layers made orthogonal, AdamW for the rest; "
        "not given: by size in pretraining, else adamw.",
    )
    learning_rate: float = Field(1e-4, gt=0, description="Peak learning rate; not given: by size and task.")
    beta1: float = Field(0.9, ge=0, lt=1, description="Decay of the mean of gradients, per step.")
    beta2: float = Field(0.999, ge=0, lt=1, description="Decay of the mean of squared gradients, per step.")
    momentum: float = Field(0.95, ge=0, lt=1, description="Of muon: decay of the mean of a matrix's gradients, per step.")
    epsilon: float = Field(1e-6, gt=0, description="Added to the root of the second moment.")
    weight_decay: float = Field(0.01, ge=0, description="Decoupled decay of matrices; biases and LayerNorm have none.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are scaled down to this L2 norm over all weights.")


def parameter_groups(
    model: nn.Module,
    weight_decay: float,
    rate_scale: Callable[[str], float] | None = None,
    orthogonal: Collection[Tensor] = (),
) -> list[dict[str, Any]]:
    """Splits the trainable parameters into groups of one decay, one rate and one kind of step.

    Matrices (two dimensions or more) decay, vectors (biases, LayerNorm) do not. ``rate_scale`` gives each parameter's
    share of the scheduled rate by its name, for lower rates in lower layers; ``rate_scale`` in a group keeps it.
    ``orthogonal`` in a group says whether its parameters are of those.
    """
    groups: dict[tuple[float, float, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decay = weight_decay if parameter.dim() >= 2 else 0.0
            scale = 1.0 if rate_scale is None else rate_scale(name)
            groups.setdefault((decay, scale, parameter in orthogonal), []).append(parameter)
    return [
        {"params": members, "weight_decay": decay, "rate_scale": scale, "orthogonal": turned}
        for (decay, scale, turned), members in groups.items()
    ]


def hidden_matrices(model: nn.Module) -> dict[Tensor, int]:
    """The matrices inside a model, each with how many lie in it, one below the other (``Linear.stacked``).

    They are those of the layers that a model has many of (``nn.ModuleList``): embeddings and heads stand once.
    """
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    products = (part for layers in lists for part in layers.modules() if isinstance(part, nn.Linear))
    return {part.weight: int(getattr(part, "stacked", 1)) for part in products}


def make_optimizer(
    model: nn.Module,
    settings: OptimizerSettings,
    rate_scale: Callable[[str], float] | None = None,
    *,
    products: torch.dtype = torch.float32,
) -> torch.optim.Optimizer:
    """The optimizer of a model that lies on its device already (fused where the device has a fused kernel).

    Args:
        model: Whose parameters are stepped.
        settings: Which optimizer, and its numbers.
        rate_scale: Each parameter's share of the rate, by its name.
        products: What Muon's matrix products are made in; see :func:`bertkit.training.muon.products_type`.
    """
    device = next(model.parameters()).device
    pieces = hidden_matrices(model) if settings.name == "muon" else {}
    groups = parameter_groups(model, settings.weight_decay, rate_scale, pieces)

    def adamw(members: list[dict[str, Any]]) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            members,
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            eps=settings.epsilon,
            fused=device.type in ("cpu", "cuda", "mps", "xpu"),
        )

    if not pieces:
        return adamw(groups)
    return Muon(groups, pieces=pieces, lr=settings.learning_rate, momentum=settings.momentum, products=products, adamw=adamw)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the rate of the coming step in every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("rate_scale", 1.0)
