"""The commands as functions: the same settings, runs and figures as on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from job_tests import Call, MakeModel, review

import bertkit as library
from bertkit.errors import DataError, SettingsError, UsageError


def test_from_a_text_to_an_encoder(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"model.size": "tiny", "tokenizer.vocab_size": 300, "examples.max_length": 32, "budget.steps": 1}
    more = {"device.threads": 1, "inputs.validation": [str(corpus.with_name("valid.txt"))], "inputs.validation_sequences": 8}
    made = library.pretrain(corpus, output=tmp_path / "run", settings=settings | more)
    assert (made.state, made.output) == ("finished", tmp_path / "run")
    assert made.metrics["mlm_loss"] > 0
    assert capsys.readouterr().out == ""
    again = library.pretrain(corpus, output=tmp_path / "run", settings=settings | more, quiet=True)
    assert again.state == "already finished"
    assert capsys.readouterr() == ("", "")
    recorded = json.loads((tmp_path / "run" / "bertkit.json").read_text())["command"]
    assert recorded.startswith("bertkit pretrain --set ")
    assert "model.size=tiny" in recorded
    encoder = library.load_encoder(tmp_path / "run")
    hidden = encoder(torch.tensor([[2, 10, 3, 0], [2, 11, 12, 3]]), torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]))
    assert hidden.to_padded().shape == (2, 4, 128)
    assert not encoder.training


def test_a_task_from_training_to_predictions(bertkit: Call, tiny: Path, sst2: Path) -> None:
    precise = {"device.precision": "fp32"}  # some CPUs have bf16, and say that they take it
    settings = {"optimizer.learning_rate": 0.01, "budget.epochs": 6.0, "batch.size": 16, **precise}
    tuned = library.finetune("SST2", model=tiny, data=sst2, settings=settings, quiet=True)
    assert tuned.output == Path("runs/sst2")
    scored = library.evaluate("sst2", data=sst2, settings=precise, quiet=True)
    assert scored.metrics["accuracy"] == tuned.metrics["accuracy"]
    assert [notice.kind for notice in scored.warnings] == ["model"]  # which run it was
    shown = bertkit("eval", "sst2", "--data", sst2, "--precision", "fp32")
    assert shown.metrics == scored.metrics
    texts = [review(number)[0] for number in range(300, 306)]
    records = library.predict("sst2", iter(texts), model="runs/sst2", quiet=True)
    assert [record["id"] for record in records] == [str(number) for number in range(6)]
    assert all(set(record["probabilities"]) == {"negative", "positive"} for record in records)
    rows = library.predict("sst2", model="runs/sst2", data=sst2, quiet=True)
    assert len(rows) == 10
    assert not Path("said.jsonl").exists()


def test_progress_over_texts_speaks_of_no_stdin(make_model: MakeModel, capsys: pytest.CaptureFixture[str]) -> None:
    model = make_model("classification", ("negative", "positive"))
    library.predict("sst2", ["good"] * 40, model=model)
    said = capsys.readouterr().err
    assert "texts" in said
    assert "stdin" not in said


def test_pairs_and_texts_of_several_lines(bertkit: Call, make_model: MakeModel) -> None:
    model = make_model("classification", ("entailment", "neutral", "contradiction"))
    whole = library.predict("mnli", [("a\tb\nc", "d"), ("a b c", "d")], model=model, quiet=True)
    assert whole[0]["probabilities"] == whole[1]["probabilities"]


def test_what_is_wrong_is_said(tiny: Path) -> None:
    with pytest.raises(SettingsError, match=r"Did you mean 'optimizer\.learning_rate'"):
        library.finetune("sst2", model=tiny, settings={"optimiser.learning_rate": 1})
    with pytest.raises(SettingsError, match="twice"):
        library.finetune("sst2", model=tiny, settings={"model": "other"})
    with pytest.raises(UsageError, match="no task"):
        library.finetune("sst3")
    for texts, data in ((None, None), (["a"], "b")):
        with pytest.raises(SettingsError, match="either texts or data"):
            library.predict("sst2", texts, data=data)


def test_half_a_surrogate_pair_is_named_by_its_text(make_model: MakeModel) -> None:
    tagger = make_model("tagging", ("O", "B-X", "I-X"))
    for call in (lambda texts: library.predict("tokens", texts, model=tagger), lambda texts: library.embed(texts, model=tagger)):
        with pytest.raises(DataError, match=r"half a surrogate pair \(U\+D83D\).*texts\[1\]"):
            call(["good", "bad\ud83d"])


def test_one_text_is_no_list_of_characters(make_model: MakeModel) -> None:
    tagger = make_model("tagging", ("O", "B-X", "I-X"))
    for call in (lambda texts: library.predict("tokens", texts, model=tagger), lambda texts: library.embed(texts, model=tagger)):
        with pytest.raises(SettingsError, match="one text, where several"):
            call("good")
        for odd in (None, float("nan"), 1):
            with pytest.raises(DataError, match=r"no text.*texts\[1\]"):
                call(["good", odd])
        assert len(call([])) == 0
    with pytest.raises(DataError, match=r"no text.*texts\[0\]"):
        library.embed([("a", "b")], model=tagger)  # type: ignore[list-item]  # pairs have no vector
