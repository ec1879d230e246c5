"""Rows as a model takes them: sequences of ids, end to end in a batch.

Shapes: n tokens of one example, S sequences of a batch, T tokens of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from bertkit.packed import PackedSequences
from bertkit.tasks.coverage import Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One sequence for the model, or several that go together; kinds subclass it with what they train on.

    Attributes:
        row: Which row it comes from; several windows may share one.
        ids: ``[n]`` int32, special tokens included; of several sequences one behind another.
        types: ``[n]`` int32, segments.
    """

    row: int
    ids: np.ndarray
    types: np.ndarray

    @property
    def length(self) -> int:
        """n, its tokens."""
        return len(self.ids)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The tokens of each of its sequences, n in all."""
        return (len(self.ids),)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Examples in the order of their rows, and what the settings put out of reach."""

    examples: list[Any]
    coverage: Coverage


def count_unknown(examples: Sequence[Example], unknown: int, coverage: Coverage) -> None:
    """Counts what the vocabulary does not have: words that the model cannot tell apart, and trains on as well."""
    if examples:
        ids = np.concatenate([example.ids for example in examples])
        coverage.tokens, coverage.unknown_tokens = len(ids), int(np.count_nonzero(ids == unknown))


class LabelledBatch(Protocol):
    """A batch for the loop: what it reads of any. Each kind's is a frozen dataclass with the labels that its head reads."""

    packed: PackedSequences

    @property
    def tokens(self) -> int:
        """T."""
        ...

    def counts(self) -> dict[str, int]:
        """Targets of each loss part, ``{"classification": S}``."""
        ...

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> LabelledBatch:
        """The same batch on ``device``."""
        ...


def pack(examples: Sequence[Example]) -> PackedSequences:
    """Lays examples end to end, in the order given."""
    ids = np.concatenate([example.ids for example in examples])
    types = np.concatenate([example.types for example in examples])
    lengths = torch.tensor([size for example in examples for size in example.sizes], dtype=torch.int64)
    return PackedSequences.from_lengths(_long(ids), _long(types), lengths)


def _long(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
