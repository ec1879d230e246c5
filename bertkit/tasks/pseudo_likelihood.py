"""Pseudo-log-likelihoods: each token of a sentence masked in turn, and the log P of it summed (Salazar et al. 2020).

A sentence of n tokens is n copies of n + 2, ``[CLS]`` and ``[SEP]`` with it, which are not masked themselves. Of a copy the
last layer is finished, and the vocabulary scored, at the masked place alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from bertkit.batches.collator import PretrainingBatch
from bertkit.packed import PackedSequences
from bertkit.tasks.models import TaskModel
from bertkit.tasks.pretraining import wide

Ints = NDArray[np.int64]


class MaskedCopies:
    """The copies of some sentences.

    Args:
        sentences: Ids of each without special tokens, at least one.
        cls_id: The id of ``[CLS]``.
        sep_id: The id of ``[SEP]``.
        mask_id: The id of ``[MASK]``.

    Attributes:
        sentence: ``[C]`` the sentence of each copy, never falling.
        place: ``[C]`` the place of its mask, 1 for the first token.
        lengths: ``[C]`` tokens of each.
    """

    def __init__(self, sentences: Sequence[NDArray[np.integer]], *, cls_id: int, sep_id: int, mask_id: int) -> None:
        self._laid = [np.concatenate([[cls_id], ids, [sep_id]]).astype(np.int64) for ids in sentences]
        self._mask_id = mask_id
        counts = np.array([len(ids) for ids in sentences], dtype=np.int64)
        self.sentence = np.repeat(np.arange(len(counts)), counts)
        self.place = np.arange(len(self.sentence)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        self.lengths = counts[self.sentence] + 2

    def batch(self, numbers: Sequence[int]) -> PretrainingBatch:
        """Some copies: one masked token each."""
        chosen = np.asarray(numbers)
        lengths = self.lengths[chosen]
        ids = np.concatenate([self._laid[number] for number in self.sentence[chosen].tolist()])
        positions = np.cumsum(lengths) - lengths + self.place[chosen]
        labels = ids[positions]
        ids[positions] = self._mask_id
        return PretrainingBatch(
            packed=PackedSequences.from_lengths(
                torch.from_numpy(ids), torch.zeros(len(ids), dtype=torch.int64), torch.from_numpy(lengths)
            ),
            masked_positions=torch.from_numpy(positions),
            masked_labels=torch.from_numpy(labels),
            next_sentence_labels=None,
        )

    def summed(self, scores: Sequence[float]) -> NDArray[np.float64]:
        """``[sentences]`` of one score a copy."""
        ends = np.cumsum(np.bincount(self.sentence, minlength=len(self._laid)))[:-1]
        return np.array([part.sum() for part in np.split(np.asarray(scores, dtype=np.float64), ends)])


def log_likelihoods(model: nn.Module, batch: PretrainingBatch) -> list[float]:
    """The log P of the masked token of each copy, in nats."""
    assert isinstance(model, TaskModel)
    logits = wide(model.outputs(batch.packed, batch.masked_positions))
    found: list[float] = (-F.cross_entropy(logits, batch.masked_labels, reduction="none")).double().cpu().tolist()
    return found
