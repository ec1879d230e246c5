"""``bertkit embed``: transformers' hidden states, pooled, in input order, in files that numpy and pyarrow read."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch
from job_tests import Call, MakeModel

import bertkit as package
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import SettingsError
from bertkit.jobs import embedder

FP32 = ("--precision", "fp32")
TEXTS = ["a good text of many words", "", "bad", "\u200d", "one"]
TEXTS += ["fine \u2028 text\u200b, a poor one?", "x " * 70, "北京 É [SEP]"]


@pytest.fixture(scope="module")
def model(make_model: MakeModel) -> Path:
    return make_model(layers=2, max_position_embeddings=64)


@pytest.fixture(scope="module")
def hidden(model: Path, wordpiece: WordPiece) -> list[list[np.ndarray]]:
    """Of each text the states of each layer, ``[n, H]``, as transformers has them."""
    from transformers import BertModel

    theirs = BertModel.from_pretrained(model).eval()
    found = []
    for ids in wordpiece.encode(TEXTS):
        row = torch.tensor([[wordpiece.cls_id, *ids[:62].tolist(), wordpiece.sep_id]])
        with torch.no_grad():
            states = theirs(input_ids=row, output_hidden_states=True).hidden_states
        found.append([layer[0].numpy() for layer in states])
    return found


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(TEXTS).encode())
    return path


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()


def test_every_pooling_and_layer(bertkit: Call, model: Path, hidden: list[list[np.ndarray]], texts: Path) -> None:
    for pooling in ("mean", "cls"):
        for layer in (0, 1, 2, -1, -2, -3):
            flags = ("--pooling", pooling, "--layer", layer, "--output", f"{pooling}{layer}.npy")
            done = bertkit("embed", texts, "--model", model, *FP32, *flags)
            assert done.code == 0, done.err
            pooled = [states[layer].mean(0) if pooling == "mean" else states[layer][0] for states in hidden]
            close(np.load(f"{pooling}{layer}.npy"), np.stack(pooled))
    figures = done.metrics
    assert (figures["texts"], figures["width"], figures["cut_texts"], figures["empty_texts"]) == (len(TEXTS), 32, 1, 2)
    assert "1 of 8 texts are longer than 64 tokens" in done.warned("cut-texts")[0]
    assert "2 of 8 texts have nothing" in done.warned("empty-texts")[0]


def test_normalized_and_by_default(
    bertkit: Call, model: Path, hidden: list[list[np.ndarray]], texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean over all tokens of the last layer, of length 1: sentence-transformers' recipe."""
    means = np.stack([states[-1].mean(0) for states in hidden])
    bertkit("embed", texts, "--model", model, *FP32, "--normalize", "--output", "deep/one.npy")
    close(np.load("deep/one.npy", mmap_mode="r"), means / np.linalg.norm(means, axis=1, keepdims=True))
    monkeypatch.setattr(embedder, "_TEXTS", 3)  # of several windows, one text a batch: the same rows in the same order
    bertkit("embed", texts, "--model", model, *FP32, "--output", "two.npy", "--batch-size", 1)
    close(np.load("two.npy"), means)
    assert not list(Path.cwd().rglob("*.tmp"))
    found = package.embed(TEXTS, model=model, settings={"device.precision": "fp32"}, quiet=True)
    close(found, means)
    assert package.embed([], model=model, quiet=True).shape == (0, 32)
    with pytest.raises(SettingsError, match="load_encoder"):
        package.embed(TEXTS, model=model, settings={"tokens": True}, quiet=True)


