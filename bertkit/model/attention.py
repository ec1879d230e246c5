"""Attention: the one place where attention kernels live. Every token attends to every token of its own sequence.

In come queries, keys and values of packed tokens; out comes the weighted sum. No mask of causes, none across sequences.

Shapes: T tokens, S sequences, h heads, d columns a head; within a group g sequences padded to n tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.model.layers import dropout as drop
from bertkit.packed import PackedSequences

try:  # CUDA builds of torch 2.10 and later have it; older and other builds take the plain path
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # pragma: no cover
    varlen_attn = None  # type: ignore[assignment, unused-ignore]

_STEP = 16  # tokens: sequences of like length are padded to the longest of their step, at most 15 tokens each


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences computed together: ``count`` of them over ``length`` columns each; ``mask`` is ``[g, 1, n]``, or None."""

    count: int
    length: int
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a batch's tokens are laid out for the plain path; made once a batch and used by every layer.

    Attributes:
        groups: In the order of the padded rows.
        gather: ``[P]`` int64, each padded row's token (padding repeats a real one), or None where the tokens lie so already.
        back: ``[T]`` int64, the padded row of each token.
    """

    groups: tuple[Group, ...]
    gather: Tensor | None
    back: Tensor | None


def layout_of(packed: PackedSequences) -> Layout:
    """Groups a batch's sequences by length on the CPU; elsewhere one group, padded to the longest, without asking the device."""
    if packed.boundaries.device.type == "cpu":
        return _grouped(packed)
    counts = packed.boundaries.diff()  # [S]
    column = torch.arange(packed.longest, device=counts.device)
    real = column < counts[:, None]  # [S, n]
    gather = packed.boundaries[:-1, None].long() + torch.where(real, column, 0)  # [S, n]
    owner = packed.sequence_ids()
    back = owner * packed.longest + (torch.arange(packed.tokens, device=owner.device) - packed.boundaries.long()[owner])
    mask = torch.zeros(real.shape, device=real.device).masked_fill(~real, torch.finfo(torch.float32).min)
    return Layout((Group(packed.sequences, packed.longest, mask[:, None]),), gather.flatten(), back)


def _grouped(packed: PackedSequences) -> Layout:
    lengths = packed.boundaries.diff().long()
    steps = torch.div(lengths + _STEP - 1, _STEP, rounding_mode="floor")
    if bool((lengths == packed.longest).all()):
        return Layout((Group(packed.sequences, packed.longest, None),), None, None)
    groups, gathers = [], []
    back = torch.empty(packed.tokens, dtype=torch.int64)
    row = 0
    for step in sorted(set(steps.tolist())):
        members = (steps == step).nonzero().flatten()
        own = lengths[members]
        length = int(own.max())
        column = torch.arange(length)
        real = column < own[:, None]  # [g, n]
        tokens = packed.boundaries[:-1].long()[members][:, None] + torch.where(real, column, 0)
        rows = row + torch.arange(real.numel()).view_as(real)
        back[tokens[real]] = rows[real]
        mask = None if bool(real.all()) else torch.zeros(real.shape).masked_fill(~real, torch.finfo(torch.float32).min)
        groups.append(Group(len(members), length, None if mask is None else mask[:, None]))
        gathers.append(tokens.flatten())
        row += real.numel()
    return Layout(tuple(groups), torch.cat(gathers), back)


class _Spread(torch.autograd.Function):
    """Tokens ``[T, h, d]`` into padded rows ``[P, h, d]``: a gather forwards and, every token having one row, a gather back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gather: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return x.index_select(0, gather)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad.index_select(0, *ctx.saved_tensors), None, None


def _spread(x: Tensor, layout: Layout) -> Tensor:
    return x if layout.gather is None else _Spread.apply(x, layout.gather, layout.back)  # type: ignore[no-untyped-call]


def _scores_to_context(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Two batched products with a softmax between them; each of q, k, v and the result is ``[g, n, h, d]``."""
    count, length, heads, width = q.shape
    q, k, v = (x.transpose(1, 2).reshape(count * heads, length, width) for x in (q, k, v))  # [g·h, n, d]
    scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=width**-0.5)  # [g·h, n, n]
    wide = scores if scores.dtype == torch.float64 else scores.float()  # the softmax is in fp32 at least
    if mask is not None:
        wide = (wide.view(count, heads, length, length) + mask[:, None].to(wide.dtype)).view_as(scores)
    weights = wide.softmax(-1)
    context = torch.bmm(drop(weights, dropout, dropout > 0).to(v.dtype), v)  # [g·h, n, d]
    return context.view(count, heads, length, width).transpose(1, 2)


