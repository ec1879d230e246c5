"""Hugging Face files and bertkit's models: weights in, with a report of what did not fit, and weights out.

:mod:`bertkit.model.files` reads and writes the files, :mod:`bertkit.model.names` holds the table of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertkit.errors import ModelError
from bertkit.model.files import CONFIG, WEIGHTS, read_config, read_weights, tensor_names, write_config, write_weights
from bertkit.model.names import BIAS, DECODER, DECODER_BIAS, WORDS, from_hf, row_of, to_hf

__all__ = [
    "LoadReport",
    "export_weights",
    "from_hf",
    "load_into",
    "read_config",
    "read_weights",
    "tensor_names",
    "to_hf",
    "write_model",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """How a file and a model fitted.

    Attributes:
        missing: Tensors that the model has and the file does not (or not in that shape), by the file's names.
        unexpected: Tensors of the file that the model has no place for.
        new: bertkit's own names of the parameters that kept their new weights, all of them in the head.
        notes: Sentences worth saying once.
    """

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def new_pooler(self) -> bool:
        """Is the pooler new?"""
        return any(name.startswith("head.pooler.") for name in self.new)

    @property
    def new_head(self) -> bool:
        """Is something of the head but its pooler new?"""
        return any(not name.startswith("head.pooler.") for name in self.new)

    @property
    def trained(self) -> bool:
        """Did everything come from the file?"""
        return not self.new


def load_into(
    model: nn.Module, tensors: Mapping[str, Tensor], *, vocab_size: int, new_head: bool = False, where: str = WEIGHTS
) -> LoadReport:
    """Fills a model whose parameters are named as in the table.

    Args:
        model: Its head's weights must be drawn already: what the file cannot serve keeps them.
        tensors: As :func:`read_weights` gives them.
        vocab_size: V.
        new_head: Leave the head's own weights (not the pooler's) as they are, whatever the file holds.
        where: For messages.

    Raises:
        ModelError: A tensor of the body is missing, or has another shape than config.json says.
    """
    parameters = dict(model.named_parameters())
    found, notes = _one_decoder(dict(tensors), untied="head.mlm.matrix" in parameters, used="head.mlm.bias" in parameters)
    shapes = {
        theirs: part.shape for name, p in parameters.items() for theirs, part in to_hf({name: p}, vocab_size=vocab_size).items()
    }
    shapes.pop(DECODER_BIAS, None)
    missing: list[str] = []
    new: list[str] = []
    for name, parameter in parameters.items():
        row = row_of(name)
        body = name.startswith("encoder.")
        absent = [theirs for theirs in row.theirs if theirs not in found]
        bent = [theirs for theirs in row.theirs if theirs in found and found[theirs].shape != shapes[theirs]]
        if body and bent:
            raise ModelError(
                f"{bent[0]} is {list(found[bent[0]].shape)} in the file, but {CONFIG} makes it {list(shapes[bent[0]])}.",
                where=where,
            )
        own_head = not body and not name.startswith("head.pooler.")
        if absent or bent or (own_head and new_head):
            missing += absent or bent
            new.append(name)
            continue
        with torch.no_grad():
            parameter.copy_(from_hf(found, [name], vocab_size=vocab_size)[name])
    if lost := [name for name in new if name.startswith("encoder.")]:
        raise ModelError(f"{len(missing)} tensors of the body are missing: {_some(missing)}.", where=where, hint=_hint(len(lost)))
    used = {theirs for name in parameters for theirs in row_of(name).theirs}
    return LoadReport(missing=tuple(missing), unexpected=tuple(sorted(set(found) - used)), new=tuple(new), notes=tuple(notes))


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _hint(count: int) -> str:
    return "Is this a BERT checkpoint?" if count > 5 else "The file is incomplete; get it again."


def _one_decoder(found: dict[str, Tensor], *, untied: bool, used: bool) -> tuple[dict[str, Tensor], list[str]]:
    """Settles which decoder counts: tied, the embedding and cls.predictions.bias; untied, the decoder's own matrix and bias."""
    notes: list[str] = []
    if not used:
        return found, notes
    bias, second = found.get(BIAS), found.pop(DECODER_BIAS, None)
    if second is not None and (bias is None or untied):
        found[BIAS] = second
    elif bias is not None and second is not None and not torch.equal(bias, second):
        notes.append(f"{DECODER_BIAS} differs from {BIAS}, to which it is tied; {BIAS} won.")
    if not untied:
        decoder, words = found.pop(DECODER, None), found.get(WORDS)
        if decoder is not None and words is not None and not torch.equal(decoder, words):
            notes.append(f"{DECODER} differs from {WORDS}, to which it is tied (tie_word_embeddings); the embedding won.")
    return found, notes


def export_weights(model: nn.Module, *, vocab_size: int, bare: bool = False) -> dict[str, Tensor]:
    """A model's tensors under the file's names and shapes, fp32; ``bare`` (``BertModel``) leaves ``bert.`` out of them."""
    named = to_hf({name: parameter.detach().float() for name, parameter in model.named_parameters()}, vocab_size=vocab_size)
    return {name.removeprefix("bert."): tensor for name, tensor in named.items()} if bare else named


def write_model(tensors: Mapping[str, Tensor], folder: Path, config: Mapping[str, Any]) -> None:
    """Writes ``model.safetensors`` and ``config.json`` into an existing folder: what ``from_pretrained`` reads."""
    write_weights(tensors, folder / WEIGHTS)
    write_config(config, folder / CONFIG)
