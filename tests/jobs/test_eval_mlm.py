"""``bertkit eval mlm``: the figures of a plain loop through transformers, the same each time, and fair to any vocabulary."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from job_tests import Call, MakeModel
from small_runs import documents, write

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.fixed_masks import FixedMasks, WordMaskingSettings
from bertkit.batches.text import VocabularyFacts
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.worded import read_worded
from bertkit.corpus.wordpiece import WordPiece
from bertkit.model.config import EncoderConfig
from bertkit.tasks.models import build_model

FP32 = ("--precision", "fp32")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("text") / "some.txt", [*documents(6, 6), ["alone"]])


def plain_loop(folder: Path, wordpiece: WordPiece, text: Path) -> dict[str, float]:
    """One example at a time through transformers, sums in Python."""
    from transformers import BertForPreTraining

    model = BertForPreTraining.from_pretrained(folder).double().eval()
    worded = read_worded(open_corpus([text]), CorpusSettings(), wordpiece)
    masks = FixedMasks(worded, VocabularyFacts.of(wordpiece), ExampleSettings(), WordMaskingSettings(), seed=42, segments=2)
    nats: list[float] = []
    hits: list[bool] = []
    pairs: list[tuple[float, bool]] = []
    by_place: dict[int, list[float]] = {}
    places = iter(masks.guessed().tolist())
    for number in range(len(masks.lengths)):
        batch = masks.batch([number])
        padded = batch.packed.to_padded()
        with torch.no_grad():
            out = model(**padded)
        scores = out.prediction_logits[0].log_softmax(-1)
        for place, label in zip(batch.masked_positions.tolist(), batch.masked_labels.tolist(), strict=True):
            nats.append(-float(scores[place, label]))
            hits.append(int(scores[place].argmax()) == label)
            by_place.setdefault(next(places), []).append(nats[-1])
        if batch.next_sentence_labels is not None:
            row, label = out.seq_relationship_logits[0].log_softmax(-1), int(batch.next_sentence_labels[0])
            pairs.append((-float(row[label]), int(row.argmax()) == label))
    words: dict[int, float] = {}
    for place, found in by_place.items():
        word = int(worded.word[place])
        words[word] = words.get(word, 0.0) + sum(found) / len(found)
        if worded.ids[place] == wordpiece.unk_id:
            words[word] += int(worded.sizes[word]) * math.log(worded.alphabet)
    total = sum(words.values())
    return {
        "mlm_loss": sum(nats) / len(nats),
        "mlm_accuracy": sum(hits) / len(hits),
        "nats_per_word": total / len(words),
        "nats_per_character": total / sum(int(worded.sizes[word]) for word in words),
        "nsp_loss": sum(loss for loss, _ in pairs) / len(pairs),
        "nsp_accuracy": sum(hit for _, hit in pairs) / len(pairs),
        "examples": len(masks.lengths),
        "masked_tokens": len(nats),
        "words": len(words),
    }


def test_the_figures_are_those_of_a_plain_loop_and_always_the_same(
    bertkit: Call, tiny: Path, wordpiece: WordPiece, text: Path, tmp_path: Path
) -> None:
    figures = bertkit("eval", "mlm", "--corpus", text, "--model", tiny, *FP32).metrics
    for name, value in plain_loop(tiny, wordpiece, text).items():
        assert figures[name] == pytest.approx(value, rel=1e-5, abs=1.1e-5), name
    assert figures["perplexity"] == pytest.approx(math.exp(figures["mlm_loss"]), abs=1e-4)
    where = tmp_path / "runs" / "evals" / f"{tiny.name}-mlm-some"
    written = json.loads((where / "metrics.json").read_text())
    assert {name: written[name] for name in figures} == figures
    assert (written["task"], written["primary"], written["files"]) == ("mlm", "mlm_loss", ["metrics.json"])
    for more in ((), ("--batch-size", 3), ("--micro-tokens", 200)):
        again = bertkit("eval", "mlm", "--corpus", text, "--model", tiny, *FP32, *more).metrics
        assert again == figures
    other = bertkit("eval", "mlm", "--corpus", text, "--model", tiny, *FP32, "--seed", 3).metrics
    assert other["mlm_loss"] != figures["mlm_loss"]
    page = bertkit("eval", "mlm", "--corpus", text, "--model", tiny, *FP32, plain=True).out
    assert f"nats_per_word        {figures['nats_per_word']:.4f}" in page


def test_losses_and_shares_are_gated(bertkit: Call, tiny: Path, text: Path) -> None:
    command = ("eval", "mlm", "--corpus", text, "--model", tiny, *FP32)
    asked = ("--max", "mlm_loss=100", "--max", "perplexity=1.5", "--min", "mlm_accuracy=0", "--junit", "gates.xml")
    done = bertkit(*command, *asked)
    assert (done.code, done.report["error"]["kind"]) == (7, "gate")
    told = [(gate["kind"], gate["metric"], gate["outcome"], gate["value"]) for gate in done.report["gates"]]
    figures = done.report["metrics"]
    assert told == [
        ("min", "mlm_accuracy", "pass", pytest.approx(100 * figures["mlm_accuracy"])),
        ("max", "mlm_loss", "pass", figures["mlm_loss"]),
        ("max", "perplexity", "fail", figures["perplexity"]),
    ]
    assert f"perplexity is {figures['perplexity']:.4f}, above 1.5" in done.report["error"]["message"]
    suite = ElementTree.parse("gates.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert bertkit(*command, *asked[:2]).code == 0
    for flags, words in (
        (("--max", "mlm_los=3"), "Did you mean 'mlm_loss'?"),
        (("--max", "mlm_loss=low"), "NAME=VALUE"),
        (("--min", "mlm_accuracy=0.5"), "0.5 or 50 points?"),
        (("--junit", "gates.xml"), "give min or max"),
        (("--not-worse-than", "runs/x"), "takes no --not-worse-than"),
    ):
        wrong = bertkit(*command, *flags)
        assert (wrong.code, words in wrong.report["error"]["message"]) == (2, True), wrong.report
    assert "--max mlm_loss=VALUE" in wrong.report["error"]["hint"]


def model_of(folder: Path, wordpiece: WordPiece, **changes: Any) -> Path:
    config = EncoderConfig.of_size("tiny", vocab_size=wordpiece.size).changed(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, **changes
    )
    folder.mkdir()
    model = build_model("masked_lm", config, seed=1)
    wordpiece.save(folder, max_length=512)
    model.save(folder)
    return folder


def test_a_vocabulary_that_knows_nothing_does_not_win(bertkit: Call, tiny: Path, text: Path, tmp_path: Path) -> None:
    empty = WordPiece([*SPECIALS, "q"], Flags(lowercase=True))
    folder = model_of(tmp_path / "empty", empty)
    nothing = bertkit("eval", "mlm", "--corpus", text, "--model", folder, *FP32, "--set", "masking.random_share=0")
    known = bertkit("eval", "mlm", "--corpus", text, "--model", tiny, *FP32, "--set", "objective=mlm")
    figures, better = nothing.metrics, known.metrics
    for name in ("words", "characters"):
        assert figures[name] == better[name]
    assert figures["unknown_words"] > 0.95 * figures["words"]
    alphabet = json.loads(Path(nothing.report["output"], "metrics.json").read_text())["alphabet"]
    spelt = math.log(alphabet) * figures["characters"] * figures["unknown_words"] / figures["words"]
    assert figures["mlm_loss"] < 2 < better["mlm_loss"]  # six entries are easy to guess
    assert figures["nats_per_character"] * figures["characters"] > 0.9 * spelt
    assert figures["nats_per_character"] > better["nats_per_character"] * 0.9


def test_one_word_texts_line_ends_and_marks(bertkit: Call, tiny: Path, text: Path, tmp_path: Path) -> None:
    flags = ("--model", tiny, *FP32, "--set", "masking.probability=1")
    figures = bertkit("eval", "mlm", "--corpus", text, *flags).metrics
    other = tmp_path / "crlf.txt"
    other.write_bytes(b"\xef\xbb\xbf" + text.read_bytes().replace(b"\n", b"\r\n"))
    assert bertkit("eval", "mlm", "--corpus", other, *flags).metrics == figures
    word = tmp_path / "word.txt"
    word.write_text("good\u200b\n")
    done = bertkit("eval", "mlm", "--corpus", word, *flags)
    assert (done.metrics["words"], done.metrics["characters"], done.metrics["examples"]) == (1, 4, 1)
    assert "nsp_loss" not in done.metrics
    assert done.warned("no-pairs")
    first = bertkit("eval", "mlm", "--corpus", text, *flags, "--max-eval-samples", 1).metrics
    assert first["words"] < figures["words"]


def test_the_newest_pretraining_is_scored_as_it_was_trained(bertkit: Call, tiny: Path, text: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "some-tiny"
    run.mkdir(parents=True)
    for file in tiny.iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    resolved = {"examples.objective": "mlm+sop", "examples.max_length": 24}
    state = {"command_name": "pretrain", "state": "finished", "resolved": resolved}
    (run / "bertkit.json").write_text(json.dumps(state))
    done = bertkit("eval", "mlm", "--corpus", text)
    assert done.warned("model")
    assert done.metrics["sop_accuracy"] is not None
    assert done.report["output"] == "runs/some-tiny/evals/mlm-some"
    assert json.loads((run / "evals" / "mlm-some" / "metrics.json").read_text())["max_length"] == 24


def test_what_cannot_be_scored(bertkit: Call, tiny: Path, make_model: MakeModel, text: Path, tmp_path: Path) -> None:
    def refused(code: int, *argv: object) -> str:
        done = bertkit(*argv)
        assert done.code == code, done.out
        error = done.report["error"]
        return f"{error['message']} {error['hint']}"

    masked = make_model("masked_lm")
    assert "--corpus is needed" in refused(2, "eval", "mlm", "--model", tiny)
    assert "--stride" in refused(2, "eval", "mlm", "--corpus", text, "--stride", 3)
    assert "bertkit pretrain" in refused(4, "eval", "mlm", "--corpus", text)
    assert "head" in refused(3, "eval", "mlm", "--corpus", text, "--model", make_model("encoder"))
    assert "head for pairs" in refused(2, "eval", "mlm", "--corpus", text, "--model", masked, "--set", "objective=mlm+nsp")
    assert "512 positions" in refused(2, "eval", "mlm", "--corpus", text, "--model", masked, "--max-length", 600)
    assert "eval mlm" in refused(2, "eval", "sst2", "--corpus", text)
    for command in (("finetune",), ("predict", "--output", "a.jsonl")):
        assert "bertkit pretrain --corpus" in refused(2, *command, "mlm")
    blank = tmp_path / "blank.txt"
    blank.write_text("\n\n")
    assert "no token" in refused(3, "eval", "mlm", "--corpus", blank, "--model", tiny)
    blank.write_text("one two\n")
    assert "chosen" in refused(3, "eval", "mlm", "--corpus", blank, "--model", tiny, "--set", "masking.probability=0.001")
    blank.write_bytes(b"one\ntw\xff\n")
    assert "UTF-8" in refused(3, "eval", "mlm", "--corpus", blank, "--model", tiny)
