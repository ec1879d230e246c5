"""Muon (Jordan et al. 2024): the momentum of each matrix inside the model, made orthogonal; AdamW for all that is no such matrix.

A gradient's momentum is nearly always of low rank: AdamW's steps move a matrix along few directions. Here every direction that
the momentum has is moved along alike: the step is U Vᵀ of its singular value decomposition U S Vᵀ, found by a few matrix
products (Newton and Schulz). It is scaled to the mean square that AdamW's steps have (Liu et al. 2025), so both take one learning
rate and one decay.

Shapes: n matrices of a rows and b columns, a ≤ b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor

from bertkit.training.precision import Became, native_bf16

COEFFICIENTS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
"""Of x ↦ c₁x + c₂x³ + c₃x⁵, one after another: each the best approximation of 1 on what the one before makes of [0.01, 1]
(Amsel et al. 2025). Three bring every singular value of that range to 0.73 … 1.27, for which Jordan's one polynomial takes five.
"""
_ROOM = 1.02  # the largest singular value stays below 1 in bfloat16 too, above which the first polynomial grows fast
_LEAST = 1e-15  # a norm below which nothing is made larger
_RMS = 0.2  # of AdamW's steps, by Liu et al. 2025
_AT_ONCE = 2**22  # numbers in one batched product: enough to fill it, and 16 MB


def orthogonal(matrices: Tensor, products: torch.dtype) -> Tensor:
    """``[n, a, b]`` to nearly U Vᵀ of each, whatever its scale, made in ``products``.

    Directions below 1 % of a matrix's norm come out smaller than the others.
    """
    # Its own norm first: squares of squares of small gradients would be 0.
    own = torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True).clamp(min=_LEAST)
    x: Tensor = (matrices / own).to(products)
    gram = torch.bmm(x, x.mT)  # [n, a, a]
    # The Frobenius norm of X Xᵀ bounds the square of X's largest singular value, more closely than X's own norm does.
    wide = torch.promote_types(products, torch.float32)
    square = torch.linalg.vector_norm(gram, dim=(1, 2), keepdim=True, dtype=wide).mul(_ROOM**2).clamp(min=_LEAST)
    x, gram = x * square.rsqrt().to(products), gram / square.to(products)
    if products != torch.bfloat16 and x.shape[2] >= 2 * x.shape[1]:
        return torch.bmm(_factor(gram), x)
    for number, (first, third, fifth) in enumerate(COEFFICIENTS):
        gram = torch.bmm(x, x.mT) if number else gram
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth), x, beta=first)
    return x


def _factor(gram: Tensor) -> Tensor:
    """``[n, a, a]``, the product of all polynomials, from X Xᵀ alone: a third less work for four times as many columns as rows.

    Rounding grows with the squares of singular values here, which fp32 bears and bfloat16 does not.
    """
    whole: Tensor | None = None
    for number, (first, third, fifth) in enumerate(COEFFICIENTS):
        part = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        part.diagonal(dim1=1, dim2=2).add_(first)
        whole = part if whole is None else torch.bmm(part, whole)
        if number + 1 < len(COEFFICIENTS):
            gram = torch.bmm(torch.bmm(part, gram), part)
    assert whole is not None
    return whole


def products_type(precision: Became, device: torch.device) -> torch.dtype:
    """What the products of :func:`orthogonal` are made in: bfloat16 where a run is not in fp32 and the device has it."""
    return torch.bfloat16 if precision != "fp32" and native_bf16(device) else torch.float32


class Muon(torch.optim.Optimizer):
    """Muon for the groups that say ``orthogonal``, AdamW for the others.

    Args:
        groups: Of parameters, each with ``orthogonal`` and ``weight_decay``.
        pieces: How many matrices lie one below the other in a parameter of an orthogonal group, where it is not one.
        lr: Rate of the first step.
        momentum: Decay of the mean of gradients of an orthogonal group, per step.
        products: What the matrix products are made in.
        adamw: Makes the AdamW of the other groups.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        pieces: Mapping[Tensor, int],
        lr: float,
        momentum: float,
        products: torch.dtype,
        adamw: Callable[[list[dict[str, Any]]], torch.optim.AdamW],
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum})
        self.products, self._pieces = products, dict(pieces)
        # It works on the very same groups and the same state, so that rates and checkpoints know one optimizer.
        self._adamw = adamw([group for group in self.param_groups if not group["orthogonal"]])
        self._adamw.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step of every parameter that has a gradient."""
        if closure is not None:
            raise ValueError("the loop has no closure")
        self._adamw.step()
        for group in self.param_groups:
            if group["orthogonal"]:
                self._turn(group)

    def _turn(self, group: dict[str, Any]) -> None:
        shapes: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
        for parameter in group["params"]:
            if parameter.grad is not None:
                update = self._momentum(parameter, group["momentum"])
                count = self._pieces.get(parameter, 1)
                for own, piece in zip(parameter.chunk(count), update.chunk(count), strict=True):
                    wide = (own, piece) if own.shape[0] <= own.shape[1] else (own.mT, piece.mT)
                    shapes.setdefault(cast(tuple[int, int], tuple(wide[0].shape)), []).append(wide)
        for (rows, columns), pairs in shapes.items():
            size = max(1, _AT_ONCE // (rows * columns))
            length = group["lr"] * _RMS * math.sqrt(columns)
            for start in range(0, len(pairs), size):
                some = pairs[start : start + size]
                turned = orthogonal(torch.stack([piece for _, piece in some]), self.products)
                for (own, _), each in zip(some, turned, strict=True):
                    own.mul_(1 - group["lr"] * group["weight_decay"]).add_(each, alpha=-length)

    def _momentum(self, parameter: Tensor, decay: float) -> Tensor:
        """Nesterov's: where the mean of the gradients will be, seen from the newest."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"] = torch.zeros_like(parameter)
        state["step"] += 1
        state["exp_avg"].lerp_(parameter.grad, 1 - decay)
        return parameter.grad.lerp(state["exp_avg"], decay)
