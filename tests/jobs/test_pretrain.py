"""Pretraining by its command: what comes out, what is said, and what is refused before the first step."""

from __future__ import annotations

import json
import math
from filecmp import cmp as same_file
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import at_step, call, checkpoints, documents, done, flags, log, same_bits, steps, weights, write

from bertkit.corpus.store import TokenStore
from bertkit.jobs.pretraining_model import dropout_fields
from bertkit.settings.parts import ModelSettings


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 10 steps, validated and saved at every fifth."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    done(*flags(corpus, folder, "--steps", "10", "--eval-every", "5", "--save-every", "5"))
    return folder


def kinds(told: Any) -> list[str]:
    return [warning["kind"] for warning in told["warnings"]]


# What comes out


def test_the_log_has_the_parts_apart(run: Path) -> None:
    lines = log(run)
    trained = [line for line in lines if "loss" in line]
    assert [line["step"] for line in trained] == list(range(1, 11))
    for line in trained:
        assert line["loss"] == pytest.approx(line["mlm_loss"] + line["nsp_loss"])
        assert 0 <= line["mlm_accuracy"] <= 1
        assert 0 <= line["nsp_accuracy"] <= 1
        assert line["lr"] > 0
        assert line["tokens_per_second"] > 0
    # The warm-up is a tenth of 10 steps: the first has the peak rate, then it falls on a line to 0 behind the last.
    assert [line["lr"] / 2e-3 for line in trained] == pytest.approx([(11 - step) / 10 for step in range(1, 11)])
    validated = [line for line in lines if "valid_mlm_loss" in line]
    assert [line["step"] for line in validated] == [5, 10]
    assert all(math.isfinite(line["valid_nsp_loss"]) for line in validated)


