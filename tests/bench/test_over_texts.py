"""``bertkit bench finetune`` and ``predict``: both sides do the same work on the same rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertkit.bench.alternate import alternate
from bertkit.bench.finetune import Work, _model, _their_model, _work
from bertkit.bench.finetuning import padded_to
from bertkit.bench.onnx import Session, _Logits, dynamic_shapes, session
from bertkit.bench.predicting import Predicting, Slices
from bertkit.bench.process import OwnWays
from bertkit.bench.work import tuning_flops
from bertkit.cli.main import run
from bertkit.errors import MissingError
from bertkit.jobs.console import Console
from bertkit.jobs.models import config_of
from bertkit.jobs.start import Machine
from bertkit.labelled.rows import TextRow
from bertkit.model.config import EncoderConfig
from bertkit.settings.bench import BenchFinetuneSettings
from bertkit.settings.parts import DataSettings
from bertkit.tasks.models import build_model
from bertkit.tasks.text_examples import TextExample, collate_texts
from bertkit.training.device import TrainingDeviceSettings
from bertkit.training.timing import Timing

CONFIG = EncoderConfig(
    vocab_size=30_522, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, pad_token_id=0
)


WORDS = ("a", "good", "fine", "film")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of 32 columns over a vocabulary of a few words, with dropout 0 in its files."""
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *(f"##{c}" for c in "abcdefgh"))
    made = tmp_path_factory.mktemp("model")
    config = CONFIG.changed(vocab_size=len(vocabulary), labels=("negative", "positive"), hidden_dropout_prob=0.0)
    build_model("classification", config, seed=4).save(made)
    (made / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (made / "tokenizer_config.json").write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
    (made / "tags.txt").write_text("a O\ngood B-PER\nfilm O\n\nfine O\nfilm B-PER\n")
    lines = [f"{' '.join(WORDS[: 1 + n % 4])}\t{n % 2}" for n in range(40)]
    (made / "rows.tsv").write_text("sentence\tlabel\n" + "\n".join(lines) + "\n")
    return made


def test_what_the_other_side_is_padded_to() -> None:
    examples = [
        TextExample(row=n, ids=np.arange(1, size + 1, dtype=np.int32), types=np.zeros(size, np.int32), label=n)
        for n, size in enumerate((3, 5))
    ]
    batch = collate_texts(examples)
    assert padded_to(batch, None)["input_ids"].tolist() == [[1, 2, 3, 0, 0], [1, 2, 3, 4, 5]]
    wide = padded_to(batch, 7)
    assert {name: tuple(value.shape) for name, value in wide.items()} == {
        "input_ids": (2, 7), "attention_mask": (2, 7), "token_type_ids": (2, 7), "labels": (2,)
    }  # fmt: skip
    assert wide["attention_mask"].sum(1).tolist() == [3, 5]


def test_several_labels_a_text_are_not_padded() -> None:
    examples = [
        TextExample(
            row=0, ids=np.arange(1, 4, dtype=np.int32), types=np.zeros(3, np.int32), label=np.array([0, 1, 1], np.float32)
        )
    ]  # as many labels as tokens
    wide = padded_to(collate_texts(examples), 7)
    assert wide["input_ids"].shape == (1, 7)
    assert wide["labels"].tolist() == [[0, 1, 1]]


@pytest.mark.slow
@pytest.mark.parametrize("positions", [24, 1024])
def test_a_session_takes_what_the_model_has_positions_for(positions: int) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 9}
    config = transformers.BertConfig(max_position_embeddings=positions, **sizes)
    model = _Logits(transformers.BertForSequenceClassification(config)).eval()
    inputs = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in Session.inputs)
    torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes(positions))


def test_useful_work_of_tuning_by_hand() -> None:
    base = EncoderConfig.of_size("base", vocab_size=30_528)
    every = 3 * (24 * 12 * 768**2 + 4 * 12 * 40 * 768)
    assert tuning_flops(base, length=40, read=1.0) == pytest.approx(every, rel=1e-12)
    assert tuning_flops(base, length=40, read=1 / 40) == pytest.approx(every - 3 * 18 * 768**2 * 39 / 40, rel=1e-12)


def test_slices_take_turns_and_begin_again() -> None:
    rows = [TextRow(id=str(n), text=str(n)) for n in range(5)]
    slices = Slices(rows, 2, [10, 20, 30, 40, 50])
    found = [([row.id for row in taken], tokens) for taken, tokens in map(slices.slice, (-1, 0, 1, 2))]
    assert found == [(["0", "1"], 30), (["0", "1"], 30), (["2", "3"], 70), (["4", "0"], 60)]


