"""Masked-LM and next-sentence losses: L_MLM = -Σ log P(x_i | x without M) over the chosen positions, and cross-entropy of two.

Shapes: M chosen positions, S sequences, H the width, V the vocabulary's size, V' ≥ V the rows of its matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertkit.tasks.losses import LossPart

_CHUNK = 2**24  # logits held at a time: 67 MB in fp32, 549 rows of BERT's vocabulary
_PIECE = 2**20  # of those, made into probabilities at a time on a CPU: 4 MB, so that each pass finds them in its cache


def wide(x: Tensor) -> Tensor:
    """``x`` in fp32, or fp64 where it is that: what sums and softmaxes are made in."""
    return x if x.dtype == torch.float64 else x.float()


def cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> LossPart:
    """Sum of cross-entropies of ``[N, K]`` logits against ``[N]`` labels, each times its weight ``[N]``; how many are right."""
    total = F.cross_entropy(wide(logits), labels, reduction="sum" if weights is None else "none")
    if weights is not None:
        total = (total * weights).sum()
    return LossPart(total, labels.shape[0], (logits.detach().argmax(-1) == labels).sum())


def vocabulary_logits(states: Tensor, words: Tensor, bias: Tensor, size: int) -> Tensor:
    """``[M, V]``: the scores of every word, the plain way."""
    return F.linear(states, words, bias)[..., :size]


def _evenly(count: int, most: int) -> int:
    """Rows of a chunk: as few chunks of at most ``most`` rows as there can be, of one size."""
    return max(1, -(-count // max(1, -(-count // most))))


def _slopes(logits: Tensor, own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cross-entropy of ``[c, V']`` logits, that are used up, against ``[c, 1]`` labels.

    Returns:
        Its sum, how many are right, and its slopes ``[c, V']``: the probabilities, less 1 at the labels.
    """
    best, chosen = logits.amax(1, keepdim=True), logits.gather(1, own)
    slope: Tensor = torch.softmax(logits, 1, out=logits if logits.device.type == "cpu" else None)
    # The largest probability is at least 1/V, so its logarithm is safe where that of the label's may not be.
    loss = (best - slope.amax(1, keepdim=True).log() - chosen).sum()
    return loss, (chosen == best).sum(), slope.scatter_add_(1, own, slope.new_full(own.shape, -1.0))


class _Chunked(torch.autograd.Function):
    """Cross-entropy over a vocabulary whose gradients are made at once, some rows at a time.

    ``[M, V]`` logits, their softmax and its gradient are 75 MB each for 615 positions of BERT's vocabulary; here one chunk
    of them is alive. The gradients for a sum of 1 are kept and scaled in the backward pass, so they are exact.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, words: Tensor, bias: Tensor, labels: Tensor, size: int, chunk: int
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else words.dtype
        with torch.autocast(device, enabled=False):
            matrix, low = words.to(kind), states.to(kind)
            offset = wide(bias).clone()
            offset[size:] = -torch.inf
            total = wide(states.new_zeros(()))
            correct = labels.new_zeros(())
            into_states, into_bias = torch.empty_like(low), torch.zeros_like(bias)
            into_words: Tensor | None = None
            count = labels.shape[0]
            rows = _evenly(count, max(1, chunk // words.shape[0]))
            few = max(1, _PIECE // words.shape[0]) if device == "cpu" else rows
            for start in range(0, count, rows):
                here = slice(start, start + rows)
                # The bias is added afterwards: as a part of the product it would be copied over the result beforehand.
                logits = torch.mm(low[here], matrix.t())  # [c, V']
                for piece, own in zip(torch.split(logits, few), torch.split(labels[here, None], few), strict=True):
                    slope = wide(piece).add_(offset)
                    loss, right, slope = _slopes(slope, own)
                    total += loss
                    correct += right
                    into_bias += slope.sum(0)
                    if slope is not piece:
                        piece.copy_(slope)
                torch.mm(logits, matrix, out=into_states[here])
                if into_words is None:
                    into_words = torch.mm(logits.t(), low[here]).to(words.dtype)
                elif kind == words.dtype:
                    into_words.addmm_(logits.t(), low[here])
                else:
                    into_words += logits.t() @ low[here]
        ctx.gradients = into_states.to(states.dtype), torch.zeros_like(words) if into_words is None else into_words, into_bias
        ctx.mark_non_differentiable(correct)
        return total, correct

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError("the chunked cross-entropy goes backwards once: its gradients are scaled in place")
        gradients, ctx.gradients = ctx.gradients, None
        return (*(g.mul_(grad) for g in gradients), None, None, None)


def masked_lm_loss(states: Tensor, words: Tensor, bias: Tensor, labels: Tensor, size: int, *, chunk: int = _CHUNK) -> LossPart:
    """The masked-LM loss of ``[M, H]`` transformed states.

    Args:
        states: At the chosen positions, after the head's transform.
        words: ``[V', H]``, the decoder.
        bias: ``[V']``.
        labels: ``[M]`` int64, below ``size``.
        size: V; rows behind it are padding and have no probability.
        chunk: Logits held at a time while training.
    """
    if not torch.is_grad_enabled():
        return cross_entropy(vocabulary_logits(states, words, bias, size), labels)
    total, correct = _Chunked.apply(states, words, bias, labels, size, chunk)  # type: ignore[no-untyped-call]
    return LossPart(total, labels.shape[0], correct)


def unigram_bias(frequencies: np.ndarray) -> Tensor:
    """``[V]`` fp32: log of the add-one share of each id, where the output bias may start.

    A new model then begins at the unigram's cross-entropy instead of ln V, and need not learn word frequencies first.

    Args:
        frequencies: ``[V]`` counts of the training text (``TokenStore.frequencies()``).
    """
    counts = frequencies.astype(np.float64) + 1.0
    return torch.from_numpy(np.log(counts / counts.sum())).float()