def test_order_prediction_is_learned_and_logged_by_its_name(corpus: Path, tmp_path: Path) -> None:
    done(*flags(corpus, tmp_path / "out", "--steps", "3", "--objective", "mlm+sop"))
    for line in (line for line in log(tmp_path / "out") if "loss" in line):
        assert line["loss"] == pytest.approx(line["mlm_loss"] + line["sop_loss"])
    assert "nsp_loss" not in (tmp_path / "out" / "log.jsonl").read_text(encoding="utf-8")
    assert {"sop_loss", "sop_accuracy"} <= set(json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8")))
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForPreTraining"]


def test_figures_and_state_of_a_finished_run(run: Path) -> None:
    figures = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    assert {"mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy", "unigram_loss", "steps", "tokens"} <= set(figures)
    assert figures["steps"] == 10
    assert figures["mlm_loss"] == [line for line in log(run) if "valid_mlm_loss" in line][-1]["valid_mlm_loss"]
    assert json.loads((run / "bertkit.json").read_text(encoding="utf-8"))["state"] == "finished"
    assert checkpoints(run) == [5, 10]
    assert same_bits(run, run / "checkpoints" / "checkpoint-10")
    assert not list(run.glob(".*"))
    assert not (run / "bertkit.lock").exists()


@pytest.mark.slow
def test_transformers_loads_the_run(run: Path) -> None:
    from transformers import AutoTokenizer, BertForPreTraining

    model, facts = BertForPreTraining.from_pretrained(run, output_loading_info=True)
    assert not facts["missing_keys"]
    assert not facts["unexpected_keys"]
    assert len(AutoTokenizer.from_pretrained(run)) == model.config.vocab_size == 300
    assert model.config.pad_token_id == 0


def test_the_same_command_again_is_already_finished(run: Path, corpus: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    argv = flags(corpus, run, "--steps", "10", "--eval-every", "3", "--save-every", "5", "--workers", "1")
    told = done(*argv, "--json").object
    assert told["state"] == "already finished"
    assert told["metrics"]["steps"] == 10
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_other_settings_in_the_named_folder_are_refused_each_by_name(run: Path, corpus: Path) -> None:
    found = call(*flags(corpus, run, "--steps", "12", "--lr", "1e-4", "--mlm-probability", "0.2"))
    assert found.code == 2
    for name in ("budget.steps: 10 before, 12 now", "optimizer.learning_rate", "masking.probability", "--overwrite"):
        assert name in found.err


def test_the_resolved_settings_make_the_same_run_again(run: Path, tmp_path: Path) -> None:
    done("pretrain", "--recipe", str(run / "settings.yaml"), "-o", str(tmp_path / "again"))
    assert steps(tmp_path / "again") == steps(run)
    assert same_bits(tmp_path / "again", run)


def test_evaluating_more_often_changes_no_loss(run: Path, corpus: Path, tmp_path: Path) -> None:
    done(*flags(corpus, tmp_path / "often", "--steps", "10", "--eval-every", "1", "--save-every", "100"))
    assert steps(tmp_path / "often") == steps(run)
    assert same_bits(tmp_path / "often", run)


def test_going_on_from_a_checkpoint_folder(run: Path, corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "more", "--steps 2 --lr 1e-9 --json")
    for name in ("--size", "--vocab-size"):  # a model that is gone on from has its own
        place = argv.index(name)
        del argv[place : place + 2]
    start = run / "checkpoints" / "checkpoint-5"
    told = done(*argv, "--init-from", str(start)).object
    assert told["state"] == "finished"
    before, after = weights(start), weights(tmp_path / "more")
    assert all(torch.allclose(before[name], after[name], atol=1e-7) for name in before)
    assert (tmp_path / "more" / "vocab.txt").read_bytes() == (run / "vocab.txt").read_bytes()


def test_a_vocabulary_larger_than_the_models(run: Path, corpus: Path, tmp_path: Path) -> None:
    larger = tmp_path / "vocab.txt"
    larger.write_bytes((run / "vocab.txt").read_bytes() + b"onemore\n")
    argv = flags(corpus, tmp_path / "more", "--steps 1 --json")
    for name in ("--size", "--vocab-size"):
        place = argv.index(name)
        del argv[place : place + 2]
    refused = call(*argv, "--init-from", str(run), "--tokenizer", str(larger), "--uncased")
    assert (refused.code, refused.object["error"]["kind"]) == (3, "model")
    assert "301 entries, and the model only 300" in refused.object["error"]["message"]
    assert not (tmp_path / "more").exists()
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer_config.json"):
        (model / name).write_bytes((run / name).read_bytes())
    (model / "vocab.txt").write_bytes(larger.read_bytes())
    assert call("fill-mask", str(model), "a [MASK]", "--json").code == 3
    (model / "vocab.txt").write_bytes((run / "vocab.txt").read_bytes() + b"\n")  # a blank line behind the last entry
    assert call("fill-mask", str(model), "a [MASK]", "--json").code == 0


def test_a_vocabulary_of_other_entries_than_the_models_is_said(run: Path, corpus: Path, tmp_path: Path) -> None:
    entries = (run / "vocab.txt").read_text(encoding="utf-8").splitlines()
    entries[-1], entries[-2] = "another", "onemore"
    for name, text in (("other", entries[:-3] + entries[-2:]), ("same", (run / "vocab.txt").read_text("utf-8").splitlines())):
        (tmp_path / name).write_text("\n".join(text) + "\n", encoding="utf-8")
    argv = flags(corpus, tmp_path / "more", "--steps 1 --json --overwrite")
    for name in ("--size", "--vocab-size"):
        place = argv.index(name)
        del argv[place : place + 2]
    said = []
    for name in ("other", "same"):
        told = done(*argv, "--init-from", str(run), "--tokenizer", str(tmp_path / name), "--uncased").object["warnings"]
        said.append([warning["message"] for warning in told if warning["kind"] == "other-vocabulary"])
    assert len(said[0]) == 1
    assert said[0][0].startswith("3 of the 299 entries")
    assert said[1] == []


def test_a_dropout_of_its_own_where_it_goes_on_from_a_model(run: Path, corpus: Path, tmp_path: Path) -> None:
    argv = flags(corpus, tmp_path / "more", "--steps 1 --set model.dropout=0 --json")
    for name in ("--size", "--vocab-size"):
        place = argv.index(name)
        del argv[place : place + 2]
    done(*argv, "--init-from", str(run))
    config = json.loads((tmp_path / "more" / "config.json").read_text())
    assert (config["hidden_dropout_prob"], config["attention_probs_dropout_prob"]) == (0.0, 0.0)


def test_layers_that_are_computed_again_learn_the_same(corpus: Path, tmp_path: Path) -> None:
    for name, more in (("plain", ""), ("saving", " --set batch.save_memory=true")):
        done(*flags(corpus, tmp_path / name, f"--steps 3{more}"))
    assert steps(tmp_path / "saving") == steps(tmp_path / "plain")
    assert same_bits(tmp_path / "saving", tmp_path / "plain")


# Defaults


@pytest.mark.slow
def test_the_corpus_alone_is_enough(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "wiki.txt", documents(40))
    argv = ["pretrain", "--corpus", "wiki.txt"]
    with at_step(2, lambda course: course.console.stop.request(15)):
        stopped = call(*argv)
    assert stopped.code == 143
    assert "a checkpoint of step 2 was written" in stopped.err
    said = stopped.err[: stopped.err.index("Stopped")]
    for words in (
        "an uncased vocabulary of 8,000 entries",
        "39 documents",
        "validation: 1 document (held out, chosen by hash)",
        "mini (new), 4 layers of 256",
        "Training: mlm+nsp, ",
        "L = 128, batches of",
        "60 minutes",
        "into runs/wiki-mini",
    ):
        assert words in said
    assert checkpoints(tmp_path / "runs/wiki-mini") == [2]
    with at_step(4, lambda course: course.console.stop.request(2)):
        again = call(*argv)
    assert again.code == 130
    assert "Going on from runs/wiki-mini/checkpoints/checkpoint-2 (step 2)" in again.err
    with at_step(1, lambda course: course.console.stop.request(2)):
        other = call(*argv, "--seed", "7", "--size", "mini")
    assert other.code == 130
    assert "runs/wiki-mini is another run's, so this one goes to runs/wiki-mini-2" in other.err
    assert checkpoints(tmp_path / "runs/wiki-mini-2") == [1]
    assert "an uncased vocabulary of" not in other.err  # the one that the first run trained on this text is taken
    assert "Built its token store" in stopped.err
    assert "Found its token store" in other.err
    names = ("vocab.txt", "tokenizer_config.json")
    assert all(same_file(tmp_path / "runs/wiki-mini" / name, tmp_path / "runs/wiki-mini-2" / name) for name in names)


# Refused before the first step


def refused(code: int, *argv: str, output: Path) -> str:
    """The error of a command that must be refused and leave nothing behind; told alike as JSON."""
    found = call(*argv, "--json")
    told = found.object
    assert (found.code, told["ok"], told["exit_code"]) == (code, False, code)
    assert not output.exists()
    error = told["error"]
    return " ".join(str(error[name]) for name in ("message", "where", "hint"))


def test_bad_input_leaves_no_folder_behind(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "one.txt").write_text("hello\ntom sawyer\nhow are you\n", encoding="utf-8")
    (tmp_path / "note").mkdir()
    (tmp_path / "note" / "note.txt").write_text("no model", encoding="utf-8")
    (tmp_path / "tf").mkdir()
    for name in ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "bert_config.json"):
        (tmp_path / "tf" / name).write_bytes(b"{}")
    more = ["--steps", "2"]
    assert "nothing.txt" in refused(4, *flags(tmp_path / "nothing.txt", out, *more), output=out.parent)
    assert "empty.txt" in refused(3, *flags(tmp_path / "empty.txt", out, *more), output=out.parent)
    words = refused(3, *flags(tmp_path / "one.txt", out, *more), output=out.parent)  # C19
    assert "two documents" in words
    assert "--objective mlm" in words
    plain = ["pretrain", "--corpus", str(corpus), "-o", str(out), *more]
    assert "'tiny'" in refused(2, *plain, "--size", "tine", output=out.parent)
    assert "'mlm+nsp'" in refused(2, *plain, "--objective", "mlm+nps", output=out.parent)
    assert "no model folder" in refused(3, *plain, "--init-from", str(tmp_path / "note"), output=out.parent)
    assert "TensorFlow" in refused(3, *plain, "--init-from", str(tmp_path / "tf"), output=out.parent)
    assert refused(4, *plain, "--init-from", str(tmp_path / "nowhere"), output=out.parent)


def test_a_refused_run_does_not_block_the_next_try(tmp_path: Path) -> None:
    write(tmp_path / "one.txt", [["hello there", "tom sawyer sat", "how are you"], ["", ""]])
    argv = flags(tmp_path / "one.txt", tmp_path / "out", "--steps", "1", "--vocab-size", "40")
    assert call(*argv).code == 3
    found = done(*argv, "--objective", "mlm", "--json")
    assert "no-held-out" in kinds(found.object)


def test_a_folder_with_someones_files_is_refused(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    found = call(*flags(corpus, tmp_path, "--steps", "1"))
    assert found.code == 2
    assert "thesis.txt" in found.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_special_tokens_of_the_vocabulary(corpus: Path, tmp_path: Path, run: Path) -> None:  # C08
    out = tmp_path / "out"
    words = (run / "vocab.txt").read_text(encoding="utf-8")
    for name, text, said in (
        ("a", words.replace("[MASK]\n", ""), ["[MASK]"]),
        ("b", words.replace("[UNK]", "<unk>").replace("[PAD]", "<pad>").replace("[MASK]", "<mask>"), ["[PAD]", "<pad>"]),
    ):
        path = tmp_path / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        argv = [
            "pretrain",
            "--corpus",
            str(corpus),
            "--tokenizer",
            str(path),
            "--objective",
            "mlm",
            "--steps",
            "1",
            "-o",
            str(out),
        ]
        found = refused(3, *argv, output=out)
        assert all(token in found for token in said)
    clash = tmp_path / "clash"
    clash.mkdir()
    for file in ("config.json", "model.safetensors"):
        (clash / file).write_bytes((run / file).read_bytes())
    lines = words.splitlines()
    lines[0], lines[1] = lines[1], lines[0]
    (clash / "vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    argv = ["pretrain", "--corpus", str(corpus), "--init-from", str(clash), "--uncased", "--steps", "1", "-o", str(out)]
    found = refused(3, *argv, output=out)
    assert "[PAD]" in found
    assert "1" in found
    assert "0" in found


def test_relative_positions_are_refused_by_name(corpus: Path, tmp_path: Path, run: Path) -> None:  # C32
    from safetensors.torch import save_file

    folder = tmp_path / "relative"
    folder.mkdir()
    (folder / "vocab.txt").write_bytes((run / "vocab.txt").read_bytes())
    config = json.loads((run / "config.json").read_text(encoding="utf-8")) | {"position_embedding_type": "relative_key"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    extra = {"bert.encoder.layer.0.attention.self.distance_embedding.weight": torch.zeros(31, 8)}
    save_file(weights(run) | extra, folder / "model.safetensors")
    argv = ["pretrain", "--corpus", str(corpus), "--init-from", str(folder), "--uncased", "--steps", "1"]
    found = refused(3, *argv, "-o", str(tmp_path / "out"), output=tmp_path / "out")
    assert "position_embedding_type" in found
    assert "relative_key" in found


def test_sequences_longer_than_the_positions(corpus: Path, tmp_path: Path, run: Path) -> None:
    argv = ["pretrain", "--corpus", str(corpus), "--init-from", str(run), "--steps", "1", "--max-length", "1024"]
    found = refused(2, *argv, "-o", str(tmp_path / "out"), output=tmp_path / "out")
    assert "1024" in found
    assert "512" in found


# Texts


def stores(cache: Path) -> list[TokenStore]:
    newest = sorted((cache / "stores").rglob("store.json"), key=lambda path: path.stat().st_mtime_ns)
    return [TokenStore.open(path.parent) for path in newest]


def test_documents_that_the_tokenizer_deletes(tmp_path: Path) -> None:  # C02
    first = "First real line.\nSecond real line.\n\n\u200d\n\nThird doc line one.\nThird doc line two.\n"
    (tmp_path / "train.txt").write_text(first + "\n  \t \n\n\ufeff\n\n\u00ad\n\n\u200e\x00\ufffd\ue000\n", encoding="utf-8")
    write(tmp_path / "valid.txt", documents(3))
    found = done(*flags(tmp_path / "train.txt", tmp_path / "out", "--steps", "3", "--vocab-size", "60", "--json"))
    assert "Text: 2 documents" in found.err
    assert "dropped-documents" in kinds(found.object) or "without" in found.err


def test_special_token_text_in_the_corpus_is_text(tmp_path: Path, cache: Path) -> None:  # C12
    text = [["see [SEP] and [CLS] here", "it is [MASK] again"], ["another [PAD] document", "with [UNK] words in it"]] * 2
    write(tmp_path / "train.txt", text)
    write(tmp_path / "valid.txt", documents(3))
    done(*flags(tmp_path / "train.txt", tmp_path / "out", "--steps", "4", "--vocab-size", "90", "--objective", "mlm"))
    vocabulary = (tmp_path / "out" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    mine = [store for store in stores(cache) if len(store.document_ends) == 4 and store.ids.max() < 90]
    assert mine
    for store in mine:
        assert np.asarray(store.ids).min() >= 5  # no id of a special token, [UNK] neither
        assert {"[", "]", "sep"} <= {vocabulary[number] for number in np.unique(store.ids)} | {"sep"}


def test_one_sentence_a_document_is_said_and_goes_on(tmp_path: Path) -> None:  # C20
    lines = dict.fromkeys(" ".join(line.replace(".", "").split()) for text in documents(40) for line in text)
    write(tmp_path / "train.txt", [[line] for line in lines][:100])
    write(tmp_path / "valid.txt", documents(3))
    found = done(*flags(tmp_path / "train.txt", tmp_path / "out", "--steps", "2", "--json"))
    (said,) = [each["message"] for each in found.object["warnings"] if each["kind"] == "one-sentence-documents"]
    assert "100 of 100" in said
    assert "--objective mlm" in said
    assert found.err.count(said) == 1


def test_one_sentence_and_nothing_else_to_predict(tmp_path: Path) -> None:  # C17
    (tmp_path / "train.txt").write_text("a b\n", encoding="utf-8")
    more = "--objective mlm --mlm-probability 0.15 --batch-size 1 --steps 50 --vocab-size 20"
    done(*flags(tmp_path / "train.txt", tmp_path / "out", more))
    assert sorted(steps(tmp_path / "out")) == list(range(1, 51))
    assert all(math.isfinite(loss) for loss in steps(tmp_path / "out", "mlm_loss").values())
    assert all(torch.isfinite(each).all() for each in weights(tmp_path / "out").values())


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp"])
def test_a_model_of_one_segment(corpus: Path, tmp_path: Path, run: Path, objective: str) -> None:  # C31
    from safetensors.torch import save_file

    folder = tmp_path / "one-segment"
    folder.mkdir()
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    config = json.loads((run / "config.json").read_text(encoding="utf-8")) | {"type_vocab_size": 1}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = weights(run)
    (name,) = [name for name in tensors if "token_type_embeddings" in name]
    save_file(tensors | {name: tensors[name][:1].clone()}, folder / "model.safetensors")
    argv = ["pretrain", "--corpus", str(corpus), "--init-from", str(folder), "--objective", objective, "--steps", "2"]
    found = done(*argv, "--max-length", "32", "--batch-size", "4", "-o", str(tmp_path / "out"), "--json").object
    said = [each for each in found["warnings"] if "segment" in each["message"]]
    assert len(said) == (1 if objective == "mlm+nsp" else 0)
    assert json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["type_vocab_size"] == 1


@pytest.mark.parametrize(
    ("asked", "hidden", "attention"),
    [
        ({}, None, None),
        ({"dropout": 0.2}, 0.2, 0.2),
        ({"attention_dropout": 0}, None, 0),
        ({"dropout": 0.2, "attention_dropout": 0}, 0.2, 0),
    ],
)
def test_attention_may_have_a_dropout_of_its_own(asked: dict[str, float], hidden: float | None, attention: float | None) -> None:
    found = dropout_fields(ModelSettings(**asked))
    assert (found.get("hidden_dropout_prob"), found.get("attention_probs_dropout_prob")) == (hidden, attention)
