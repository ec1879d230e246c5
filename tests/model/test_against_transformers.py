"""Every head against the class of transformers that reads its files: outputs, losses, gradients, files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from beside_transformers import AUTO, CONFIGS, LENGTHS, assert_close, batch, both, our_outputs, reference, their_outputs
from safetensors.torch import load_file

from bertkit.model.files import modern_name
from bertkit.model.hf import to_hf
from bertkit.tasks.models import load_model

transformers = pytest.importorskip("transformers")


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
