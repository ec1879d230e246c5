"""PackedSequences: the one form in which batches meet the model.

Sequences lie end to end without padding. ``T`` tokens in all, ``S`` sequences, ``L`` the longest of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSequences:
    """A batch of sequences of any lengths, end to end.

    Attributes:
        input_ids: ``[T]`` int64, ids of the vocabulary.
        token_type_ids: ``[T]`` int64, the segment of each token.
        position_ids: ``[T]`` int64, the position of each token, from 0 in each sequence unless another loop's padding says
            otherwise.
        boundaries: ``[S+1]`` int32, cumulative lengths, from 0 to T, strictly rising.
        longest: Tokens of the longest sequence, known on the host so that no kernel has to ask the device.

    Raises:
        ValueError: Shapes, types or boundaries disagree (values are checked on the CPU only: elsewhere that would wait
            for the device).
    """

    input_ids: Tensor
    token_type_ids: Tensor
    position_ids: Tensor
    boundaries: Tensor
    longest: int

    def __post_init__(self) -> None:
        tokens = self.input_ids.shape
        if len(tokens) != 1 or self.token_type_ids.shape != tokens or self.position_ids.shape != tokens:
            raise ValueError(
                "input_ids, token_type_ids and position_ids must be of one shape [T], not "
                f"{tuple(tokens)}, {tuple(self.token_type_ids.shape)}, {tuple(self.position_ids.shape)}"
            )
        if self.boundaries.dtype != torch.int32 or self.boundaries.dim() != 1 or self.boundaries.shape[0] < 2:
            found = f"{self.boundaries.dtype} {tuple(self.boundaries.shape)}"
            raise ValueError(f"boundaries must be [S+1] int32 with S at least 1, not {found}")
        if self.boundaries.device.type == "cpu":
            lengths = self.boundaries.diff()
            if int(self.boundaries[0]) != 0 or int(self.boundaries[-1]) != tokens[0] or bool((lengths < 1).any()):
                raise ValueError(f"boundaries must rise from 0 to {tokens[0]}, not {self.boundaries.tolist()}")
            if int(lengths.max()) != self.longest:
                raise ValueError(f"longest is {self.longest}, but the longest sequence has {int(lengths.max())} tokens")

    @property
    def tokens(self) -> int:
        """T, the count of tokens."""
        return self.input_ids.shape[0]

    @property
    def sequences(self) -> int:
        """S, the count of sequences."""
        return self.boundaries.shape[0] - 1

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> PackedSequences:
        """The same batch on ``device``."""
        return PackedSequences(
            input_ids=self.input_ids.to(device, non_blocking=non_blocking),
            token_type_ids=self.token_type_ids.to(device, non_blocking=non_blocking),
            position_ids=self.position_ids.to(device, non_blocking=non_blocking),
            boundaries=self.boundaries.to(device, non_blocking=non_blocking),
            longest=self.longest,
        )

    def sequence_ids(self) -> Tensor:
        """``[T]`` int64: which sequence each token belongs to."""
        starts = torch.zeros_like(self.input_ids)
        starts[self.boundaries[1:-1].long()] = 1
        return starts.cumsum(0)

    def pad(self, values: Tensor, fill: float = 0.0) -> Tensor:
        """Lays per-token ``values`` ``[T, ...]`` out as ``[S, L, ...]`` with ``fill`` behind each sequence."""
        owner = self.sequence_ids()
        column = torch.arange(self.tokens, device=owner.device) - self.boundaries.long()[owner]
        out = values.new_full((self.sequences, self.longest, *values.shape[1:]), fill)
        out[owner, column] = values
        return out

    def to_padded(self, pad_id: int = 0) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask`` and ``token_type_ids``, each ``[S, L]`` int64, for others' models."""
        return {
            "input_ids": self.pad(self.input_ids, pad_id),
            "attention_mask": self.pad(torch.ones_like(self.input_ids)),
            "token_type_ids": self.pad(self.token_type_ids),
        }

    def dense_mask(self) -> Tensor:
        """``[T, T]`` bool: may token i attend to token j? For tests alone: it grows with T²."""
        owner = self.sequence_ids()
        return owner[:, None] == owner[None, :]

    @staticmethod
    def from_lengths(input_ids: Tensor, token_type_ids: Tensor, lengths: Tensor) -> PackedSequences:
        """Packs tokens that lie end to end already, given the ``[S]`` lengths of the sequences (on the CPU)."""
        boundaries = torch.zeros(lengths.shape[0] + 1, dtype=torch.int32)
        boundaries[1:] = lengths.cumsum(0)
        # numpy, as torch's repeat_interleave waits for all threads: 30 ms instead of 30 µs where they are training
        starts = np.repeat(boundaries[:-1].numpy(), lengths.numpy())
        return PackedSequences(
            input_ids=input_ids,
            token_type_ids=token_type_ids,
            position_ids=torch.from_numpy(np.arange(input_ids.shape[0]) - starts),
            boundaries=boundaries,
            longest=int(lengths.max()) if lengths.numel() else 0,
        )

    @staticmethod
    def from_padded(
        input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> PackedSequences:
        """Packs padded ``[S, L]`` tensors; padding may lie anywhere, and kept tokens keep the column as their position.

        A row of nothing but padding keeps its first column, so that S stays the count of rows; nothing attends across
        rows, so the others are as they would be without it.
        """
        kept = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask != 0
        kept = kept.clone()
        kept[:, 0] |= ~kept.any(dim=1)
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        lengths = kept.sum(dim=1)
        boundaries = torch.zeros(input_ids.shape[0] + 1, dtype=torch.int32, device=input_ids.device)
        boundaries[1:] = lengths.cumsum(0)
        columns = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
        return PackedSequences(
            input_ids=input_ids[kept],
            token_type_ids=types[kept],
            position_ids=columns[kept],
            boundaries=boundaries,
            longest=int(lengths.max()),
        )