def _plain(q: Tensor, k: Tensor, v: Tensor, layout: Layout, dropout: float) -> Tensor:
    heads, width = q.shape[1:]
    q, k, v = (_spread(x, layout) for x in (q, k, v))  # [P, h, d]
    parts = []
    row = 0
    for group in layout.groups:
        rows = slice(row, row := row + group.count * group.length)
        own_q, own_k, own_v = (x[rows].view(group.count, group.length, heads, width) for x in (q, k, v))
        parts.append(_scores_to_context(own_q, own_k, own_v, group.mask, dropout).reshape(-1, heads, width))
    whole = parts[0] if len(parts) == 1 else torch.cat(parts)
    return whole if layout.back is None else whole.index_select(0, layout.back)


def _padded(q: Tensor, k: Tensor, v: Tensor, layout: Layout, dropout: float) -> Tensor:
    """torch's own fused attention on padded sequences, for accelerators where sequences cannot lie end to end."""
    heads, width = q.shape[1:]
    (group,) = layout.groups
    q, k, v = (_spread(x, layout).view(group.count, group.length, heads, width).transpose(1, 2) for x in (q, k, v))
    allowed = None if group.mask is None else (group.mask == 0)[:, None]  # [g, 1, 1, n]
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout)
    whole = context.transpose(1, 2).reshape(-1, heads, width)
    return whole if layout.back is None else whole.index_select(0, layout.back)


def attend(
    q: Tensor, k: Tensor, v: Tensor, packed: PackedSequences, *, dropout: float = 0.0, layout: Layout | None = None
) -> Tensor:
    """softmax(q kᵀ / √d) v within each sequence.

    Args:
        q: ``[T, h, d]``, and so ``k`` and ``v``.
        k: Keys.
        v: Values.
        packed: Says which tokens make a sequence.
        dropout: Share of the weights that is dropped; 0 outside training.
        layout: :func:`layout_of` of the batch, where the caller has it already.

    Returns:
        ``[T, h, d]`` in the type of ``v``.
    """
    half = q.dtype in (torch.float16, torch.bfloat16)
    if q.is_cuda and half and dropout == 0.0 and varlen_attn is not None and q.shape[-1] % 8 == 0 and q.shape[-1] <= 256:
        bounds, longest = packed.boundaries, packed.longest
        context: Tensor = varlen_attn(q, k, v, bounds, bounds, longest, longest)  # type: ignore[assignment, unused-ignore]
        return context
    layout = layout_of(packed) if layout is None else layout
    if q.device.type == "cuda":
        return _padded(q, k, v, layout, dropout)
    return _plain(q, k, v, layout, dropout)


def attention_weights(q: Tensor, k: Tensor, packed: PackedSequences) -> Tensor:
    """The weights themselves, ``[S, h, L, L]`` in fp32, zero for padding columns (rows of padding mean nothing)."""
    owner = packed.sequence_ids()
    column = torch.arange(packed.tokens, device=owner.device) - packed.boundaries.long()[owner]
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    laid_q, laid_k = (packed.pad(x.to(wide)).transpose(1, 2) for x in (q, k))  # [S, h, L, d]
    real = torch.zeros(packed.sequences, packed.longest, dtype=torch.bool, device=q.device)
    real[owner, column] = True
    scores = laid_q @ laid_k.transpose(2, 3) * q.shape[-1] ** -0.5
    weights: Tensor = scores.masked_fill(~real[:, None, None], torch.finfo(wide).min).softmax(-1)
    return weights * real[:, None, :, None]
