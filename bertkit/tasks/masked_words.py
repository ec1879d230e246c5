"""What a pretrained model says of masked examples: its nats and its hits for each masked token and each pair.

Shapes: M masked tokens, S sequences, V the vocabulary's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batches.collator import PretrainingBatch
from bertkit.tasks.heads import Pretraining
from bertkit.tasks.models import TaskModel
from bertkit.tasks.pretraining import wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """One example.

    Attributes:
        nats: ``[m]`` -log P of what stood there, in the order of its places.
        right: ``[m]`` was it the likeliest?
        pair: The same of its pair's label; None where it has none.
    """

    nats: NDArray[np.float64]
    right: NDArray[np.bool_]
    pair: tuple[float, bool] | None = None


def guesses(model: nn.Module, batch: PretrainingBatch) -> list[Guesses]:
    """The guesses of a batch, one an example."""
    assert isinstance(model, TaskModel)
    hidden = model.hidden(batch.packed)
    nats, right = _of(model.head.outputs(hidden, batch.masked_positions), batch.masked_labels)
    edges = torch.searchsorted(batch.masked_positions, batch.packed.boundaries[1:-1].long()).cpu().numpy()
    rows = zip(np.split(nats, edges), np.split(right, edges), strict=True)
    if batch.next_sentence_labels is None:
        return [Guesses(nats=row, right=hits) for row, hits in rows]
    pairs = zip(*_of(cast(Pretraining, model.head).next_sentence(hidden), batch.next_sentence_labels), strict=True)
    return [
        Guesses(nats=row, right=hits, pair=(float(loss), bool(hit))) for (row, hits), (loss, hit) in zip(rows, pairs, strict=True)
    ]


def _of(logits: Tensor, labels: Tensor) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    losses = F.cross_entropy(wide(logits), labels, reduction="none").double().cpu().numpy()
    return losses, (logits.argmax(-1) == labels).cpu().numpy()
