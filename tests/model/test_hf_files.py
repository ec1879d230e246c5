"""Model folders as strangers write them: old names, other tyings, pickles, TensorFlow files, configs that cannot be served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bertkit.errors import BertkitError, MissingError, ModelError, UsageError
from bertkit.model import files
from bertkit.model.config import EncoderConfig
from bertkit.model.hf import from_hf, read_weights, tensor_names, to_hf
from bertkit.notices import collecting
from bertkit.packed import PackedSequences
from bertkit.tasks.models import TaskModel, build_model, load_model, register_head

CONFIG = EncoderConfig(
    vocab_size=70, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, max_position_embeddings=12
)
DECODER, BIAS = "cls.predictions.decoder", "cls.predictions.bias"


def saved(folder: Path, head: str = "masked_lm", config: EncoderConfig = CONFIG, seed: int = 0) -> TaskModel:
    model = build_model(head, config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            rows = CONFIG.vocab_size if parameter.shape[0] == 128 else None
            parameter[:rows] += torch.randn(parameter[:rows].shape, generator=generator)
    folder.mkdir(exist_ok=True)
    model.save(folder)
    return model.eval()


def rewrite(folder: Path, change: Any, *, pickle: bool = False) -> None:
    tensors = change(dict(load_file(folder / "model.safetensors")))
    if pickle:
        (folder / "model.safetensors").unlink()
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            folder / "model.safetensors",
            metadata={"made": "by hand"},
        )


def set_config(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")


PACKED = PackedSequences.from_lengths(
    torch.arange(5, 18), torch.tensor([0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0]), torch.tensor([5, 6, 2])
)


def same(folder: Path, model: TaskModel) -> None:
    again, report = load_model(folder, model.head_name)
    assert report.trained
    assert not report.unexpected
    torch.testing.assert_close(again.eval().outputs(PACKED), model.outputs(PACKED))


def old_names(tensors: dict[str, Any]) -> dict[str, Any]:
    return {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for name, t in tensors.items()
    }


@pytest.mark.parametrize("pickle", [False, True])
def test_gamma_and_beta_are_weight_and_bias(tmp_path: Path, pickle: bool) -> None:
    model = saved(tmp_path / "m")
    rewrite(tmp_path / "m", old_names, pickle=pickle)
    same(tmp_path / "m", model)


@pytest.mark.parametrize("pickle", [False, True])
def test_names_without_the_weights(tmp_path: Path, pickle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "m")
    old = {"embeddings.position_ids": torch.zeros(1, 12, dtype=torch.int64)}
    rewrite(tmp_path / "m", lambda t: {n.removeprefix("bert."): v for n, v in old_names(t).items()} | old, pickle=pickle)
    names = set(read_weights(tmp_path / "m"))
    assert "bert.embeddings.LayerNorm.weight" in names
    monkeypatch.setattr(files, "load_file", None)  # what reads the tensors of a safetensors file
    assert tensor_names(tmp_path / "m") == names
    if not pickle:
        whole = (tmp_path / "m" / "model.safetensors").read_bytes()
        for damaged in (whole[:-1], whole[:20], b"", b"\x10" + bytes(30)):
            (tmp_path / "m" / "model.safetensors").write_bytes(damaged)
            with pytest.raises(ModelError, match="damaged"):
                tensor_names(tmp_path / "m")


def test_gamma_inside_a_name_is_left_alone(tmp_path: Path) -> None:
    saved(tmp_path / "m")
    rewrite(tmp_path / "m", lambda t: t | {"bert.LayerNorm.gamma.table": torch.ones(2)})
    assert "bert.LayerNorm.gamma.table" in read_weights(tmp_path / "m")


@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_position_ids_are_ignored_whatever_they_say(tmp_path: Path, prefix: str) -> None:
    model = saved(tmp_path / "m", "encoder")
    wrong = torch.zeros(1, 12, dtype=torch.int64)
    rewrite(
        tmp_path / "m",
        lambda t: {f"{prefix}{name}": value for name, value in t.items()} | {f"{prefix}embeddings.position_ids": wrong},
    )
    with collecting() as said:
        same(tmp_path / "m", model)
    assert not said


@pytest.mark.parametrize("bias", ["both", "first", "second"])
@pytest.mark.parametrize("decoder", ["absent", "equal"])
def test_tied_decoders_load_in_silence(tmp_path: Path, decoder: str, bias: str) -> None:
    model = saved(tmp_path / "m")

    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        if decoder == "equal":
            tensors[f"{DECODER}.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
        if bias != "first":
            tensors[f"{DECODER}.bias"] = tensors[BIAS].clone()
        if bias == "second":
            del tensors[BIAS]
        return tensors

    rewrite(tmp_path / "m", change)
    with collecting() as said:
        same(tmp_path / "m", model)
    assert not said


def test_of_two_decoders_the_embedding_wins_and_says_so(tmp_path: Path) -> None:
    model = saved(tmp_path / "m")
    rewrite(tmp_path / "m", lambda t: t | {f"{DECODER}.weight": torch.zeros(70, 16)})
    with collecting() as said:
        same(tmp_path / "m", model)
    assert len(said) == 1
    assert "the embedding won" in said[0].message


def test_untied_decoder_keeps_its_own_matrix(tmp_path: Path) -> None:
    model = saved(tmp_path / "m", config=CONFIG.changed(tie_word_embeddings=False))
    words = load_file(tmp_path / "m" / "model.safetensors")
    assert not torch.equal(words[f"{DECODER}.weight"], words["bert.embeddings.word_embeddings.weight"])
    same(tmp_path / "m", model)


def test_a_planted_pickle_is_refused_by_name_and_does_nothing(tmp_path: Path) -> None:
    saved(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    planted = tmp_path / "planted"

    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (planted,))

    torch.save({"bert.x": Bomb()}, tmp_path / "m" / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin") as caught:
        load_model(tmp_path / "m", "masked_lm")
    assert caught.value.exit_code == 3
    assert not planted.exists()


def test_shards_and_half_precision_load_in_fp32(tmp_path: Path) -> None:
    model = saved(tmp_path / "m")
    folder = tmp_path / "m"
    tensors = {
        name: t.bfloat16() if i % 2 else t.half() for i, (name, t) in enumerate(load_file(folder / "model.safetensors").items())
    }
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for shard, members in shards.items():
        save_file({name: tensors[name] for name in members}, folder / shard)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: shard for shard, members in shards.items() for name in members}}), "utf-8")
    again, report = load_model(folder, "masked_lm")
    assert report.trained
    assert {p.dtype for p in again.parameters()} == {torch.float32}
    torch.testing.assert_close(again.eval().outputs(PACKED), model.outputs(PACKED), rtol=0.2, atol=2.0)
    assert tensor_names(folder) == set(read_weights(folder))
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelError, match="model-00002-of-00002"):
        load_model(folder, "masked_lm")
    index.write_text(json.dumps({"weight_map": {"x": "../outside.safetensors"}}), "utf-8")
    with pytest.raises(ModelError, match="out of its folder"):
        load_model(folder, "masked_lm")


def test_what_does_not_fit_is_listed_new_and_said(tmp_path: Path) -> None:
    saved(tmp_path / "m", "classification", CONFIG.changed(labels=("a", "b", "c")))
    with collecting() as said:
        model, report = load_model(tmp_path / "m", "classification", labels=["no", "yes"])
    assert report.missing == ("classifier.weight", "classifier.bias")
    assert (report.new_head, report.new_pooler, report.trained) == (True, False, False)
    assert [notice.kind for notice in said] == ["new-head"]
    assert model.config_json()["id2label"] == {"0": "no", "1": "yes"}
    with pytest.raises(ModelError, match="classifier"):
        load_model(tmp_path / "m", "classification", labels=["no", "yes"], must_have_head=True)
    _, report = load_model(tmp_path / "m", "masked_lm")
    assert report.unexpected == ("bert.pooler.dense.bias", "bert.pooler.dense.weight", "classifier.bias", "classifier.weight")
    forced, report = load_model(tmp_path / "m", "classification", new_head=True)
    assert report.new == ("head.classifier.weight", "head.classifier.bias")
    assert forced.config.labels == ("a", "b", "c")


def test_a_missing_pooler_is_new_and_said(tmp_path: Path) -> None:
    saved(tmp_path / "m", "tagging")
    with collecting() as said:
        _, report = load_model(tmp_path / "m", "classification")
    assert report.new_pooler
    assert not report.new_head  # the classifier of the tagger has the right size; its meaning is the caller's business
    assert "pooler" in said[0].message


def test_a_body_that_is_not_whole_is_an_error(tmp_path: Path) -> None:
    saved(tmp_path / "m")
    rewrite(tmp_path / "m", lambda t: {name: value for name, value in t.items() if "layer.1.attention.self.key" not in name})
    with pytest.raises(ModelError, match=r"encoder\.layer\.1\.attention\.self\.key\.weight") as caught:
        load_model(tmp_path / "m", "masked_lm")
    assert caught.value.exit_code == 3
    saved(tmp_path / "n")
    set_config(tmp_path / "n", max_position_embeddings=14)
    with pytest.raises(ModelError, match=r"\[12, 16\].*\[14, 16\]"):
        load_model(tmp_path / "n", "masked_lm")


@pytest.mark.parametrize(
    "name", ["bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "model.ckpt", "tf_model.h5", "model.ckpt-1000.index"]
)
def test_tensorflow_files_name_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    (tmp_path / "bert_config.json").write_text("{}")
    with pytest.raises(ModelError, match="TensorFlow") as caught:
        load_model(tmp_path, "masked_lm")
    assert "converted" in (caught.value.hint or "")


def test_folders_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        load_model(tmp_path / "nowhere", "masked_lm")
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        load_model(tmp_path, "masked_lm")
    saved(tmp_path / "m")
    with pytest.raises(ModelError, match="is a file"):
        load_model(tmp_path / "m" / "model.safetensors", "masked_lm")
    whole = (tmp_path / "m" / "model.safetensors").read_bytes()
    for damaged in (b"", whole[: len(whole) // 2]):
        (tmp_path / "m" / "model.safetensors").write_bytes(damaged)
        with pytest.raises(ModelError, match="damaged"):
            load_model(tmp_path / "m", "masked_lm")
    (tmp_path / "m" / "config.json").write_text("[1]")
    with pytest.raises(ModelError, match="object"):
        load_model(tmp_path / "m", "masked_lm")
    with pytest.raises(UsageError, match="masked_lm"):
        build_model("maskedlm", CONFIG)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"is_decoder": True}, ["is_decoder", "True"]),
        ({"add_cross_attention": True}, ["add_cross_attention"]),
        ({"position_embedding_type": "relative_key"}, ["position_embedding_type", "relative_key"]),
        ({"num_labels": 3, "id2label": {"0": "a", "1": "b"}}, ["num_labels is 3", "2 entries"]),
        ({"id2label": {"0": "a", "2": "b"}}, ["id2label", "[0, 2]"]),
        ({"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0}}, ["label2id has 1"]),
        ({"hidden_act": "gelu_nwe"}, ["gelu_nwe", "gelu_new", "quick_gelu"]),
        ({"hidden_size": 17}, ["17", "2"]),
        ({"model_type": "roberta"}, ["roberta"]),
        ({"vocab_size": "70"}, ["vocab_size"]),
        ({"hidden_dropout_prob": 1.5}, ["hidden_dropout_prob", "1.5"]),
        ({"pad_token_id": 99}, ["pad_token_id", "99"]),
    ],
)
def test_configs_that_cannot_be_served_are_refused_by_name(tmp_path: Path, fields: dict[str, Any], names: list[str]) -> None:
    saved(tmp_path / "m")
    set_config(tmp_path / "m", **fields)
    with pytest.raises(ModelError) as caught:
        load_model(tmp_path / "m", "masked_lm")
    assert all(name in str(caught.value) for name in names), str(caught.value)


def test_relative_positions_are_refused_by_their_tensors_too(tmp_path: Path) -> None:
    saved(tmp_path / "m")
    rewrite(tmp_path / "m", lambda t: t | {"bert.encoder.layer.0.attention.self.distance_embedding.weight": torch.zeros(31, 8)})
    with pytest.raises(ModelError, match="distance_embedding"):
        load_model(tmp_path / "m", "masked_lm")


def test_auto_map_and_null_maps_do_not_matter(tmp_path: Path) -> None:
    model = saved(tmp_path / "m")
    set_config(tmp_path / "m", auto_map={"AutoModel": "evil.Evil"}, label2id=None, id2label=None)
    (tmp_path / "m" / "evil.py").write_text("raise SystemExit(99)")
    same(tmp_path / "m", model)


def test_a_span_head_on_a_three_label_checkpoint_states_no_labels(tmp_path: Path) -> None:
    saved(tmp_path / "m", "classification", CONFIG.changed(labels=("a", "b", "c")))
    model, _ = load_model(tmp_path / "m", "span")
    assert "id2label" not in model.config_json()


def test_moments_go_to_the_file_and_back(tmp_path: Path) -> None:
    for tied in (True, False):
        model = build_model("pretraining", CONFIG.changed(tie_word_embeddings=tied))
        moments = {name: torch.rand_like(p, dtype=torch.bfloat16) for name, p in model.named_parameters()}
        for name in moments:
            if moments[name].shape[0] == 128:
                moments[name][70:] = 0
        filed = to_hf(moments, vocab_size=70)
        assert filed["bert.embeddings.word_embeddings.weight"].shape == (70, 16)
        assert filed["bert.encoder.layer.1.attention.self.value.bias"].shape == (16,)
        back = from_hf(filed, moments, vocab_size=70)
        assert all(torch.equal(back[name], moments[name]) for name in moments)


def test_heads_of_ones_own_save_under_their_own_names(tmp_path: Path) -> None:
    from bertkit.model.layers import Linear
    from bertkit.tasks.heads import Head
    from bertkit.tasks.models import HEADS

    class Own(Head):
        architecture = "BertModelWithMine"

        def __init__(self) -> None:
            super().__init__()
            self.mine = Linear(16, 1)

        def outputs(self, hidden: Any, positions: Any = None) -> Any:
            return self.mine(hidden.first())

    register_head("own", lambda config: Own())
    try:
        same_model = saved(tmp_path / "m", "own")
        assert "head.mine.weight" in load_file(tmp_path / "m" / "model.safetensors")
        same(tmp_path / "m", same_model)
        with pytest.raises(BertkitError, match="already"):
            register_head("own", lambda config: Own())
    finally:
        del HEADS["own"]