def test_parquet_of_texts_and_of_tokens(
    bertkit: Call, model: Path, hidden: list[list[np.ndarray]], texts: Path, wordpiece: WordPiece
) -> None:
    bertkit("embed", texts, "--model", model, *FP32, "--output", "texts.parquet")
    table = pyarrow.parquet.read_table("texts.parquet")
    assert table.column_names == ["row", "text", "vector"]
    assert table["row"].to_pylist() == list(range(len(TEXTS)))
    assert table["text"].to_pylist() == TEXTS
    close(np.array(table["vector"].to_pylist(), dtype=np.float32), np.stack([states[-1].mean(0) for states in hidden]))
    assert b"pooling" in table.schema.metadata[b"bertkit"]
    done = bertkit("embed", texts, "--model", model, *FP32, "--output", "tokens.parquet", "--tokens", "--layer", 1)
    rows = pyarrow.parquet.read_table("tokens.parquet").to_pylist()
    assert done.metrics["tokens"] == len(rows)
    wanted = []
    for number, (text, (ids, offsets)) in enumerate(zip(TEXTS, wordpiece.encode_with_offsets(TEXTS), strict=True)):
        for place, (i, (start, end)) in enumerate(zip(ids[:62].tolist(), offsets[:62].tolist(), strict=True)):
            wanted.append((number, wordpiece.vocabulary[i], start, end))
            assert text[start:end].strip()
            close(np.array(rows[len(wanted) - 1]["vector"], dtype=np.float32), hidden[number][1][place + 1])
    assert [(row["row"], row["token"], row["start"], row["end"]) for row in rows] == wanted


def test_tables_and_stdin(bertkit: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text('text,said\nno,"good, bad"\nno,NA\n', encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"said": "one"}\n', encoding="utf-8")
    plain = tmp_path / "plain.txt"
    plain.write_text("good, bad\nNA\none\n")
    bertkit("embed", plain, "--model", model, *FP32, "--output", "plain.npy")
    wanted = np.load("plain.npy")
    assert len(wanted) == 3
    bertkit("embed", "a.csv", "b.jsonl", "--text-column", "said", "--model", model, *FP32, "--output", "table.npy")
    close(np.load("table.npy"), wanted)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(plain.read_bytes().replace(b"\n", b"\r"))))
    bertkit("embed", "-", "--model", model, *FP32, "--output", "stdin.npy")
    close(np.load("stdin.npy"), wanted)


def test_what_cannot_be_embedded(bertkit: Call, model: Path, wordpiece: WordPiece, texts: Path, tmp_path: Path) -> None:
    def refused(code: int, *argv: object) -> str:
        done = bertkit("embed", *argv, *FP32)
        assert done.code == code, done.out
        error = done.report["error"]
        return f"{error['message']} {error['hint']}"

    to = ("--model", model, "--output")
    assert "needed" in refused(2, texts, "--output", "a.npy")
    assert "FILE is needed" in refused(2, *to, "a.npy")
    assert "vectors.npy" in refused(2, texts, "--model", model)
    assert "ending" in refused(2, texts, *to, "a.txt")
    assert ".parquet" in refused(2, texts, *to, "a.npy", "--tokens")
    assert "pooled" in refused(2, texts, *to, "a.parquet", "--tokens", "--pooling", "cls")
    assert "2 layers, and no layer 3" in refused(2, texts, *to, "a.npy", "--layer", 3)
    assert "no layer -4" in refused(2, texts, *to, "a.npy", "--layer", -4)
    assert "64 positions" in refused(2, texts, *to, "a.npy", "--max-length", 65)
    assert "no such file" in refused(4, "none.txt", *to, "a.npy")
    assert "folder" in refused(4, tmp_path, *to, "a.npy")
    assert "column" in refused(2, texts, *to, "a.npy", "--text-column", "said")
    (tmp_path / "bad.txt").write_bytes(b"one\ntw\xff\n")
    assert "UTF-8" in refused(3, "bad.txt", *to, "a.npy")
    (tmp_path / "empty.txt").write_bytes(b"")
    assert "no text" in refused(3, "empty.txt", *to, "a.npy")
    assert not [path for path in tmp_path.iterdir() if "npy" in path.name]
    (tmp_path / "mine.npy").write_text("mine")
    assert "there already" in refused(2, texts, *to, "mine.npy")
    assert (tmp_path / "mine.npy").read_text() == "mine"
    cut = sum(len(ids) > 6 for ids in wordpiece.encode(TEXTS))
    assert bertkit("embed", texts, *to, "mine.npy", "--overwrite", "--max-length", 8).metrics["cut_texts"] == cut
    assert len(np.load("mine.npy")) == len(TEXTS)
