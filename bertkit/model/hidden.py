"""What heads see of the encoder: hidden states by sequence or by token, finished only where somebody looks.

Shapes: T tokens, S sequences, L the longest of them, H the width, h heads, P chosen positions, V the vocabulary's size
(V' where it is rounded up).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertkit.packed import PackedSequences


@dataclass(slots=True)
class Hidden:
    """The encoder's last hidden states, by sequence or by token.

    Within a training step the last layer is finished only where a head looks: a masked-LM head needs 15 % of the
    positions, a classifier one per sequence. Ask for what you need and no more.

    Attributes:
        packed: The batch.
        words: ``[V', H]`` the word embeddings, for a decoder tied to them.
        vocab_size: V.
        attentions: One ``[S, h, L, L]`` a layer, where asked for.
        layers: The embeddings and each layer's states, ``[T, H]`` each, where asked for.
    """

    packed: PackedSequences
    words: Tensor
    vocab_size: int
    attentions: tuple[Tensor, ...] = ()
    layers: tuple[Tensor, ...] = ()
    _finish: Callable[[Tensor | None], Tensor] | None = None
    _states: Tensor | None = field(default=None)

    @property
    def states(self) -> Tensor:
        """``[T, H]``: every token's state."""
        if self._states is None:
            assert self._finish is not None
            self._states = self._finish(None)
        return self._states

    def at(self, positions: Tensor) -> Tensor:
        """``[P, H]``: the states of the tokens at ``positions`` ``[P]`` int64, counted over the whole batch."""
        if self._states is None and self._finish is not None:
            return self._finish(positions)
        return self.states.index_select(0, positions)

    def first(self) -> Tensor:
        """``[S, H]``: the state of each sequence's first token, its ``[CLS]``."""
        return self.at(self.packed.boundaries[:-1].long())

    def per_sequence(self) -> tuple[Tensor, ...]:
        """S tensors ``[tokens of the sequence, H]``."""
        return torch.split(self.states, self.packed.boundaries.diff().tolist())

    def to_padded(self) -> Tensor:
        """``[S, L, H]``, zero behind each sequence."""
        return self.packed.pad(self.states)
