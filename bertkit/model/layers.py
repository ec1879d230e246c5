"""The small layers that the encoder and the heads share: weights that are not drawn twice, and dropout that is fast on a CPU.

In come plain numbers by keyword. ``T`` tokens, ``H`` the width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.randomness import torch_seed


class Linear(nn.Linear):
    """``nn.Linear`` whose weights are left as they are until :func:`draw_weights` or a file fills them.

    Attributes:
        stacked: How many matrices of their own lie in its weight, one below the other.
    """

    def __init__(self, inputs: int, outputs: int, *, stacked: int = 1) -> None:
        super().__init__(inputs, outputs)
        self.stacked = stacked

    def reset_parameters(self) -> None:
        """Nothing: a default drawing would cost a second for a large model and move the global generator."""


class Embedding(nn.Embedding):
    """``nn.Embedding`` whose weights are left as they are until :func:`draw_weights` or a file fills them."""

    def reset_parameters(self) -> None:
        """Nothing, as in :class:`Linear`."""


def draw_weights(module: nn.Module, *, seed: int, deviation: float, prefix: str = "") -> None:
    """Fills a new module: matrices normal(0, deviation), biases 0, LayerNorm 1 and 0, as BERT starts.

    Every matrix has a generator of its own, keyed by its name, so that a body is the same under any head.
    A module may have ``settle_new_weights()`` for what must hold afterwards (a padding row of zeros).
    """
    for name, part in module.named_modules(prefix=prefix):
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
            nn.init.zeros_(part.bias)
            continue
        for own, parameter in part.named_parameters(recurse=False):
            if parameter.dim() < 2:
                nn.init.zeros_(parameter)
                continue
            generator = torch.Generator().manual_seed(torch_seed(seed, f"weights {name}.{own}"))
            with torch.no_grad():
                parameter.copy_(torch.empty(parameter.shape).normal_(0.0, deviation, generator=generator))
    for part in module.modules():
        settle = getattr(part, "settle_new_weights", None)
        if callable(settle):
            settle()


def keep_mask(shape: torch.Size, probability: float, dtype: torch.dtype) -> tuple[Tensor, float]:
    """On the CPU: ones where a value is kept and zeros where it is dropped, and the scale that keeps the mean.

    torch draws a number per value one after another (45 ms for 4 million). Sixteen random bits a value, compared with a
    threshold, take a sixth of that; the probability is rounded to a multiple of 1/65536 and the scale is exact for it.
    """
    threshold = min(round(probability * 65536), 65535)  # a share below 1 drops not quite all
    count = shape.numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[:count].view(shape)
    # Written as a float at once: comparing to bool and converting takes five times as long.
    keep = torch.ge(bits, threshold - 32768, out=torch.empty(shape, dtype=dtype))
    return keep, 65536 / (65536 - threshold)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        keep, ctx.scale = keep_mask(x.shape, probability, x.dtype)
        ctx.save_for_backward(keep)
        return torch.mul(x, keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return torch.mul(grad, keep).mul_(ctx.scale), None


class _AddDropped(torch.autograd.Function):
    """``base + dropout(x)`` in one pass."""

    @staticmethod
    def forward(ctx: Any, base: Tensor, x: Tensor, probability: float) -> Tensor:
        keep, ctx.scale = keep_mask(x.shape, probability, x.dtype)
        ctx.save_for_backward(keep)
        if base.dtype == x.dtype:
            return torch.addcmul(base, x, keep, value=ctx.scale)
        return base + torch.mul(x, keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (keep,) = ctx.saved_tensors
        return grad, torch.mul(grad, keep).mul_(ctx.scale).to(keep.dtype), None


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Zeroes each value with ``probability`` and scales the rest, while training; the global torch generator decides."""
    if not training or probability == 0.0:
        return x
    if x.device.type == "cpu":
        return _Dropout.apply(x, probability)  # type: ignore[no-untyped-call, no-any-return]
    return F.dropout(x, probability)


def add_dropped(base: Tensor, x: Tensor, probability: float, training: bool) -> Tensor:
    """``base + dropout(x)``."""
    if training and probability > 0.0 and x.device.type == "cpu":
        return _AddDropped.apply(base, x, probability)  # type: ignore[no-untyped-call, no-any-return]
    return base + dropout(x, probability, training)


def kept(like: Tensor, probability: float) -> Tensor | None:
    """What dropout multiplies values of the shape of ``like`` with: 0, or the scale; None where it keeps all."""
    if probability == 0.0:
        return None
    if like.device.type != "cpu":
        return F.dropout(torch.ones_like(like), probability)
    keep, scale = keep_mask(like.shape, probability, like.dtype)
    return keep.mul_(scale)
