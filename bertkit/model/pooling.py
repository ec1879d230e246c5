"""Vectors of texts and tokens out of an encoder: which layer's states, and how a sequence's become one.

Shapes: T tokens, S sequences, H the width.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from bertkit.errors import UsageError
from bertkit.model.encoder import Encoder
from bertkit.packed import PackedSequences

Pooling = Literal["mean", "cls"]


def cut_layers(encoder: Encoder, layer: int) -> None:
    """Takes away the layers above ``layer``, so that the encoder ends with its states.

    Args:
        encoder: Changed.
        layer: As in transformers' ``hidden_states``: 0 the embeddings, n the n-th layer's states; -1 the last one's.

    Raises:
        UsageError: There is no such layer (exit 2).
    """
    depth = len(encoder.layers)
    if not -depth - 1 <= layer <= depth:
        raise UsageError(
            f"The model has {depth} layers, and no layer {layer}.",
            where="--layer",
            hint=f"Layers are 0 (the embeddings) to {depth}, or -1 (the last) to {-depth - 1}.",
        )
    del encoder.layers[layer if layer >= 0 else depth + 1 + layer :]


def token_vectors(encoder: Encoder, packed: PackedSequences) -> Tensor:
    """``[T, H]``: every token's state, special ones included, in fp32 at least."""
    states: Tensor = encoder(packed).states
    return states.float()


def text_vectors(encoder: Encoder, packed: PackedSequences, pooling: Pooling) -> Tensor:
    """``[S, H]``: one vector a sequence: its ``[CLS]``'s state, or the mean over all its tokens, ``[CLS]`` and ``[SEP]`` too.

    The mean is what sentence-transformers' mean pooling takes.
    """
    if pooling == "cls":
        hidden = encoder.begin(packed) if len(encoder.layers) else encoder(packed)
        first: Tensor = hidden.first()
        return first.float()
    states = token_vectors(encoder, packed)
    sums = states.new_zeros(packed.sequences, states.shape[1]).index_add_(0, packed.sequence_ids(), states)
    return sums / packed.boundaries.diff()[:, None]


def normalized(vectors: Tensor) -> Tensor:
    """The vectors with length 1; one of zeros stays so."""
    return torch.nn.functional.normalize(vectors, dim=-1)
