"""Batches of labelled examples: shuffled for fine-tuning, in order (or by length) for evaluation and prediction.

What an example is, and how several become one batch, is the kind of task's; each says its ``length`` in tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from bertkit.batches.source import cut_by_tokens
from bertkit.errors import DataError
from bertkit.randomness import stream


class Example(Protocol):
    """An encoded example."""

    @property
    def length(self) -> int:
        """Tokens, special ones included."""


E = TypeVar("E", bound=Example)


class LabelledSource(Generic[E]):
    """Batches of examples (:class:`bertkit.batches.source.BatchSource`); every epoch is a permutation of all.

    Args:
        examples: Encoded, at least one.
        collate: Makes one batch of some examples.
        seed: Of the order.
        batch_size: Sequences per optimizer step over all processes; the last one of an epoch may have fewer.
        micro_tokens: Tokens per forward pass at most; None: a step is one pass.
        shuffle: False keeps the order of ``examples`` in every epoch.

    Raises:
        DataError: There is no example (exit 3).
    """

    def __init__(
        self,
        examples: Sequence[E],
        collate: Callable[[list[E]], Any],
        *,
        seed: int,
        batch_size: int,
        micro_tokens: int | None = None,
        shuffle: bool = True,
    ) -> None:
        if not len(examples):
            raise DataError("There is nothing to train on: every training row was left out.", hint="The notes above say why.")
        self.examples, self.collate = examples, collate
        self.seed, self.batch_size, self.micro_tokens, self.shuffle = seed, batch_size, micro_tokens, shuffle
        self._order: tuple[int, np.ndarray] | None = None

    def steps(self, epoch: int) -> int:
        """Optimizer steps of this epoch, the same for all."""
        return -(-len(self.examples) // self.batch_size)

    def order(self, epoch: int) -> np.ndarray:
        """``[n]`` int64: which example comes when."""
        if self._order is None or self._order[0] != epoch:
            count = len(self.examples)
            order = stream(self.seed, "order", epoch).permutation(count) if self.shuffle else np.arange(count)
            self._order = (epoch, order)
        return self._order[1]

    def step(self, epoch: int, index: int, rank: int = 0, world: int = 1) -> list[Any]:
        """The micro-batches of process ``rank`` of ``world``: a contiguous share of the batch, as even as may be."""
        if not 0 <= index < self.steps(epoch):
            raise IndexError(f"epoch {epoch} has {self.steps(epoch)} batches, no batch {index}")
        rows = self.order(epoch)[index * self.batch_size : (index + 1) * self.batch_size]
        share = [self.examples[int(row)] for row in rows[len(rows) * rank // world : len(rows) * (rank + 1) // world]]
        return [self.collate(share[part]) for part in cut_by_tokens([example.length for example in share], self.micro_tokens)]


def batches_by_tokens(lengths: Sequence[int], tokens: int, *, window: int = 1) -> list[list[int]]:
    """Batches of at most ``tokens`` tokens for evaluation, as numbers of examples, each exactly once.

    Args:
        lengths: Tokens of each example.
        tokens: Tokens per batch at most; an example longer than that is a batch of its own.
        window: Examples that are sorted by length together, longest first; 1 keeps the order.
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.arange(len(sizes))
    for low in range(0, len(order), window) if window > 1 else ():
        part = order[low : low + window]
        order[low : low + window] = part[np.argsort(-sizes[part], kind="stable")]
    return [order[cut].tolist() for cut in cut_by_tokens(sizes[order], tokens)]
