"""The whole story through the command line: from a text to a BERT, from the BERT to a scored task, and on to predictions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from bertkit.cli.main import run
from bertkit.jobs import pretrain
from bertkit.tasks.models import load_model

pytestmark = pytest.mark.slow

WORDS = {"statement": ("return", "import", "raise"), "number": ("integer", "float", "complex")}


def rows(numbers: range) -> list[tuple[str, str]]:
    names = list(WORDS)
    return [(f"the {WORDS[names[n % 2]][n // 2 % 3]} of line {n}", names[n % 2]) for n in numbers]


def table(numbers: range) -> str:
    return "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows(numbers))


def test_from_a_text_to_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    validated: list[Any] = []
    losses = pretrain.evaluate_losses

    def remembering(model: Any, batches: Any, *args: Any, **more: Any) -> Any:
        validated[:] = list(batches)
        return losses(model, list(validated), *args, **more)

    monkeypatch.setattr(pretrain, "evaluate_losses", remembering)

    def bertkit(*argv: object) -> dict[str, Any]:
        code = run([*map(str, argv), "--json"])
        shown = capsys.readouterr()
        assert code == 0, shown.err
        told: dict[str, Any] = json.loads(shown.out)
        return told

    # A text becomes a BERT, which has learned something of it.
    Path("help.txt").write_text("\n\n".join(topics[name] for name in sorted(topics)[:60]), encoding="utf-8")
    told = bertkit(
        "pretrain", "--corpus", "help.txt", "--size", "tiny", "--vocab-size", "1000", "--max-length", "48", "--steps", "120",
        "--set", "inputs.validation_sequences=40", "--precision", "fp32",
    )  # fmt: skip
    pretrained = Path(told["output"])
    assert pretrained == Path("runs/help-tiny")
    figures = told["metrics"]
    assert figures["mlm_loss"] < figures["unigram_loss"] < math.log(1000)

    # What lies in the folder has the very loss that was reported.
    model, _ = load_model(pretrained, "pretraining", must_have_head=True)
    with torch.no_grad():
        parts = [model.eval()(batch) for batch in validated]
    for name in ("mlm", "nsp"):
        loss = sum(float(part[name].total) for part in parts) / sum(part[name].count for part in parts)
        assert loss == pytest.approx(figures[f"{name}_loss"], rel=1e-5)

    # The BERT becomes a classifier: its body is the pretrained one, its head is new and learns.
    for name, numbers in (("train", range(120)), ("dev", range(120, 160))):
        Path(f"{name}.csv").write_text(table(numbers))
    shared = ("finetune", "classification", "--model", pretrained, "--data", ".", "--precision", "fp32")
    bertkit(*shared, "--steps", "1", "--lr", "1e-9", "--output", "runs/still")
    before, still = (load_file(folder / "model.safetensors") for folder in (pretrained, Path("runs/still")))
    body = [name for name in still if name.startswith("bert.")]
    assert len(body) == 39  # 5 of the embeddings, 16 of each layer, 2 of the pooler
    assert all(torch.allclose(before[name], still[name], rtol=0, atol=1e-7) for name in body)
    told = bertkit(*shared, "--epochs", "10", "--lr", "1e-3")
    assert told["metrics"]["accuracy"] == 1.0

    # Reloaded it scores the same, and says the same of every row.
    scored = bertkit("eval", "classification", "--data", ".", "--precision", "fp32")
    assert scored["model"] == told["output"] == "runs/classification"
    assert {name: told["metrics"][name] for name in scored["metrics"]} == scored["metrics"]
    Path("new.csv").write_text("text\n" + "".join(f"{text}\n" for text, _ in rows(range(300, 320))))
    bertkit("predict", "classification", "--test-file", "new.csv", "--output", "said.jsonl")
    said = [json.loads(line)["prediction"] for line in Path("said.jsonl").read_text().splitlines()]
    assert said == [label for _, label in rows(range(300, 320))]
