"""Attention: the one place where attention kernels live. Every token attends to every token of its own sequence.

In come queries, keys and values of packed tokens; out comes the weighted sum. No mask of causes, none across sequences.

Shapes: T tokens, S sequences, h heads, d columns a head, L the longest sequence; within a group g sequences padded to n
tokens; P rows of all groups together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.model.layers import keep_mask
from bertkit.model.rows import selected, shapes_cost
from bertkit.packed import PackedSequences

_STEP = 16  # tokens: sequences of like length are padded to the longest of their step, by at most 15 tokens each (or to the step)
_NEVER = torch.finfo(torch.float32).min


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences computed together: ``count`` of them over ``length`` columns each; ``mask`` is ``[g, 1, 1, n]``, or None."""

    count: int
    length: int
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class Layout:
    """How a batch's tokens are laid out for the plain path; made once a batch and used by every layer.

    A row is one head of one token, ``[d]``. Rows go straight from the fused product ``[T, 3, h, d]`` to ``[3, g, h, n, d]`` of
    each group and back, one copy each way.

    Attributes:
        groups: In the order of the rows.
        gather: ``[3·P·h]`` int64, which row of ``[T, 3, h]`` each row takes (padding repeats a real one).
        scatter: ``[T·3·h]`` int64, where each row of ``[T, 3, h]`` went.
        spread: ``[P·h]`` int64, which row of ``[T, h]`` each result belongs to.
        back: ``[T·h]`` int64, where the result of each row of ``[T, h]`` is.
        padding: The results of no token, int64, or None where there are none.
    """

    groups: tuple[Group, ...]
    gather: Tensor
    scatter: Tensor
    spread: Tensor
    back: Tensor
    padding: Tensor | None


@dataclass(frozen=True, slots=True)
class Padded:
    """How a batch is laid out on an accelerator where it cannot lie end to end: each sequence over L columns.

    Attributes:
        rows: ``[T]`` int64, each token's place in ``[S·L]``.
        real: ``[S, 1, 1, L]`` bool, which columns hold a token.
    """

    rows: Tensor
    real: Tensor


def layout_of(packed: PackedSequences, heads: int) -> Layout | Padded:
    """The plan for a batch: groups of like length on the CPU, elsewhere one padded rectangle, made without asking the device."""
    return _grouped(packed, heads) if packed.boundaries.device.type == "cpu" else _rectangle(packed)


def _rectangle(packed: PackedSequences) -> Padded:
    owner = packed.sequence_ids()
    column = torch.arange(packed.tokens, device=owner.device) - packed.boundaries.long()[owner]
    real = torch.arange(packed.longest, device=owner.device) < packed.boundaries.diff()[:, None]  # [S, L]
    return Padded(owner * packed.longest + column, real[:, None, None])


def _grouped(packed: PackedSequences, heads: int) -> Layout:
    starts, lengths = packed.boundaries[:-1].long(), packed.boundaries.diff().long()
    steps = torch.div(lengths + _STEP - 1, _STEP, rounding_mode="floor")
    few_shapes = shapes_cost(starts.device)
    head = torch.arange(heads)[:, None]  # [h, 1]
    groups, gathers, spreads, real_rows = [], [], [], []
    for step in sorted(set(steps.tolist())):
        members = steps == step
        own = lengths[members]
        length = step * _STEP if few_shapes else int(own.max())
        column = torch.arange(length)
        real = column < own[:, None]  # [g, n]
        token = starts[members][:, None] + torch.where(real, column, 0)  # [g, n]
        row = token[:, None] * heads + head  # [g, h, n] into [T, h]
        fused = token[:, None] * 3 * heads + head  # [g, h, n] into [T, 3, h], queries
        full = bool(real.all())
        groups.append(
            Group(len(own), length, None if full else torch.zeros(real.shape).masked_fill(~real, _NEVER)[:, None, None])
        )
        gathers += [(fused + part * heads).flatten() for part in range(3)]
        spreads.append(row.flatten())
        real_rows.append(real[:, None].expand(row.shape).flatten())
    gather, spread, is_real = torch.cat(gathers), torch.cat(spreads), torch.cat(real_rows)
    thrice = torch.cat([part for part in real_rows for _ in range(3)])
    scatter, back = (
        torch.empty(packed.tokens * 3 * heads, dtype=torch.int64),
        torch.empty(packed.tokens * heads, dtype=torch.int64),
    )
    scatter[gather[thrice]] = thrice.nonzero().flatten()
    back[spread[is_real]] = is_real.nonzero().flatten()
    padding = None if bool(is_real.all()) else (~is_real).nonzero().flatten()
    return Layout(tuple(groups), gather, scatter, spread, back, padding)


