"""``bertkit fill-mask``: the one command in which ``[MASK]`` is no text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from job_tests import Call, MakeModel

from bertkit.corpus.wordpiece import WordPiece
from bertkit.packed import PackedSequences
from bertkit.tasks.models import load_model


def by_hand(folder: Path, wordpiece: WordPiece, ids: list[int]) -> list[list[tuple[str, float]]]:
    model, _ = load_model(folder, "masked_lm")
    tokens = torch.tensor(ids)
    packed = PackedSequences.from_lengths(tokens, torch.zeros_like(tokens), torch.tensor([len(ids)]))
    with torch.no_grad():
        scores = model.eval().outputs(packed).softmax(-1)
    places = [place for place, number in enumerate(ids) if number == wordpiece.mask_id]
    return [[(wordpiece.vocabulary[int(i)], float(p)) for p, i in zip(*scores[place].topk(3), strict=True)] for place in places]


def test_each_mask_gets_its_likeliest_words(bertkit: Call, tiny: Path, wordpiece: WordPiece) -> None:
    text = "this is [MASK] . a [MASK] [SEP]"
    done = bertkit("fill-mask", tiny, text, "--top", "3", "--set", "device.precision=fp32")
    ((filled,),) = ([each["masks"] for each in done.report["filled"]],)
    mask, cls, sep = wordpiece.mask_id, wordpiece.cls_id, wordpiece.sep_id
    parts = [wordpiece.encode([part])[0].tolist() for part in ("this is", ". a", "[SEP]")]
    assert sep not in parts[2]  # of all special names only [MASK] is meant here
    expected = by_hand(tiny, wordpiece, [cls, *parts[0], mask, *parts[1], mask, *parts[2], sep])
    assert len(filled) == 2
    for ours, theirs in zip(filled, expected, strict=True):
        assert [one["word"] for one in ours] == [word for word, _ in theirs]
        assert [one["probability"] for one in ours] == pytest.approx([share for _, share in theirs], rel=1e-4)
    shown = bertkit("fill-mask", tiny, text, "--top", "3", plain=True).out.splitlines()
    assert shown[0] == text
    assert [line.split(":")[0].strip() for line in shown[1:]] == ["[MASK] 1", "[MASK] 2"]
    assert shown[1].count("%") == 3


def test_texts_of_stdin_and_texts_that_cannot_be_filled(
    bertkit: Call, tiny: Path, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a [MASK] .\n[MASK]\n"))
    assert [len(each["masks"]) for each in bertkit("fill-mask", tiny).report["filled"]] == [1, 1]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert bertkit("fill-mask", tiny).code == 4
    for text, message in (("a .", "no [MASK]"), ("[MASK] " * 600, "602 tokens, and the model has 512")):
        refused = bertkit("fill-mask", tiny, text)
        assert (refused.code, refused.report["error"]["kind"]) == (3, "data")
        assert message in refused.report["error"]["message"]
    headless = bertkit("fill-mask", make_model("encoder"), "a [MASK] .")
    assert (headless.code, headless.report["error"]["kind"]) == (3, "model")
    assert bertkit("fill-mask", "no/such/folder", "[MASK]").code == 4
