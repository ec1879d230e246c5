"""bertkit's fine-tuning step for step beside a plain loop over transformers' classes: the full-size comparison in miniature."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bertkit.batches.labelled import LabelledSource
from bertkit.bench import reference
from bertkit.cli.main import run
from bertkit.corpus.wordpiece import load_wordpiece
from bertkit.tasks.data import load_parts
from bertkit.tasks.registry import kind_of, task_named
from bertkit.training.optimizer import OptimizerSettings

transformers = pytest.importorskip("transformers")

WORDS = ["the", "film", "was", "good", "bad", "rome", "paris", "anna", "went", "to", "in", "a", "dull", "where", "did", "go"]
RATE, SEED, EPOCHS, BATCH = 3e-3, 7, 2, 4


def sst2(folder: Path, rng: np.random.Generator, rows: int) -> None:
    lines = [f"{' '.join(rng.choice(WORDS, rng.integers(1, 12)))}\t{rng.integers(2)}" for _ in range(rows)]
    text = "\n".join(["sentence\tlabel", *lines]) + "\n"
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(text, encoding="utf-8")


def conll2003(folder: Path, rng: np.random.Generator, rows: int) -> None:
    tags = {"rome": "B-LOC", "paris": "B-LOC", "anna": "B-PER"}
    sentences = [rng.choice(WORDS, rng.integers(1, 12)) for _ in range(rows)]
    text = "\n".join("".join(f"{word} {tags.get(word, 'O')}\n" for word in words) for words in sentences)
    for name in ("train.txt", "valid.txt"):
        (folder / name).write_text(text, encoding="utf-8")


def squad(folder: Path, rng: np.random.Generator, rows: int) -> None:
    paragraphs: list[dict[str, Any]] = []
    for number in range(rows):
        words = rng.choice(WORDS, rng.integers(3, 24))
        at = int(rng.integers(len(words)))
        answer = {"text": str(words[at]), "answer_start": len("".join(f"{word} " for word in words[:at]))}
        asked = {"id": str(number), "question": "where did anna go", "answers": [answer]}
        paragraphs.append({"context": " ".join(words), "qas": [asked]})
    text = json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]})
    for name in ("train-v1.1.json", "dev-v1.1.json"):
        (folder / name).write_text(text, encoding="utf-8")


def swag(folder: Path, rng: np.random.Generator, rows: int) -> None:
    header = "sent1,sent2,ending0,ending1,ending2,ending3,label"
    texts = [[" ".join(rng.choice(WORDS, rng.integers(1, 7))) for _ in range(6)] for _ in range(rows)]
    text = "\n".join([header, *(f"{','.join(each)},{rng.integers(4)}" for each in texts)]) + "\n"
    for name in ("train.csv", "val.csv"):
        (folder / name).write_text(text, encoding="utf-8")


MAKERS = {"sst2": sst2, "conll2003": conll2003, "squad": squad, "swag": swag}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=64, initializer_range=0.2, **sizes)
    reference.quiet()
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", MAKERS)
def test_fine_tuning_is_the_plain_loop_step_for_step(
    name: str, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, start = tmp_path / "data", tmp_path / "start"
    data.mkdir()
    MAKERS[name](data, np.random.default_rng(1), 18)  # 5 batches, the last of 2 (squad: more, of windows)
    task = task_named(name)
    kind = kind_of(task)
    part = load_parts(task, folder=str(data))["train"]
    labels = kind.labels(part.rows, task, None, for_training=True)
    reference.write_start(base, start, kind.head, labels.names, seed=SEED)

    shared = ["--data", str(data), "--max-length", "24", "--precision", "fp32", "--json"]
    shared += ["--stride", "4"] if name == "squad" else []
    asked = ["--model", "start", "--output", "run", "--lr", str(RATE), "--epochs", str(EPOCHS), "--batch-size", str(BATCH)]
    asked += ["--seed", str(SEED), "--log-every", "1", "--keep-last", "--micro-tokens", "48"]
    assert run(["finetune", name, *shared, *asked]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert run(["eval", name, "--model", "run", *shared]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    lines = [json.loads(line) for line in Path("run/log.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [line["loss"] for line in lines if "loss" in line]

    settings = kind.settings(max_length=24, **({"stride": 4} if name == "squad" else {}))
    wordpiece = load_wordpiece(start)
    encoded = kind.encode(part.rows, wordpiece, labels, settings, for_training=True)
    source = LabelledSource(encoded.examples, kind.collate, seed=SEED, batch_size=BATCH)
    batches = [batch for epoch in range(EPOCHS) for step in range(source.steps(epoch)) for batch in source.step(epoch, step)]
    model = reference.load(start, kind.head)
    rates = OptimizerSettings(learning_rate=RATE)
    steps = list(reference.train(model, batches, steps=len(batches), settings=rates, warmup=0.1))

    assert not [warning for warning in trained["warnings"] if warning["kind"] == "new-head"]
    np.testing.assert_allclose(found, [loss for _, loss, _, _ in steps], rtol=5e-5)
    assert found[-1] != pytest.approx(found[0], rel=0.01), "it must have trained"
    weights = load_file(tmp_path / "run" / "model.safetensors")
    for tensor, expected in model.state_dict().items():
        if not tensor.endswith("position_ids"):
            torch.testing.assert_close(weights[tensor], expected, rtol=0, atol=1e-3, msg=lambda m, t=tensor: f"{t}: {m}")

    tested = kind.encode(part.rows, wordpiece, labels, settings)
    outputs = reference.outputs(model, tested.examples, kind.collate, batch_size=5)
    predictions = kind.decode(outputs, tested.examples, part.rows, labels, settings)
    scores = kind.score(predictions, part.rows, task, labels)
    assert evaluated["metrics"][task.primary] == pytest.approx(scores.best, rel=1e-6)
    figures = evaluated["metrics"]
    assert {key: value for key, value in trained["metrics"].items() if key in figures} == figures


def test_padding_takes_part_in_no_loss() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = transformers.BertForQuestionAnswering(transformers.BertConfig(vocab_size=20, **sizes, **plain))
    ids = torch.randint(5, 20, (2, 6))
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    spans = {"start_positions": torch.tensor([1, 1]), "end_positions": torch.tensor([4, 2])}
    both, own = reference.losses(model, inputs | spans)
    alone = [
        model(
            **{key: value[row : row + 1, :length] for key, value in inputs.items()},
            **{key: value[row : row + 1] for key, value in spans.items()},
        ).loss
        for row, length in ((0, 6), (1, 3))
    ]
    torch.testing.assert_close(both, (alone[0] + alone[1]) / 2)
    assert own > both + 0.01  # transformers' own counts padding


@pytest.mark.parametrize(("step", "share"), [(1, 0.25), (4, 1.0), (5, 36 / 37), (40, 1 / 37)])
def test_linear_rate(step: int, share: float) -> None:
    assert reference.linear_rate(step, 40, 0.1) == pytest.approx(share)