@dataclass(slots=True)
class _Kept:
    """What one group's backward pass needs: ``[g·h, n, n]`` each."""

    weights: Tensor
    keep: Tensor | None


def _parts(rows: Tensor, layout: Layout, heads: int, times: int) -> list[tuple[Tensor, ...]]:
    """Views ``[g·h, n, d]``, ``times`` of them for each group, of rows ``[times·P·h, d]``."""
    made, start = [], 0
    for group in layout.groups:
        size = group.count * heads * group.length
        views = (rows[start + part * size : start + (part + 1) * size] for part in range(times))
        made.append(tuple(view.view(group.count * heads, group.length, -1) for view in views))
        start += times * size
    return made


def _product(a: Tensor, b: Tensor, scale: float, out: Tensor | None = None) -> Tensor:
    """scale · a b, batched."""
    if out is None:
        return torch.baddbmm(a.new_empty(1, 1, 1), a, b, beta=0, alpha=scale)
    return torch.baddbmm(out, a, b, beta=0, alpha=scale, out=out)


def _weigh(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(q kᵀ / √d), ``[g·h, n, n]``, in fp32 at least."""
    scores = _product(q, k.transpose(1, 2), q.shape[-1] ** -0.5)
    scores = scores if scores.dtype == torch.float64 else scores.float()
    if mask is not None:
        scores.view(mask.shape[0], -1, *scores.shape[1:]).add_(mask)
    return scores.softmax(-1)


class _Plain(torch.autograd.Function):
    """Two batched products with a softmax between them, and by hand the way back: a third fewer copies than autograd makes.

    ``[T, 3, h, d]`` in, ``[T, h, d]`` out; rows behind the layout's tokens stay out of it and come out as zeros.
    """

    @staticmethod
    def forward(ctx: Any, fused: Tensor, layout: Layout, dropout: float) -> Tensor:
        rows, _, heads, width = fused.shape
        laid = fused.reshape(-1, width).index_select(0, layout.gather)
        result = laid.new_empty(layout.spread.shape[0], width)
        kept = []
        ctx.scale = 1.0
        for group, (q, k, v), (out,) in zip(
            layout.groups, _parts(laid, layout, heads, 3), _parts(result, layout, heads, 1), strict=True
        ):
            weights = _weigh(q, k, group.mask)
            keep = None
            if dropout > 0.0:
                keep, ctx.scale = keep_mask(weights.shape, dropout, weights.dtype)
            _product((weights if keep is None else weights * keep).to(v.dtype), v, ctx.scale, out)
            kept.append(_Kept(weights, keep))
        ctx.layout, ctx.kept = layout, kept
        ctx.save_for_backward(laid)
        return selected(result, layout.back, rows * heads).view(rows, heads, width)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        layout: Layout = ctx.layout
        (laid,) = ctx.saved_tensors
        rows, heads, width = grad.shape
        slope = grad.reshape(-1, width).index_select(0, layout.spread)
        if layout.padding is not None:
            slope.index_fill_(0, layout.padding, 0.0)
        made = torch.empty_like(laid)
        every = (_parts(laid, layout, heads, 3), _parts(slope, layout, heads, 1), _parts(made, layout, heads, 3), ctx.kept)
        for (q, k, v), (into,), (to_q, to_k, to_v), kept in zip(*every, strict=True):
            weights, keep = kept.weights, kept.keep
            used = (weights if keep is None else weights * keep).to(v.dtype)
            _product(used.transpose(1, 2), into, ctx.scale, to_v)
            steep = _product(into, v.transpose(1, 2), ctx.scale).to(weights.dtype)
            if keep is not None:
                steep.mul_(keep)
            steep = torch._softmax_backward_data(steep, weights, -1, weights.dtype).to(q.dtype)
            _product(steep, k, width**-0.5, to_q)
            _product(steep.transpose(1, 2), q, width**-0.5, to_k)
        return selected(made, layout.scatter, rows * 3 * heads).view(rows, 3, heads, width), None, None


def _padded(fused: Tensor, layout: Padded, dropout: float) -> Tensor:
    """torch's own attention over padded sequences. ``[T, 3, h, d]`` in, ``[T, h, d]`` out."""
    count, length, (_, heads, width) = layout.real.shape[0], layout.real.shape[-1], fused.shape[1:]
    # Copying rows in and selecting rows out go back as a selection and a sum; indexing would go back by sorting.
    laid = fused.new_zeros(count * length, *fused.shape[1:]).index_copy(0, layout.rows, fused)
    q, k, v = laid.view(count, length, 3, heads, width).permute(2, 0, 3, 1, 4)  # [S, h, L, d]
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=layout.real, dropout_p=dropout)
    return context.transpose(1, 2).reshape(-1, heads, width).index_select(0, layout.rows)


