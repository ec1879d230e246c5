"""``bertkit explain``: the page and the object say what the tokenizer, one draw of masks and the model make of a text."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from job_tests import Call, MakeModel
from small_runs import environment

from bertkit.cli.main import run
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.columns import shown_width
from bertkit.packed import PackedSequences
from bertkit.tasks.models import load_model

A, B = "a good bad poor fine text of words", "it goes on with more of the words"


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chinese")
    WordPiece([*SPECIALS, *"我喜欢北京大学", "bert", "##s"], Flags(lowercase=True)).save(folder, max_length=512)
    return folder


def test_pieces_ids_segments_positions_and_one_draw(bertkit: Call, tiny: Path, wordpiece: WordPiece) -> None:
    told = bertkit("explain", A, B, "--tokenizer", tiny, "--seed", "3").report
    a, b = (ids.tolist() for ids in wordpiece.encode([A, B]))
    ids = [wordpiece.cls_id, *a, wordpiece.sep_id, *b, wordpiece.sep_id]
    assert [token["id"] for token in told["tokens"]] == ids
    assert [token["piece"] for token in told["tokens"]] == [wordpiece.vocabulary[i] for i in ids]
    assert [token["segment"] for token in told["tokens"]] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    assert [token["position"] for token in told["tokens"]] == list(range(len(ids)))
    wanted = 0.15 * (len(a) + len(b))
    assert int(wanted) <= len(told["masks"]) <= int(wanted) + 1
    for mask in told["masks"]:
        assert mask["id"] == ids[mask["position"]]
        assert mask["id"] not in (wordpiece.cls_id, wordpiece.sep_id)
        kind = "mask" if mask["becomes"] == "[MASK]" else "kept" if mask["becomes_id"] == mask["id"] else "random"
        assert mask["kind"] == kind
    assert (told["model"], told["pair"], told["metrics"]) == (None, None, {})
    assert bertkit("explain", A, B, "--tokenizer", tiny, "--seed", "3").report["masks"] == told["masks"]
    assert bertkit("explain", A, B, "--tokenizer", tiny, "--seed", "4").report["masks"] != told["masks"]


def test_shares_of_the_draw(bertkit: Call, tiny: Path) -> None:
    for shares, kind in (("mask_share=1", "mask"), ("random_share=1", "random"), ("mask_share=0", "kept")):
        sets = ["masking.probability=1", "masking.mask_share=0", "masking.random_share=0", f"masking.{shares}"]
        told = bertkit("explain", "of the words", "--tokenizer", tiny, *(word for s in sets for word in ("--set", s))).report
        assert len(told["masks"]) == len(told["tokens"]) - 2
        kinds = [mask["kind"] for mask in told["masks"]]
        assert kinds.count(kind) >= len(kinds) - 1  # a piece drawn at random may be the one that stood there


def test_guesses_are_the_models(bertkit: Call, tiny: Path, wordpiece: WordPiece) -> None:
    told = bertkit("explain", A, B, "--model", tiny, "--set", "masking.probability=0.4", "--top", "3").report
    model = load_model(tiny, "pretraining")[0].double().eval()
    reads = np.array([token["id"] for token in told["tokens"]])
    for mask in told["masks"]:
        reads[mask["position"]] = mask["becomes_id"]
    segments = torch.tensor([token["segment"] for token in told["tokens"]])
    packed = PackedSequences.from_lengths(torch.from_numpy(reads), segments, torch.tensor([len(reads)]))
    with torch.no_grad():
        shares = model.outputs(packed).softmax(-1)
        pair = model.head.next_sentence(model.hidden(packed)).softmax(-1)[0, 0]  # type: ignore[operator]
    assert told["pair"] == {"kind": "is_next", "probability": pytest.approx(float(pair), rel=1e-4)}
    for mask in told["masks"]:
        row = shares[mask["position"]]
        assert mask["loss"] == pytest.approx(-float(row[mask["id"]].log()), rel=1e-4)
        best = row.topk(3)
        assert [one["word"] for one in mask["likeliest"]] == [wordpiece.vocabulary[int(i)] for i in best.indices]
        assert [one["probability"] for one in mask["likeliest"]] == pytest.approx(best.values.tolist(), rel=1e-4)
    losses = [mask["loss"] for mask in told["masks"]]
    assert told["metrics"]["mlm_loss"] == pytest.approx(sum(losses) / len(losses))
    assert bertkit("explain", A, "--model", tiny).report["pair"] is None  # one text is no pair


def test_heads_that_are_not_there_are_said(bertkit: Call, make_model: MakeModel) -> None:
    for head, masked, pair in (("masked_lm", True, False), ("classification", False, False), ("pretraining", True, True)):
        folder = make_model(head)
        told = bertkit("explain", A, B, "--model", folder).report
        assert ["loss" in mask for mask in told["masks"]] == [masked] * len(told["masks"])
        assert (told["pair"] is not None) == pair
        assert told["warnings"] == []
        page = bertkit("explain", A, B, "--model", folder, plain=True).out
        assert ("P(IsNext) = 0." in page) == pair
        assert ("no head for pairs" in page) == (not pair)
        assert ("no head for masked words" in page) == (not masked)
        assert ("likeliest" in page) == masked


def test_the_page_is_80_columns_of_aligned_plain_text(bertkit: Call, tiny: Path, chinese: Path) -> None:
    long = " ".join([A, B] * 6)
    pages = [bertkit("explain", long, B, "--model", tiny, plain=True).out]
    pages += [bertkit("explain", "我喜欢北京大学 berts " * 9, "我 x", "--tokenizer", chinese, plain=True).out]
    for page in pages:
        assert max(map(shown_width, page.splitlines())) <= 80
        assert "\x1b" not in page
        rows = [line for line in page.splitlines() if line.split()[:1] in (["piece"], ["id"], ["segment"]) and line[3] != " "]
        assert len(rows) % 3 == 0
        assert len(rows) > 3  # more than one block
        for piece, number, segment in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
            assert len(piece.split()) == len(number.split()) == len(segment.split())
            assert shown_width(piece) == shown_width(number) == shown_width(segment)
    assert "[UNK] is a word" in pages[1]
    assert "--model RUN" in pages[1]


def test_colour_on_a_terminal_alone(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    assert run(["explain", A, "--tokenizer", str(tiny), "--set", "masking.mask_share=1", "--set", "masking.random_share=0"]) == 0
    assert "\x1b[1;31m[MASK=" in shown.getvalue()


def test_text_that_spells_a_special_token_is_text(bertkit: Call, tiny: Path, wordpiece: WordPiece) -> None:  # C12
    told = bertkit("explain", "this is [MASK] and [SEP]", "--tokenizer", tiny)
    assert told.warned("mask-is-text")
    middle = [token["id"] for token in told.report["tokens"]][1:-1]
    assert not {wordpiece.mask_id, wordpiece.sep_id} & set(middle)
    assert middle == wordpiece.encode(["this is [MASK] and [SEP]"])[0].tolist()


def test_whole_chinese_words(bertkit: Call, chinese: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("北京大学\n喜欢\n", encoding="utf-8")
    flags = ["explain", "我喜欢北京大学", "--tokenizer", chinese, "--masking", "word"]
    whole = [{1}, {2, 3}, {4, 5, 6, 7}]
    seen = set()
    for seed in range(8):
        told = bertkit(*flags, "--words", words, "--seed", seed, "--mlm-probability", "0.5").report
        places = {mask["position"] for mask in told["masks"]}
        assert all(word <= places or not word & places for word in whole)
        seen.add(frozenset(places))
    assert len(seen) > 1
    assert bertkit(*flags).warned("chinese-by-character")
    assert not bertkit(*flags, "--words", words).warned("chinese-by-character")
    refused = bertkit("explain", "我", "--tokenizer", chinese, "--words", words)
    assert (refused.code, "masking" in refused.report["error"]["message"]) == (2, True)


def test_what_cannot_be_explained(bertkit: Call, tiny: Path, make_model: MakeModel, tmp_path: Path) -> None:
    def refused(code: int, *argv: Any) -> str:
        done = bertkit("explain", *argv)
        assert done.code == code
        error = done.report["error"]
        return f"{error['message']} {error['hint']}"

    assert "512 positions" in refused(3, "a " * 511, "--tokenizer", tiny)
    assert "64 positions" in refused(3, "a " * 63, "--model", make_model(max_position_embeddings=64))
    assert bertkit("explain", "a " * 62, "--model", make_model(max_position_embeddings=64)).code == 0
    assert "visible" in refused(3, "", "--tokenizer", tiny)
    assert "visible" in refused(3, "a", "\u200d", "--tokenizer", tiny)
    nothing = refused(4, "a")
    assert all(word in nothing for word in ("--model", "--tokenizer", "bertkit pretrain", "bertkit tokenizer train"))
    refused(4, "a", "--tokenizer", tmp_path / "none")
    refused(4, "a", "--model", "no/such/folder")
    assert "A text is needed" in refused(2, "--tokenizer", tiny)
    assert "texts" in refused(2, "a", "b", "c", "--tokenizer", tiny)
    one = bertkit("explain", A, B, "--model", make_model(type_vocab_size=1))
    assert one.warned("one-segment")
    assert {token["segment"] for token in one.report["tokens"]} == {0}


def test_the_newest_pretraining_is_taken(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    place = tmp_path / "runs" / "wiki-tiny"
    place.parent.mkdir()
    place.symlink_to(tiny)
    assert bertkit("explain", A).code == 4  # a folder that no run made
    place.unlink()
    place.mkdir()
    for file in tiny.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    for objective, kind in (("mlm+nsp", "is_next"), ("mlm+sop", "in_order")):
        state = '{"command_name": "pretrain", "state": "finished", "resolved": {"examples.objective": "%s"}}'
        (place / "bertkit.json").write_text(state % objective)
        told = bertkit("explain", A, B)
        assert told.warned("model") == ["The model is the newest finished pretraining: runs/wiki-tiny."]
        assert told.report["pair"]["kind"] == kind


def test_torch_is_left_alone_without_a_model(tiny: Path) -> None:
    program = f"import sys; from bertkit.cli.main import run; code = run(['explain', 'a', '--tokenizer', {str(tiny)!r}, '-q'])\n"
    program += (
        "sys.exit(code or [name for name in ('torch', 'transformers', 'datasets', 'accelerate') if name in sys.modules] or 0)"
    )
    assert subprocess.run([sys.executable, "-c", program], env=environment(), check=False).returncode == 0