def finetune_work(folder: Path, **fields: Any) -> Work:
    machine = Machine.of(TrainingDeviceSettings(device="cpu", precision="fp32"))
    return _work(BenchFinetuneSettings(model=str(folder), **fields), Console(quiet=True), machine)


def test_texts_are_counted_where_the_last_step_of_an_epoch_is_smaller(folder: Path) -> None:
    pytest.importorskip("transformers")
    data = DataSettings(train_file=str(folder / "rows.tsv"), max_train_samples=5)
    work = finetune_work(folder, task="sst2", data=data, batch_size=4, max_length=16, vs="transformers")
    sides = work.sides()
    try:
        done = [[side.run(0.0) for _ in range(4)] for side in sides]
    finally:
        for side in sides:
            side.close()
    assert [[each.texts for each in rounds] for rounds in done] == [[4, 1, 4, 1]] * 2
    assert [each.units for each in done[0]] == [each.units for each in done[1]]


def test_dropout_is_that_of_both_sides(folder: Path) -> None:
    pytest.importorskip("transformers")
    data = DataSettings(train_file=str(folder / "rows.tsv"))
    work = finetune_work(folder, task="sst2", data=data, dropout=0.25)
    ours, theirs = _model(work, work.settings), _their_model(work, work.settings)
    assert ours.encoder.dropout == ours.encoder.layers[0].attention_dropout == ours.head.dropout == 0.25
    assert {part.p for part in theirs.modules() if isinstance(part, torch.nn.Dropout)} == {0.25}


def test_useful_work_counts_the_tokens_that_the_head_reads(folder: Path) -> None:
    rows, tags = (DataSettings(train_file=str(folder / name)) for name in ("rows.tsv", "tags.txt"))
    texts = finetune_work(folder, task="sst2", data=rows)
    lengths = [example.length for example in texts.source.examples]
    mean = sum(n * n for n in lengths) / sum(lengths)
    config = config_of(folder)
    assert texts.flops() == tuning_flops(config, length=mean, read=40 / sum(lengths))
    # [CLS] a good film [SEP], [CLS] fine film [SEP]: nine tokens, five of them words with a tag
    assert finetune_work(folder, task="conll2003", data=tags).flops() == tuning_flops(config, length=41 / 9, read=5 / 9)


def test_the_other_side_multiplies_as_torch_does_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    level: list[str] = []
    slices = Slices([TextRow(id="0", text="a")], 1, [3])

    def predict(rows: list[TextRow], timing: Timing) -> list[str]:
        level.append(torch.get_float32_matmul_precision())
        return [""]

    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")  # what --precision auto takes where the hardware is fast in it
        mine = Predicting("bertkit", slices, predict, ways=OwnWays(torch.device("cpu")).take)
        alternate([mine, Predicting("transformers", slices, predict)], rounds=2, seconds=0.0)
    finally:
        torch.set_float32_matmul_precision(before)
    assert level == ["medium", "highest", "medium", "highest", "highest", "medium"]


@pytest.mark.parametrize(
    ("command", "flags", "words"),
    [
        ("finetune", ("--pad", "longest"), "pad is of"),
        ("finetune", ("--vs-precision", "bf16"), "vs_precision is of"),
        ("finetune", ("--vs", "transformers", "--vs-precision", "fp16"), "(--vs-precision)"),
        ("predict", ("--set", "batch_size=8"), "batch_size is of"),
    ],
)
def test_what_the_other_side_cannot_take_is_refused(
    command: str, flags: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", command, "--model", "nowhere", "--precision", "fp32", "--set", "device.device=cpu", *flags]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_predicting_and_tuning_beside_transformers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--model", str(folder), "--precision", "fp32", "--no-memory", "--rounds", "1", "--json")
    rows = str(folder / "rows.tsv")
    assert run(["bench", "predict", *flags, "--task", "sst2", "--test-file", rows, "--rows", "40", "--vs", "transformers"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metrics"]["texts_per_second"] > 0
    assert told["bench"]["agreement"] == {"transformers": 1.0}
    assert set(told["bench"]["ratio"]) == {"transformers"}
    few = ("--seconds", "0.05", "--batch-size", "4", "--max-length", "16", "--vs", "transformers", "--pad", "both")
    assert run(["bench", "finetune", *flags, "--task", "sst2", "--train-file", rows, *few]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["bench"]["rates"]) == {"bertkit", "transformers, 16", "transformers, longest"}
    assert all({"data", "forward", "backward", "optimizer"} <= set(parts) for parts in told["bench"]["parts"].values())
    assert 0 < told["bench"]["share_of_ceiling"] < 1.2
    assert run(["bench", "predict", *flags, "--task", "conll2003", "--test-file", rows]) == 2
    capsys.readouterr()


def test_onnxruntime_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingError, match="onnxruntime is not installed"):
        session(tmp_path, threads=1)
