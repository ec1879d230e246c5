"""Activations by the names that config.json uses, meaning what transformers' ``ACT2FN`` means by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.errors import ModelError, nearest

Activation = Callable[[Tensor], Tensor]

_gelu_tanh: Activation = partial(F.gelu, approximate="tanh")


def _quick_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def _clipped_gelu(x: Tensor) -> Tensor:
    return F.gelu(x).clip(-10, 10)


def _laplace(x: Tensor) -> Tensor:
    return 0.5 * (1.0 + torch.erf((x - 0.707107) / (0.282095 * math.sqrt(2.0))))


# gelu_new, gelu_fast and gelu_accurate are the tanh formula written out; the kernel computes the same to rounding
# (gelu_fast rounds sqrt(2/pi) to ten digits, which moves values by less than 1e-10).
_KNOWN: dict[str, Activation] = {
    "gelu": F.gelu,
    "gelu_10": _clipped_gelu,
    "gelu_accurate": _gelu_tanh,
    "gelu_fast": _gelu_tanh,
    "gelu_new": _gelu_tanh,
    "gelu_python": F.gelu,
    "gelu_python_tanh": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "hardswish": F.hardswish,
    "laplace": _laplace,
    "leaky_relu": F.leaky_relu,
    "linear": lambda x: x,
    "mish": F.mish,
    "quick_gelu": _quick_gelu,
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
    "relu6": F.relu6,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}

ACTIVATIONS: tuple[str, ...] = tuple(sorted(_KNOWN))


def activation(name: str, *, where: str | None = None) -> Activation:
    """The function of a name.

    Raises:
        ModelError: The name is not known; the known ones are listed.
    """
    if name not in _KNOWN:
        raise ModelError(
            f"hidden_act {name!r} is not known.{nearest(name, ACTIVATIONS)}",
            where=where,
            hint=f"Known are {', '.join(ACTIVATIONS)}.",
        )
    return _KNOWN[name]
