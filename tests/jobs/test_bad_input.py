"""What goes wrong before anything is computed: one clear message, the right exit code, one object of JSON, nothing written."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from job_tests import Call, MakeModel

Break = Callable[[Path, Path], list[str]]


def missing_file(model: Path, data: Path) -> list[str]:
    return ["--train-file", str(data / "no.tsv"), "--validation-file", str(data / "dev.tsv")]


def missing_folder(model: Path, data: Path) -> list[str]:
    return ["--data", str(data / "no/where")]


def empty_folder(model: Path, data: Path) -> list[str]:
    (data / "empty").mkdir()
    return ["--data", str(data / "empty")]


def empty_file(model: Path, data: Path) -> list[str]:
    (data / "train.tsv").write_text("")
    return []


def not_utf8(model: Path, data: Path) -> list[str]:
    (data / "train.tsv").write_bytes(b"sentence\tlabel\nok\t1\nresum\xe9 x\t0\n")
    return []


def no_labels(model: Path, data: Path) -> list[str]:
    return ["--train-file", str(data / "train.tsv"), "--validation-file", str(data / "test.tsv")]


def strange_label(model: Path, data: Path) -> list[str]:
    (data / "dev.tsv").write_text("sentence\tlabel\nfine\t1\ngood\t7\n")
    return []


def no_column(model: Path, data: Path) -> list[str]:
    (data / "train.tsv").write_text("text\tgold\nfine\t1\n")
    return []


def header_alone(model: Path, data: Path) -> list[str]:
    (data / "train.tsv").write_text("sentence\tlabel\n")
    return []


def no_config(model: Path, data: Path) -> list[str]:
    (model / "config.json").unlink()
    return []


def no_weights(model: Path, data: Path) -> list[str]:
    (model / "model.safetensors").unlink()
    return []


def cut_weights(model: Path, data: Path) -> list[str]:
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    return []


def no_vocabulary(model: Path, data: Path) -> list[str]:
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (model / name).unlink()
    return []


def tensorflow(model: Path, data: Path) -> list[str]:
    (model / "model.safetensors").unlink()
    for name in ("bert_model.ckpt.index", "bert_model.ckpt.meta", "bert_model.ckpt.data-00000-of-00001"):
        (model / name).write_bytes(b"\x00")
    return []


def other_architecture(model: Path, data: Path) -> list[str]:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    return []


def relative_positions(model: Path, data: Path) -> list[str]:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"position_embedding_type": "relative_key"}))
    return []


def too_long(model: Path, data: Path) -> list[str]:
    return ["--max-length", "600"]


def model_is_a_file(model: Path, data: Path) -> list[str]:
    return ["--model", str(model / "config.json")]


def model_is_nowhere(model: Path, data: Path) -> list[str]:
    return ["--model", str(model / "no")]


CASES: list[tuple[Break, int, str, str, tuple[str, ...]]] = [
    (missing_file, 4, "missing", "no such file", ("no.tsv",)),
    (missing_folder, 4, "missing", "no/where", ("--data",)),
    (empty_folder, 4, "missing", "train", ("train.tsv", "--train-file")),
    (empty_file, 3, "data", "empty", ("train.tsv",)),
    (not_utf8, 3, "data", "0xE9", ("train.tsv", "line 3", "25")),
    (no_labels, 3, "data", "no labels", ("test.tsv", "bertkit predict")),
    (strange_label, 3, "data", "7", ("dev.tsv, line 3", "negative, positive")),
    (no_column, 3, "data", "sentence", ("train.tsv", "'text', 'gold'", "--text-column")),
    (header_alone, 3, "data", "no rows", ("train.tsv",)),
    (no_config, 3, "model", "config.json", ()),
    (no_weights, 3, "model", "model.safetensors", ()),
    (cut_weights, 3, "model", "", ("model.safetensors",)),
    (no_vocabulary, 4, "missing", "vocab.txt", ("tokenizer.json",)),
    (tensorflow, 3, "model", "TensorFlow", ("convert",)),
    (other_architecture, 3, "model", "gpt2", ("config.json",)),
    (relative_positions, 3, "model", "relative_key", ("position_embedding_type", "config.json")),
    (too_long, 2, "settings", "600", ("512", "max_length")),
    (model_is_a_file, 3, "model", "folder", ("config.json",)),
    (model_is_nowhere, 4, "missing", "no model folder", ("/no",)),
]


@pytest.mark.parametrize(("broken", "code", "kind", "message", "told"), CASES, ids=[case[0].__name__ for case in CASES])
def test_one_message_and_nothing_written(
    bertkit: Call,
    tiny: Path,
    sst2: Path,
    tmp_path: Path,
    broken: Break,
    code: int,
    kind: str,
    message: str,
    told: tuple[str, ...],
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny, model)
    flags = broken(model, sst2)
    data = [] if "--train-file" in flags or "--data" in flags else ["--data", str(sst2)]
    command = ["finetune", "sst2", *([] if "--model" in flags else ["--model", str(model)]), *data, *flags]
    failed = bertkit(*command)
    error = failed.report["error"]
    assert (failed.code, failed.report["ok"], failed.report["exit_code"]) == (code, False, code), error
    assert error["kind"] == kind
    assert message in error["message"]
    for word in told:
        assert word in " ".join(str(error[name]) for name in ("message", "where", "hint"))
    plain = bertkit(*command, plain=True)
    assert (plain.code, plain.out) == (code, "")
    assert plain.err.count("Error: ") == 1
    assert error["message"].split("\n")[0] in plain.err
    assert list(tmp_path.glob("runs/*")) == []


def test_the_same_run_goes_on_once_the_fault_is_mended(bertkit: Call, tiny: Path, sst2: Path) -> None:
    text = (sst2 / "train.tsv").read_text()
    (sst2 / "train.tsv").write_text("")
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "1", "--output", "run")
    assert bertkit(*command).code == 3
    (sst2 / "train.tsv").write_text(text)
    assert bertkit(*command).code == 0


@pytest.mark.parametrize("command", ["finetune", "eval", "predict"])
def test_names_that_are_not_there(bertkit: Call, command: str) -> None:
    unknown = bertkit(command, "sst-2", "--output", "out")
    assert unknown.code == 2
    assert "Did you mean 'sst2'?" in unknown.report["error"]["message"]
    nothing = bertkit(command, "--output", "out")
    assert nothing.code == 2
    assert "bertkit tasks" in nothing.report["error"]["hint"]
    wrong = bertkit(command, "sst2", "--modle", "x")
    assert wrong.code == 2
    assert "--model" in wrong.report["error"]["message"]
    assert not Path("out").exists()


def test_a_folder_of_someones_files_is_left_alone(bertkit: Call, tiny: Path, sst2: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    for more in ((), ("--overwrite",)):
        refused = bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, "--output", "mine", *more)
        assert (refused.code, refused.report["error"]["kind"]) == (2, "folder")
        assert "thesis.txt" in refused.report["error"]["message"]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    (tmp_path / "file").write_text("x")
    assert bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, "--output", "file").code == 2


@pytest.mark.parametrize("offline", ["1", "0"])
def test_a_name_without_a_network_is_answered_in_seconds(
    bertkit: Call, sst2: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offline: str
) -> None:
    import huggingface_hub.constants as hub

    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", offline == "1")
    monkeypatch.setattr(hub, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path / "hub"))
    started = time.monotonic()
    for command in ("finetune", "eval", "predict"):
        for name in ("owner/tiny", "tiny-bert"):
            refused = bertkit(command, "sst2", "--model", name, "--data", sst2, "--output", "out")
            assert (refused.code, refused.report["error"]["kind"]) == (4, "missing")
            assert name in refused.report["error"]["message"]
            for word in ("HF_ENDPOINT", "HF_HUB_OFFLINE", "vocab.txt"):
                assert word in refused.report["error"]["hint"]
    assert time.monotonic() - started < 30
    assert not (tmp_path / "hub").exists()


def test_predictions_for_other_rows(bertkit: Call, trained: Path, sst2: Path, make_model: MakeModel) -> None:
    Path("said.jsonl").write_text('{"id": "0", "gold": null, "prediction": "positive", "score": null}\n')
    short = bertkit("eval", "sst2", "--predictions", "said.jsonl", "--data", sst2)
    assert (short.code, short.report["error"]["kind"]) == (3, "data")
    assert "23 of 24 rows have no prediction, the first is '1'" in short.report["error"]["message"]
    both = bertkit("eval", "sst2", "--predictions", "said.jsonl", "--model", trained, "--data", sst2)
    assert both.code == 2
    gone = bertkit("eval", "sst2", "--predictions", "gone.tsv", "--data", sst2)
    assert (gone.code, gone.report["error"]["kind"]) == (4, "missing")
    assert "gone.tsv" in str(gone.report["error"])


@pytest.mark.parametrize(
    ("value", "code", "told"),
    [
        ('["positive", "negative"]', 3, "where 'positive' would be right"),
        ('"0.5"', 0, "'0.5'"),
        ("null", 3, "is None"),
        ('{"a": 1}', 3, "no prediction of bertkit's"),
        ("true", 3, "no prediction of bertkit's"),
        ("1", 3, "is 1, where"),
    ],
)
def test_predictions_of_another_form(bertkit: Call, sst2: Path, value: str, code: int, told: str) -> None:
    lines = [f'{{"id": "{n}", "gold": null, "prediction": {value}, "score": null}}\n' for n in range(24)]
    Path("said.jsonl").write_text("".join(lines))
    done = bertkit("eval", "sst2", "--predictions", "said.jsonl", "--data", sst2)
    assert done.code == code
    assert told in (done.report["error"]["message"] if code else done.warned("strange-labels")[0]).replace("negative", "positive")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prediction", "NaN"),
        ("prediction", "-Infinity"),
        ("prediction", "1e400"),
        ("prediction", "9" * 400),
        ("score", "NaN"),
        ("probabilities", '{"a": [0.5, NaN]}'),
    ],
)
def test_predictions_that_are_no_finite_numbers_are_named_by_line(bertkit: Call, tmp_path: Path, field: str, value: str) -> None:
    (tmp_path / "gold.csv").write_text("text,label\na,1\nb,2\nc,3\n")
    good = [f'{{"id": "{n}", "gold": null, "prediction": {n}.5, "score": null}}\n' for n in range(3)]
    bad = f'{{"id": "1", "gold": null, "prediction": 1, "score": null, "{field}": {value}}}\n'
    flags = ("eval", "regression", "--test-file", "gold.csv", "--predictions", "said.jsonl", "--output", "out")
    (tmp_path / "said.jsonl").write_text(good[0] + bad + good[2])
    refused = bertkit(*flags)
    assert (refused.code, refused.report["error"]["kind"]) == (3, "data")
    assert refused.report["error"]["where"] == "said.jsonl, line 2"
    assert len(refused.report["error"]["message"]) < 200
    assert not Path("out").exists()
    (tmp_path / "said.jsonl").write_text("".join(good))
    assert bertkit(*flags).metrics["pearson"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ('"score": "high"', 'score should be a number, and is "high"'),
        ('"null_odds": "abc"', "null_odds should be a number"),
        ('"null_odds": [1]', "null_odds should be a number"),
        ('"null_odds": 1, "best_text": 5', "best_text should be a text"),
        ('"nbest": [{"text": "a"}]', "nbest should be a list of answers"),
        ('"nbest": "abc"', "nbest should be a list of answers"),
        ('"prediction": ["a"]', "where one text is asked for"),
        ('"null_odds": null, "best_text": null, "nbest": null', None),  # as pandas fills what other lines have
        ('"null_odds": 1', None),
    ],
)
def test_facts_beside_a_given_answer_are_checked(bertkit: Call, tmp_path: Path, fact: str, told: str | None) -> None:
    (tmp_path / "gold.csv").write_text("id,question,context,answer\n0,who,a b,a\n1,who,c d,\n")
    lines = [f'{{"id": "{n}", "gold": null, "prediction": "c", "score": null, {fact}}}\n' for n in range(2)]
    (tmp_path / "said.jsonl").write_text("".join(lines))
    done = bertkit("eval", "span", "--test-file", "gold.csv", "--predictions", "said.jsonl", "--output", "out")
    assert done.code == (0 if told is None else 3)
    if told is None:
        assert "best_f1" not in done.metrics  # not every line says odds and the answer that they would give up
    else:
        assert told in done.report["error"]["message"]
        assert done.report["error"]["where"].startswith("said.jsonl")


@pytest.mark.parametrize(
    ("fact", "told"),
    [('"score": [1]', "score"), ('"as_given": ["B-X", "O"]', "a tag for each word"), ('"as_given": 1', "a tag for each word")],
)
def test_facts_beside_given_tags_are_checked(bertkit: Call, tmp_path: Path, fact: str, told: str) -> None:
    (tmp_path / "gold.txt").write_text("a B-X\n")
    (tmp_path / "said.jsonl").write_text(f'{{"id": "0", "gold": null, "prediction": ["O"], "score": null, {fact}}}\n')
    done = bertkit("eval", "tokens", "--test-file", "gold.txt", "--predictions", "said.jsonl", "--output", "out")
    assert (done.code, told in done.report["error"]["message"]) == (3, True)


@pytest.mark.parametrize(("shares", "code"), [('{"a": "x"}', 3), ('"a"', 3), ("[0.5]", 0), ("null", 0)])
def test_probabilities_beside_given_labels_are_checked(bertkit: Call, tmp_path: Path, shares: str, code: int) -> None:
    (tmp_path / "gold.csv").write_text('text,label\nx,a\ny,"a,b"\n')
    more = f'"score": null, "probabilities": {shares}'
    (tmp_path / "said.jsonl").write_text(
        "".join(f'{{"id": "{n}", "gold": null, "prediction": ["b"], {more}}}\n' for n in range(2))
    )
    assert bertkit("eval", "multilabel", "--test-file", "gold.csv", "--predictions", "said.jsonl", "--output", "out").code == code


def test_layers_that_config_json_leaves_out_are_said(bertkit: Call, make_model: MakeModel, sst2: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(make_model(layers=2), tmp_path / "two"))
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    (told,) = bertkit("finetune", "sst2", "--model", model, "--data", sst2, "--steps", "1").warned("unused-weights")
    assert "bert.encoder.layer.1.attention" in told
