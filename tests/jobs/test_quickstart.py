"""The quickstart in small: every step runs, a second time too, and a text that is too little is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.cli.main import run
from bertkit.corpus.sentences import split_sentences
from bertkit.errors import DataError
from bertkit.jobs import quickstart as job
from bertkit.jobs.quickstart_text import CLASSES, Document, distinct, python_topics, write_task


def test_documents_mostly_contained_in_a_longer_one_are_left_out() -> None:
    whole = Document(name="whole", paragraphs=("One thing is said. Another is. A third one comes. The last ends it.",))
    part = Document(name="part", paragraphs=("Another is. A third one comes. This is its own.",))
    apart = Document(name="apart", paragraphs=("Nothing here stands elsewhere. Nor does this.",))
    assert [d.name for d in distinct([part, apart, whole])] == ["whole", "apart"]


def test_the_topics_of_this_python_give_eight_distinct_long_documents() -> None:
    documents = distinct(python_topics())
    assert len(documents) > CLASSES
    chosen = [set(document.sentences()) for document in documents[:CLASSES]]
    for number, sentences in enumerate(chosen):
        for longer in chosen[:number]:
            assert 2 * len(sentences & longer) <= len(sentences)


def test_sentences_of_two_documents_are_in_neither_file(tmp_path: Path) -> None:
    shared = "This very sentence stands in two of the documents."
    documents = [
        Document(
            name=f"d{n}", paragraphs=(" ".join(f"Sentence {i} of document number {n} says {i * n}." for i in range(30)), shared)
        )
        for n in range(9)
    ]
    share = write_task(documents, tmp_path / "train.csv", tmp_path / "validation.csv")
    train, validation = ((tmp_path / f"{name}.csv").read_text(encoding="utf-8") for name in ("train", "validation"))
    assert shared not in train + validation
    assert "document number 8" not in train + validation  # the ninth document is text, no class
    own = set(validation.splitlines()[1:])
    assert own.isdisjoint(train.splitlines()[1:])
    labels = [line.rpartition(",")[2] for line in own]
    assert share == max(labels.count(label) for label in labels) / len(labels)


def test_a_text_of_eight_documents_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"Document {n} has a sentence. And another one." for n in range(8)), encoding="utf-8")
    assert run(["quickstart", str(text), "--output", str(tmp_path / "out"), "--json"]) == 3
    assert "at least 9 documents" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert not (tmp_path / "out").exists()


def test_another_text_is_another_quickstart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/quickstart/text").mkdir(parents=True)
    (tmp_path / "runs/quickstart/text/corpus.txt").write_text("One text.\n", encoding="utf-8")

    def pretrain(self: Any, name: str, steps: int) -> Path:
        raise DataError(f"{self.root}")

    monkeypatch.setattr(job._Steps, "pretrain", pretrain)
    for named, code, said in (((), 3, "runs/quickstart-2"), (("--output", "runs/quickstart"), 2, "on another text")):
        assert run(["quickstart", *named, "--json"]) == code
        assert said in json.loads(capsys.readouterr().out)["error"]["message"]
    assert (tmp_path / "runs/quickstart/text/corpus.txt").read_text(encoding="utf-8") == "One text.\n"
    assert run(["quickstart", "--output", "runs/quickstart", "--overwrite", "--json"]) == 3


@pytest.mark.slow
def test_every_step_runs_and_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "STEPS", 30)
    monkeypatch.setattr(job, "EPOCHS", 1.0)
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "quick"
    reports = []
    for _ in range(2):
        assert run(["quickstart", "--output", str(root), "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    metrics = reports[0]["metrics"]
    assert set(metrics) == {"accuracy", "untrained_accuracy", "majority_accuracy"}
    assert metrics["accuracy"] > metrics["majority_accuracy"]
    assert reports[1]["metrics"] == metrics
    predictions = [json.loads(line) for line in (root / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(predictions) == 2
    assert all(one["prediction"] in one["probabilities"] for one in predictions)
    assert (root / "pretrained" / "model.safetensors").exists()
    assert split_sentences((root / "text" / "corpus.txt").read_text(encoding="utf-8").splitlines()[0])
