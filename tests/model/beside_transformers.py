"""A model of transformers and bertkit's own with the same weights, one batch in both forms, and how near their outputs are.

What needs transformers' modelling code takes seconds to import: the modules that use this are the only ones that do.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bertkit.packed import PackedSequences
from bertkit.tasks.models import TaskModel, load_model

transformers = pytest.importorskip("transformers")

AUTO = {
    "encoder": "AutoModel",
    "pretraining": "AutoModelForPreTraining",
    "masked_lm": "AutoModelForMaskedLM",
    "classification": "AutoModelForSequenceClassification",
    "tagging": "AutoModelForTokenClassification",
    "span": "AutoModelForQuestionAnswering",
    "choice": "AutoModelForMultipleChoice",
}
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64},
    "odd": {
        "hidden_size": 48,
        "num_attention_heads": 3,
        "intermediate_size": 37,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-5,
        "type_vocab_size": 1,
        "pad_token_id": None,
        "num_hidden_layers": 3,
    },
    "large": {
        "hidden_size": 24,
        "num_attention_heads": 1,
        "intermediate_size": 31,
        "hidden_act": "silu",
        "type_vocab_size": 3,
        "vocab_size": 130,
    },
}
LENGTHS = [11, 3, 16, 7, 16, 2]


def reference(head: str, folder: Path, *, seed: int = 0, **config: Any) -> Any:
    """A transformers model with no weight at its start value, saved into ``folder``."""
    values = {
        "vocab_size": 71,
        "num_hidden_layers": 2,
        "max_position_embeddings": 24,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    if head in ("classification", "tagging"):
        values["num_labels"] = 3
    made = getattr(transformers, AUTO[head]).from_config(transformers.BertConfig(**{**values, **config}))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += torch.randn(parameter.shape, generator=generator) * 0.2
    made.save_pretrained(folder)
    return made


@dataclass
class Batch:
    """One batch in both forms, with every head's labels."""

    padded: dict[str, Tensor]
    ours: SimpleNamespace
    labels: dict[str, Tensor]


def batch(head: str, lengths: list[int], *, vocab: int, types: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    ids = torch.from_numpy(rng.integers(1, vocab, total))
    packed = PackedSequences.from_lengths(ids, torch.from_numpy(rng.integers(0, types, total)), torch.tensor(lengths))
    chosen = torch.from_numpy(np.sort(rng.choice(total, 9, replace=False)))
    words = torch.from_numpy(rng.integers(0, vocab, 9))
    tags = torch.from_numpy(rng.integers(0, 3, 9))
    count = len(lengths)
    nsp = torch.from_numpy(rng.integers(0, 2, count))
    kinds = torch.from_numpy(rng.integers(0, 3, count))
    starts = torch.from_numpy(rng.integers(0, min(lengths), count))
    ends = torch.from_numpy(rng.integers(0, min(lengths), count))
    ours = SimpleNamespace(
        packed=packed, weights=None, masked_positions=chosen, masked_labels=words, next_sentence_labels=nsp, pair_part="nsp"
    )
    labels: dict[str, Tensor] = {}

    def spread(values: Tensor) -> Tensor:
        flat = torch.full((total,), -100)
        flat[chosen] = values
        return packed.pad(flat, -100)

    if head in ("pretraining", "masked_lm"):
        labels["labels"] = spread(words)
        if head == "pretraining":
            labels["next_sentence_label"] = nsp
    elif head == "classification":
        ours.labels = labels["labels"] = kinds
    elif head == "tagging":
        ours.label_positions, ours.labels, labels["labels"] = chosen, tags, spread(tags)
    elif head == "span":
        ours.starts, ours.ends = starts, ends
        labels = {"start_positions": starts, "end_positions": ends}
    elif head == "choice":
        ours.choices, ours.labels = (3,) * (count // 3), kinds[: count // 3]
        labels["labels"] = ours.labels
    return Batch(packed.to_padded(), ours, labels)


def their_outputs(head: str, model: Any, inputs: dict[str, Tensor], packed: PackedSequences) -> tuple[dict[str, Tensor], Any]:
    """Their scores in our shapes, real positions alone, and everything they returned."""
    labels = {name: value for name, value in inputs.items() if "label" in name or "positions" in name}
    padded = {name: value for name, value in inputs.items() if name not in labels}
    if head == "choice":
        padded = {name: value.view(-1, 3, value.shape[1]) for name, value in padded.items()}
    said = model(**padded, **labels)
    real = padded["attention_mask"].bool()
    if head == "encoder":
        return {"out": said.last_hidden_state[real], "pooled": said.pooler_output}, said
    if head == "pretraining":
        return {"out": said.prediction_logits[real], "nsp": said.seq_relationship_logits}, said
    if head == "span":
        return {"out": torch.stack([said.start_logits[real], said.end_logits[real]], -1)}, said
    if head == "choice":
        return {"out": said.logits.reshape(-1, 1)}, said
    return {"out": said.logits[real] if head in ("masked_lm", "tagging") else said.logits}, said


def our_outputs(head: str, model: TaskModel, packed: PackedSequences) -> dict[str, Tensor]:
    made = {"out": model.outputs(packed)}
    if head == "encoder":
        made["pooled"] = model.head.pooler(model.hidden(packed))
    if head == "pretraining":
        made["nsp"] = model.head.next_sentence(model.hidden(packed))
    return made


def assert_close(ours: dict[str, Tensor], theirs: dict[str, Tensor], share: float) -> None:
    """Relative to the largest reference value of all."""
    assert ours.keys() == theirs.keys()
    largest = max(float(value.detach().abs().max()) for value in theirs.values())
    for name, value in theirs.items():
        assert ours[name].shape == value.shape, name
        assert float((ours[name].detach() - value.detach()).abs().max()) <= share * largest, name


def both(head: str, tmp_path: Path, config: dict[str, Any], dtype: torch.dtype) -> tuple[Any, TaskModel, Batch]:
    theirs = reference(head, tmp_path, **config).to(dtype).train()
    ours, report = load_model(tmp_path, head)
    assert report.trained
    assert not report.unexpected
    lengths = [12] * 6 if head == "span" else LENGTHS  # transformers' softmax over spans runs over the padding too
    made = batch(head, lengths, vocab=theirs.config.vocab_size, types=theirs.config.type_vocab_size)
    return theirs, ours.to(dtype).train(), made
