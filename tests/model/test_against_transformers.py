"""Every head against the class of transformers that reads its files: same weights and batches, outputs, losses, gradients, files.

All that needs transformers' modelling code is in this module: importing it takes seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from bertkit.model.files import modern_name
from bertkit.model.hf import to_hf
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
    ours = SimpleNamespace(packed=packed, masked_positions=chosen, masked_labels=words, next_sentence_labels=nsp, pair_part="nsp")
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


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("head", AUTO)
def test_outputs_losses_and_gradients_in_fp64(head: str, config: str, tmp_path: Path) -> None:
    theirs, ours, made = both(head, tmp_path, CONFIGS[config], torch.float64)
    expected, said = their_outputs(head, theirs, {**made.padded, **made.labels}, made.ours.packed)
    assert_close(our_outputs(head, ours, made.ours.packed), expected, 1e-12)
    if head == "encoder":
        return
    parts = ours(made.ours)
    loss = sum(part.total / part.count for part in parts.values())
    assert loss.item() == pytest.approx(said.loss.item(), rel=1e-12)
    said.loss.backward()
    loss.backward()
    found = to_hf({name: p.grad for name, p in ours.named_parameters()}, vocab_size=theirs.config.vocab_size)
    wanted = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    wanted.setdefault("bert.pooler.dense.weight", None)
    wanted = {name: grad for name, grad in wanted.items() if grad is not None}
    assert_close(found, wanted, 1e-9)


@pytest.mark.parametrize("head", AUTO)
def test_outputs_in_fp32(head: str, tmp_path: Path) -> None:
    theirs, ours, made = both(head, tmp_path, CONFIGS["odd"], torch.float32)
    expected, _ = their_outputs(head, theirs, made.padded, made.ours.packed)
    assert_close(our_outputs(head, ours, made.ours.packed), expected, 1e-5)


def test_untied_decoder(tmp_path: Path) -> None:
    theirs, ours, made = both("masked_lm", tmp_path, {**CONFIGS["plain"], "tie_word_embeddings": False}, torch.float64)
    expected, said = their_outputs("masked_lm", theirs, {**made.padded, **made.labels}, made.ours.packed)
    assert_close(our_outputs("masked_lm", ours, made.ours.packed), expected, 1e-12)
    assert ours(made.ours)["mlm"].total.item() / 9 == pytest.approx(said.loss.item(), rel=1e-12)
    ours.float().save(tmp_path)
    _, info = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]


@pytest.mark.parametrize("name", sorted(set(transformers.activations.ACT2FN) - {"prelu", "xielu", "sqrtsoftplus"}))
def test_every_activation_means_what_transformers_means(name: str) -> None:
    from bertkit.model.activations import activation

    x = torch.linspace(-12, 12, 1001, dtype=torch.float64)
    theirs = transformers.activations.ACT2FN[name](x)
    torch.testing.assert_close(activation(name)(x), theirs, rtol=0, atol=2e-10)  # gelu_fast rounds its constant


@pytest.mark.parametrize("head", AUTO)
def test_saved_files_are_transformers_own(head: str, tmp_path: Path) -> None:
    labels = (
        {
            "id2label": {0: "nein", 1: "ja", 2: "夏"},
            "label2id": {"nein": 0, "ja": 1, "夏": 2},
            "problem_type": "single_label_classification",
        }
        if head == "classification"
        else {}
    )
    theirs = reference(head, tmp_path, **CONFIGS["large"], **labels).eval()
    ours, _ = load_model(tmp_path, head)
    out = tmp_path / "ours"
    out.mkdir()
    ours.save(out)
    old, new = load_file(tmp_path / "model.safetensors"), load_file(out / "model.safetensors")
    assert old.keys() == new.keys()
    assert all(torch.equal(old[name], new[name]) for name in old)
    their_config, our_config = (json.loads((folder / "config.json").read_text("utf-8")) for folder in (tmp_path, out))
    their_config.pop("transformers_version")
    assert our_config == their_config
    again, info = getattr(transformers, AUTO[head]).from_pretrained(out, output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    made = batch(head, LENGTHS, vocab=130, types=3)
    first, _ = their_outputs(head, theirs, made.padded, made.ours.packed)
    second, _ = their_outputs(head, again.eval(), made.padded, made.ours.packed)
    assert_close(second, first, 1e-6)  # the weights are equal; products need not be, bit for bit
    before = (out / "model.safetensors").read_bytes(), (out / "config.json").read_bytes()
    ours.save(out)
    assert before == ((out / "model.safetensors").read_bytes(), (out / "config.json").read_bytes())


def test_attentions_and_hidden_states_of_every_layer(tmp_path: Path) -> None:
    reference("encoder", tmp_path, **CONFIGS["plain"])
    theirs = transformers.AutoModel.from_pretrained(tmp_path, attn_implementation="eager").double().eval()
    ours = load_model(tmp_path, "encoder")[0].double().eval()
    made = batch("encoder", LENGTHS, vocab=71, types=2)
    said = theirs(**made.padded, output_attentions=True, output_hidden_states=True)
    hidden = ours.encoder(
        made.padded["input_ids"], made.padded["attention_mask"], made.padded["token_type_ids"], attentions=True, layers=True
    )
    real = made.padded["attention_mask"].bool()
    assert len(hidden.layers) == len(said.hidden_states) == 3
    for own, other in zip(hidden.layers, said.hidden_states, strict=True):
        torch.testing.assert_close(own, other[real])
    for own, other in zip(hidden.attentions, said.attentions, strict=True):
        torch.testing.assert_close(own.transpose(1, 2)[real], other.transpose(1, 2)[real])
    torch.testing.assert_close(hidden.to_padded(), said.last_hidden_state * real[..., None])


def test_pipelines_of_every_head_run_on_what_is_saved(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "hello", "who", "paris", "is"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(words) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizer(str(vocabulary), model_max_length=24)
    asked = {
        "masked_lm": ("fill-mask", "hello [MASK]"),
        "classification": ("text-classification", "a b " * 50),
        "tagging": ("token-classification", "hello paris"),
        "encoder": ("feature-extraction", "a b"),
    }
    for head, (task, text) in asked.items():
        folder = tmp_path / head
        reference(head, folder, **CONFIGS["plain"])
        load_model(folder, head)[0].save(folder)
        tokenizer.save_pretrained(folder)
        pipe = transformers.pipeline(task, model=str(folder))
        # transformers 5 has no question-answering pipeline any more; the span head is compared above
        said = pipe(text, truncation=True) if head == "classification" else pipe(text)
        assert said


@pytest.fixture(scope="session")
def minilm() -> Path:
    """all-MiniLM-L6-v2, fetched once into .models by the script that lies beside the real data."""
    root = Path(__file__).parents[2]
    folder = Path(os.environ.get("BERTKIT_MODELS", root / ".models")) / "all-MiniLM-L6-v2"
    if not (folder / "model.safetensors").is_file():
        script = Path(os.environ.get("BERTKIT_DATA", "")) / "get-models.sh"
        bash = shutil.which("bash")
        if not script.is_file() or bash is None:
            pytest.skip("all-MiniLM-L6-v2 is not here: get-models.sh lays it under .models")
        got = subprocess.run([bash, str(script), str(folder.parent)], capture_output=True, check=False, timeout=300)
        if got.returncode:
            pytest.skip("all-MiniLM-L6-v2 could not be fetched")
    return folder


def compare_real(folder: Path, head: str) -> None:
    theirs = getattr(transformers, AUTO[head]).from_pretrained(folder, dtype=torch.float32).eval()
    ours, report = load_model(folder, head)
    assert report.trained
    assert not report.unexpected
    made = batch(head, [40, 7, 128, 63], vocab=30522, types=2)
    with torch.no_grad():
        expected, _ = their_outputs(head, theirs, made.padded, made.ours.packed)
        assert_close(our_outputs(head, ours.eval(), made.ours.packed), expected, 1e-5)


def test_minilm(minilm: Path) -> None:
    compare_real(minilm, "encoder")


@pytest.mark.data
def test_splade_tiny(real_data: Path) -> None:
    folder = real_data / "models" / "splade-tiny-bert-L2-H128"
    names = {name for name in load_file(folder / "model.safetensors") if name != modern_name(name)}
    assert any(name.endswith("LayerNorm.gamma") for name in names), "it has to be the file with the old names"
    compare_real(folder, "masked_lm")
