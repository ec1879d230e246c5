"""Two-way table between bertkit's parameters and the tensors of a Hugging Face BERT file; import and export read the same rows.

A row says which tensors of the file make one parameter: queries, keys and values lie apart in the file and together here,
and the vocabulary is rounded up here and not there. The same rows serve weights, gradients and an optimizer's moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bertkit.model.encoder import padded_vocabulary


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter.

    Attributes:
        ours: Its name in ``TaskModel.named_parameters()``; ``*`` stands for a layer's number.
        theirs: The tensors of the file that make it, joined along their first dimension.
        vocabulary: Is its first dimension the vocabulary?
    """

    ours: str
    theirs: tuple[str, ...]
    vocabulary: bool = False


def _both(ours: str, *theirs: str) -> list[Row]:
    """A weight and a bias."""
    return [Row(f"{ours}.{end}", tuple(f"{name}.{end}" for name in theirs)) for end in ("weight", "bias")]


_LAYER = "bert.encoder.layer.*"
_SELF = f"{_LAYER}.attention.self"

TABLE: tuple[Row, ...] = (
    Row("encoder.words.weight", ("bert.embeddings.word_embeddings.weight",), vocabulary=True),
    Row("encoder.positions.weight", ("bert.embeddings.position_embeddings.weight",)),
    Row("encoder.types.weight", ("bert.embeddings.token_type_embeddings.weight",)),
    *_both("encoder.norm", "bert.embeddings.LayerNorm"),
    *_both("encoder.layers.*.qkv", f"{_SELF}.query", f"{_SELF}.key", f"{_SELF}.value"),
    *_both("encoder.layers.*.mix", f"{_LAYER}.attention.output.dense"),
    *_both("encoder.layers.*.mix_norm", f"{_LAYER}.attention.output.LayerNorm"),
    *_both("encoder.layers.*.up", f"{_LAYER}.intermediate.dense"),
    *_both("encoder.layers.*.down", f"{_LAYER}.output.dense"),
    *_both("encoder.layers.*.norm", f"{_LAYER}.output.LayerNorm"),
    *_both("head.pooler.dense", "bert.pooler.dense"),
    *_both("head.mlm.dense", "cls.predictions.transform.dense"),
    *_both("head.mlm.norm", "cls.predictions.transform.LayerNorm"),
    Row("head.mlm.bias", ("cls.predictions.bias",), vocabulary=True),
    Row("head.mlm.matrix", ("cls.predictions.decoder.weight",), vocabulary=True),
    *_both("head.nsp", "cls.seq_relationship"),
    *_both("head.classifier", "classifier"),
    *_both("head.span", "qa_outputs"),
)

_ROWS = {row.ours: row for row in TABLE}
WORDS = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
DECODER_BIAS = "cls.predictions.decoder.bias"
BIAS = "cls.predictions.bias"


def row_of(name: str) -> Row:
    """The row of one of bertkit's parameters, numbers filled in; a parameter that no row knows keeps its name in the file."""
    parts = name.split(".")
    layer = parts[2] if name.startswith("encoder.layers.") else ""
    row = _ROWS.get(".".join([*parts[:2], "*", *parts[3:]]) if layer else name)
    if row is None:
        return Row(name, (name,))
    return Row(name, tuple(theirs.replace("*", layer) for theirs in row.theirs), row.vocabulary)


def to_hf(tensors: Mapping[str, Tensor], *, vocab_size: int) -> dict[str, Tensor]:
    """Tensors under bertkit's parameter names (weights, moments, …) to the names and shapes of the file, split and unpadded.

    Args:
        tensors: Each of the shape of the parameter that it is named after.
        vocab_size: V.
    """
    made: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        row = row_of(name)
        whole = tensor[:vocab_size] if row.vocabulary else tensor
        made.update(zip(row.theirs, whole.chunk(len(row.theirs)), strict=True))
        if name == "head.mlm.bias" and "head.mlm.matrix" in tensors:
            made[DECODER_BIAS] = whole  # transformers has a second bias where the decoder is not tied
    return made


def from_hf(tensors: Mapping[str, Tensor], names: Iterable[str], *, vocab_size: int) -> dict[str, Tensor]:
    """The way back: for each of bertkit's ``names`` whose tensors are all there, fused and padded with zeros.

    Raises:
        KeyError: A tensor of a name is missing.
    """
    made = {}
    for name in names:
        row = row_of(name)
        parts = [tensors[theirs] for theirs in row.theirs]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts)
        if row.vocabulary:
            behind = padded_vocabulary(vocab_size) - vocab_size
            whole = torch.cat([whole, whole.new_zeros(behind, *whole.shape[1:])])
        made[name] = whole
    return made