@cache
def _end_to_end() -> Callable[..., Any] | None:
    """torch's variable-length attention, or None where this torch has none; only CUDA asks: it loads torch's compiler (5 s)."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def lies_end_to_end(fused: Tensor, dropout: float) -> bool:
    """Does torch's variable-length kernel take these ``[T, 3, h, d]``? It knows CUDA, half precision and no dropout."""
    half, width = fused.dtype in (torch.float16, torch.bfloat16), fused.shape[-1]
    return fused.is_cuda and half and dropout == 0.0 and width % 8 == 0 and width <= 256 and _end_to_end() is not None


def attend(
    q: Tensor, k: Tensor, v: Tensor, packed: PackedSequences, *, dropout: float = 0.0, layout: Layout | Padded | None = None
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
    return attend_fused(torch.stack([q, k, v], 1), packed, dropout=dropout, layout=layout)


def attend_fused(
    fused: Tensor, packed: PackedSequences, *, dropout: float = 0.0, layout: Layout | Padded | None = None
) -> Tensor:
    """:func:`attend` of queries, keys and values that lie together as one product gives them, ``[T, 3, h, d]``."""
    if lies_end_to_end(fused, dropout):
        bounds, longest = packed.boundaries, packed.longest
        kernel = cast(Callable[..., Tensor], _end_to_end())
        return kernel(*fused.unbind(1), bounds, bounds, longest, longest)
    layout = layout_of(packed, fused.shape[2]) if layout is None else layout
    if isinstance(layout, Padded):
        return _padded(fused, layout, dropout)
    return _Plain.apply(fused, layout, dropout)  # type: ignore[no-untyped-call, no-any-return]


def attention_weights(fused: Tensor, packed: PackedSequences) -> Tensor:
    """The weights themselves, ``[S, h, L, L]`` in fp32, zero for padding columns (rows of padding mean nothing)."""
    q, k, _ = fused.unbind(1)
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    laid_q, laid_k = (packed.pad(x.to(wide)).transpose(1, 2) for x in (q, k))  # [S, h, L, d]
    real = packed.pad(torch.ones_like(packed.input_ids)) > 0
    with torch.autocast(q.device.type, enabled=False):  # it would multiply in half precision, which has no such minimum
        scores = laid_q @ laid_k.transpose(2, 3) * q.shape[-1] ** -0.5
    weights: Tensor = scores.masked_fill(~real[:, None, None], torch.finfo(wide).min).softmax(-1)
    return weights * real[:, None, :, None]
