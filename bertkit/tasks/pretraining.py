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

_CHUNK = 2**23  # logits held at a time: 33 MB in fp32, 274 rows of BERT's vocabulary


def wide(x: Tensor) -> Tensor:
    """``x`` in fp32, or fp64 where it is that: what sums and softmaxes are made in."""
    return x if x.dtype == torch.float64 else x.float()


def cross_entropy(logits: Tensor, labels: Tensor) -> LossPart:
    """Sum of cross-entropies of ``[N, K]`` logits against ``[N]`` labels, and how many are right."""
    total = F.cross_entropy(wide(logits), labels, reduction="sum")
    return LossPart(total, labels.shape[0], (logits.detach().argmax(-1) == labels).sum())


def vocabulary_logits(states: Tensor, words: Tensor, bias: Tensor, size: int) -> Tensor:
    """``[M, V]``: the scores of every word, the plain way."""
    return F.linear(states, words, bias)[..., :size]


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
            matrix, offset, low = words.to(kind), bias.to(kind), states.to(kind)
            total = wide(states.new_zeros(()))
            correct = labels.new_zeros(())
            into_states, into_bias = torch.zeros_like(states), torch.zeros_like(bias)
            into_words: Tensor | None = None
            rows = max(1, chunk // words.shape[0])
            for start in range(0, labels.shape[0], rows):
                here = slice(start, start + rows)
                # The bias is added afterwards: as a part of the product it would be copied over the result beforehand.
                logits = wide(torch.mm(low[here], matrix.t()).add_(offset))  # [c, V']
                if size < words.shape[0]:
                    logits[:, size:] = -torch.inf
                own = labels[here, None]
                best, chosen = logits.amax(1, keepdim=True), logits.gather(1, own)
                slope = torch.softmax(logits, 1)  # [c, V']
                # The largest probability is at least 1/V, so its logarithm is safe where that of the label's may not be.
                total += (best - slope.amax(1, keepdim=True).log() - chosen).sum()
                correct += (chosen == best).sum()
                slope.scatter_add_(1, own, slope.new_full(own.shape, -1.0))
                into_bias += slope.sum(0)
                thin = slope.to(kind)
                into_states[here] = thin @ matrix
                if into_words is None:
                    into_words = torch.mm(thin.t(), low[here]).to(words.dtype)
                elif kind == words.dtype:
                    into_words.addmm_(thin.t(), low[here])
                else:
                    into_words += thin.t() @ low[here]
        ctx.gradients = into_states, torch.zeros_like(words) if into_words is None else into_words, into_bias
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
