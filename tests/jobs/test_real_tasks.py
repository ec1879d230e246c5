"""Slices of the published data end to end: trained, scored again from the folder, predicted, and loaded by transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from job_tests import Call, MakeModel, predictions, review

pytestmark = pytest.mark.slow


def untimed(figures: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in figures.items() if name not in ("steps", "tokens", "train_seconds")}


@pytest.mark.parametrize(("train", "dev"), [("train-v1.1-2000", "dev-v1.1-1000"), ("train-v2.0-2000", "dev-v2.0-1000")])
def test_squad(bertkit: Call, tiny: Path, real_data: Path, train: str, dev: str) -> None:
    folder = real_data / "data/squad"
    rows = ("--validation-file", folder / f"{dev}.json", "--max-eval-samples", "60", "--max-length", "160", "--stride", "48")
    done = bertkit(
        "finetune", "squad", "--model", tiny, "--train-file", folder / f"{train}.json", "--max-train-samples", "100",
        "--epochs", "1", *rows,
    )  # fmt: skip
    figures = done.metrics
    assert figures["examples"] == 60
    scored = bertkit("eval", "squad", *rows)
    assert untimed(figures) == scored.metrics
    where = Path(scored.report["output"])
    # The official files give the same figures again, as any system's would.
    again = bertkit("eval", "squad", "--predictions", where / "predictions.json", *rows[:4])
    assert {name: value for name, value in again.metrics.items() if name in ("exact", "f1")} == {
        name: scored.metrics[name] for name in ("exact", "f1")
    }
    assert (where / "null_odds.json").exists() == ("v2.0" in dev)
    data = json.loads((folder / f"{dev}.json").read_text(encoding="utf-8"))["data"]
    contexts = {
        qa["id"]: paragraph["context"] for article in data for paragraph in article["paragraphs"] for qa in paragraph["qas"]
    }
    answers = json.loads((where / "predictions.json").read_text(encoding="utf-8"))
    assert len(answers) == 60
    assert all(text in contexts[name] for name, text in answers.items())


def test_conll2003(bertkit: Call, tiny: Path, real_data: Path) -> None:
    folder = real_data / "data/conll2003"
    rows = ("--data", folder, "--max-eval-samples", "80")
    done = bertkit(
        "finetune", "conll2003", "--model", tiny, *rows, "--max-train-samples", "300", "--epochs", "4", "--lr", "0.005"
    )
    assert 0.0 < done.metrics["accuracy"] < 1.0
    scored = bertkit("eval", "conll2003", *rows)
    assert untimed(done.metrics) == scored.metrics
    said = Path(scored.report["output"]) / "predictions.txt"
    again = bertkit("eval", "conll2003", "--predictions", said, *rows)
    for name in ("precision", "recall", "f1", "f1_strict"):
        assert again.metrics[name] == scored.metrics[name]


def test_every_saved_head_in_transformers(
    bertkit: Call, trained: Path, make_model: MakeModel, tiny: Path, sst2: Path, tmp_path: Path
) -> None:
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

    transformers.logging.set_verbosity_error()
    pipe = transformers.pipeline("text-classification", model=str(trained), device="cpu")
    texts = [review(number)[0] for number in range(500, 512)]
    (tmp_path / "own.tsv").write_text("sentence\n" + "\n".join(texts) + "\n")
    named = ("--test-file", "own.tsv", "--output", "said.jsonl", "--precision", "fp32")
    assert bertkit("predict", "sst2", "--model", trained, *named).code == 0
    for theirs, ours in zip(pipe(texts), predictions(Path("said.jsonl")), strict=True):
        assert theirs["label"] == ours["prediction"]
        assert theirs["score"] == pytest.approx(ours["score"], abs=1e-5)
    long = "good " * 1000
    # This pipeline cuts on request alone, whoever's model it is; the length it then cuts at is the tokenizer's.
    assert pipe(long, truncation=True)[0]["label"] in ("positive", "negative")
    (tmp_path / "valid.txt").write_text("good B-X\nbad O\n\n")
    (tmp_path / "q.json").write_text(
        json.dumps({"data": [{"paragraphs": [{"context": "a b c", "qas": [
            {"id": "1", "question": "a", "answers": [{"text": "b", "answer_start": 2}]}]}]}]})
    )  # fmt: skip
    for task, file in (("conll2003", "valid.txt"), ("squad", "q.json")):
        flags = ("--train-file", file, "--validation-file", file, "--steps", "1", "--output", task)
        assert bertkit("finetune", task, "--model", tiny, *flags).code == 0
    tagger = transformers.pipeline("token-classification", model="conll2003", device="cpu")
    assert len(tagger("good bad")) >= 1
    assert {one["entity"] for one in tagger("good bad " * 20)} <= {"O", "B-X", "I-X"}
    tagger(long)  # 1 000 words: cut at the model's positions, no crash
    answerer = transformers.pipeline("question-answering", model="squad", device="cpu") if "question-answering" in (
        transformers.pipelines.PIPELINE_REGISTRY.get_supported_tasks()
    ) else None  # fmt: skip
    if answerer is not None:
        assert answerer(question="good ?", context=long)["answer"]
    else:
        model, missing = transformers.AutoModelForQuestionAnswering.from_pretrained("squad", output_loading_info=True)
        assert not missing["missing_keys"]
        assert not missing["unexpected_keys"]
        tokenizer = transformers.AutoTokenizer.from_pretrained("squad")
        encoded = tokenizer("good ?", long, truncation=True, return_tensors="pt")
        assert encoded["input_ids"].shape == (1, 512)
        with torch.no_grad():
            assert model(**encoded).start_logits.shape == (1, 512)
    filler = transformers.pipeline("fill-mask", model=str(tiny), device="cpu")
    theirs = filler("this is [MASK] .", top_k=3)
    (ours,) = bertkit("fill-mask", tiny, "this is [MASK] .", "--top", "3").report["filled"]
    assert [one["token_str"] for one in theirs] == [one["word"] for one in ours["masks"][0]]
    assert [one["score"] for one in theirs] == pytest.approx([one["probability"] for one in ours["masks"][0]], abs=1e-5)
