"""What every source of batches offers, and the place in it that a checkpoint keeps.

A source is a pure function of (epoch, batch): it can be pickled into a worker, asked in any order, and split over any
number of processes, and always gives the same sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How far the data has been used: the epoch, and the batches of it that are done. Both count from 0."""

    epoch: int = 0
    batch: int = 0


class Batch(Protocol):
    """One forward pass of one process."""

    @property
    def tokens(self) -> int:
        """Tokens of the batch, special tokens included."""

    def counts(self) -> dict[str, int]:
        """The count that each part of the loss is divided by."""

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Any:
        """The same batch on ``device``."""


@runtime_checkable
class BatchSource(Protocol):
    """A pure, picklable function of (epoch, batch).

    Attributes:
        micro_tokens: Tokens per forward pass at most; None: a process's share of a step is one pass.
    """

    micro_tokens: int | None

    def steps(self, epoch: int) -> int:
        """Optimizer steps of this epoch."""

    def step(self, epoch: int, index: int, rank: int = 0, world: int = 1) -> list[Any]:
        """The micro-batches of process ``rank`` of ``world`` in one optimizer step; empty where its share is."""


def cut_by_tokens(lengths: Sequence[int] | NDArray[np.integer], budget: int | None) -> list[slice]:
    """Cuts sequences, in their order, into micro-batches of at most ``budget`` tokens each.

    A sequence longer than the budget is a micro-batch of its own; ``None`` cuts nothing. No sequences, no slices.
    """
    if not len(lengths):
        return []
    slices: list[slice] = []
    start, held = 0, 0
    for index, length in enumerate(lengths):
        if budget is not None and index > start and held + int(length) > budget:
            slices.append(slice(start, index))
            start, held = index, 0
        held += int(length)
    slices.append(slice(start, len(lengths)))
    return slices
