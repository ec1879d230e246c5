"""``bertkit eval blimp``: the decisions of a loop that masks one token at a time through transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from job_tests import Call, MakeModel, predictions

import bertkit as package
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.labelled.blimp import SETS, read_blimp

FP32 = ("--precision", "fp32")
PAIRS = {
    "adjunct_island": ("island_effects", [("what did he find a good word in .", "what did he find in a good word .")] * 2),
    "wh_island": ("island_effects", [("the words of a text", "the of words a text"), ("good", "bad"), ("fine.", "poor!")]),
    "passive_1": ("argument_structure", [("it is the same.", "it is the same."), ("THE WORDS", "the  words"), ("a b", "b a")]),
}


def write_sets(folder: Path, sets: dict[str, tuple[str, Sequence[tuple[str, str]]]], **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, (term, pairs) in sets.items():
        records = [
            {"sentence_good": good, "sentence_bad": bad, "UID": name, "linguistics_term": term, "pairID": str(number), **more}
            for number, (good, bad) in enumerate(pairs)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return folder


@pytest.fixture
def blimp(tmp_path: Path) -> Path:
    return write_sets(tmp_path / "blimp", PAIRS)


def plain_score(model: Any, wordpiece: WordPiece, text: str) -> float:
    """One token masked at a time (Salazar et al. 2020)."""
    ids = torch.tensor([wordpiece.cls_id, *wordpiece.encode([text])[0].tolist(), wordpiece.sep_id])
    total = 0.0
    for place in range(1, len(ids) - 1):
        masked = ids.clone()
        masked[place] = wordpiece.mask_id
        with torch.no_grad():
            total += float(model(input_ids=masked[None]).logits[0, place].double().log_softmax(-1)[ids[place]])
    return total


def test_scores_are_those_of_a_plain_loop(bertkit: Call, tiny: Path, wordpiece: WordPiece, blimp: Path, tmp_path: Path) -> None:
    from transformers import BertForMaskedLM

    done = bertkit("eval", "blimp", "--data", blimp, "--model", tiny, *FP32)
    figures = done.metrics
    model = BertForMaskedLM.from_pretrained(tiny).eval()
    said = predictions(Path(done.report["output"]) / "predictions.jsonl")
    assert [one["id"] for one in said] == [f"{name}/{n}" for name in sorted(PAIRS) for n in range(len(PAIRS[name][1]))]
    credits: dict[str, list[float]] = {}
    for one in said:
        good, bad = PAIRS[one["set"]][1][int(one["id"].rpartition("/")[2])]
        scores = [plain_score(model, wordpiece, text) for text in (good, bad)]
        assert [one["good"], one["bad"]] == pytest.approx(scores, rel=1e-5)
        assert one["score"] == one["good"] - one["bad"]
        same = wordpiece.encode([good])[0].tolist() == wordpiece.encode([bad])[0].tolist()
        assert one["prediction"] == ("tie" if same else "good" if scores[0] > scores[1] else "bad")
        credits.setdefault(one["set"], []).append(0.5 if same else float(scores[0] > scores[1]))
    by_set = {name: sum(found) / len(found) for name, found in credits.items()}
    assert figures["accuracy_by_set"] == pytest.approx(by_set)
    islands = (by_set["adjunct_island"] + by_set["wh_island"]) / 2
    assert figures["accuracy_by_phenomenon"] == pytest.approx(
        {"argument_structure": by_set["passive_1"], "island_effects": islands}
    )
    assert figures["accuracy"] == pytest.approx(sum(by_set.values()) / 3)  # over sets, not over pairs
    assert (figures["sets"], figures["examples"]) == (3, 8)
    assert figures["accuracy_interval"][0] <= figures["accuracy"] <= figures["accuracy_interval"][1]
    assert "2 pairs" in done.warned("blimp-ties")[0]
    assert f"3 of BLiMP's {len(SETS)} sets" in done.warned("blimp-sets")[0]
    written = json.loads((tmp_path / done.report["output"] / "metrics.json").read_text())
    assert {name: written[name] for name in figures} == figures
    assert (written["primary"], written["files"]) == ("accuracy", ["metrics.json", "predictions.jsonl"])
    page = bertkit("eval", "blimp", "--data", blimp, "--model", tiny, *FP32, plain=True).out
    assert f"wh_island       {100 * by_set['wh_island']:>8.2f}" in page


def test_batches_change_no_decision(bertkit: Call, tiny: Path, blimp: Path) -> None:
    found = []
    for more in ((), ("--batch-size", 1), ("--micro-tokens", 16)):
        done = bertkit("eval", "blimp", "--data", blimp, "--model", tiny, *FP32, *more)
        found.append((done.metrics["accuracy_by_set"], predictions(Path(done.report["output"]) / "predictions.jsonl")))
    for figures, said in found[1:]:
        assert figures == found[0][0]
        assert [one["good"] for one in said] == pytest.approx([one["good"] for one in found[0][1]], rel=1e-5)
    settings = {"device.precision": "fp32", "device.threads": 1}
    outcome = package.evaluate("blimp", model=tiny, data=blimp, settings=settings, quiet=True)
    assert outcome.metrics["accuracy_by_set"] == found[0][0]
    gated = bertkit("eval", "blimp", "--data", blimp, "--model", tiny, "--max-eval-samples", 1, "--max", "accuracy=-1")
    assert (gated.code, gated.report["gates"][0]["value"]) == (7, 100 * gated.report["metrics"]["accuracy"])
    first = gated.report["metrics"]
    assert (first["sets"], first["examples"]) == (3, 3)


def retold(path: Path, said: list[dict[str, Any]], **prediction: str) -> Path:
    """Predictions of another model: those of some sets are what is said, ``wh_island="good"``."""
    path.write_text(
        "".join(json.dumps(one | {"prediction": prediction.get(one["set"], one["prediction"])}) + "\n" for one in said)
    )
    return path


def test_a_model_is_compared_with_another_pair_by_pair(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    pairs = [(f"{a} {b}", f"{b} {a}") for a in ("good", "bad", "fine", "poor") for b in "abcdef"]
    sets = {"wh_island": ("x", pairs), "passive_1": ("y", pairs[:8]), "passive_2": ("y", pairs[:10])}
    command = ("eval", "blimp", "--data", write_sets(tmp_path / "blimp", sets), "--model", tiny, *FP32)
    first = bertkit(*command)
    folder = Path(first.report["output"])
    said, by_set = predictions(folder / "predictions.jsonl"), first.metrics["accuracy_by_set"]
    for other in (folder, folder / "predictions.jsonl"):
        (gate,) = bertkit(*command, "--not-worse-than", other).report["gates"]
        assert (gate["outcome"], gate["differing"], gate["difference"], gate["interval"]) == ("pass", 0, 0.0, [0.0, 0.0])
    # Sets count alike, however many pairs they have: all right in one of three is worth a third of what that one lacks.
    right = retold(tmp_path / "right.jsonl", said, passive_1="good")
    done = bertkit(*command, "--not-worse-than", right, "--inconclusive", "fail", "--junit", "gates.xml")
    (gate,) = done.report["gates"]
    lost = 1 - by_set["passive_1"]
    assert gate["difference"] == pytest.approx(-100 * lost / 3)
    assert (gate["metric"], gate["part"], gate["examples"], gate["differing"]) == ("accuracy", "blimp", 42, round(8 * lost))
    assert gate["interval"][0] < gate["difference"] < gate["interval"][1] <= 0
    assert (done.code, gate["outcome"], gate["met"]) == (7, "inconclusive", False)  # fewer than six differ
    assert "not worse accuracy (blimp)" in Path("gates.xml").read_text()
    for words, outcome, code in (("good", "fail", 7), ("bad", "pass", 0)):
        theirs = retold(tmp_path / "theirs.jsonl", said, wh_island=words, passive_1=words, passive_2=words)
        done = bertkit(*command, "--not-worse-than", theirs)
        (gate,) = done.report["gates"]
        assert (done.code, gate["outcome"]) == (code, outcome)
        assert gate["other"] == (100.0 if words == "good" else 0.0)
    ties = bertkit(
        *command, "--not-worse-than", retold(tmp_path / "ties.jsonl", said, passive_2="tie"), "--set", "gates.margin=99"
    )
    assert ties.report["gates"][0]["other"] == pytest.approx(100 * (by_set["wh_island"] + by_set["passive_1"] + 0.5) / 3)
    # What is no comparison is refused before any work.
    for name, records, words in (
        ("few", said[:-1], "1 of 42 rows have no prediction, the first is 'wh_island/23'"),
        ("twice", [*said, said[0]], "share an id"),
        ("more", [*said, said[0] | {"id": "wh_island/99"}], "1 example ('wh_island/99') is there, but is not among the 42"),
        ("strange", [said[0] | {"prediction": "yes"}, *said[1:]], "'yes', which is none of good, tie, bad"),
    ):
        refused = bertkit(*command, "--not-worse-than", retold(tmp_path / f"{name}.jsonl", records), "--output", "out")
        assert (refused.code, words in refused.report["error"]["message"]) == (3, True), refused.report["error"]
        assert not Path("out").exists()
    assert not bertkit(*command, "--not-worse-than", folder).warned("other-texts")
    write_sets(tmp_path / "blimp", sets | {"passive_1": ("y", [("good z", "z good"), *pairs[1:8]])})
    edited = bertkit(*command, "--not-worse-than", folder, "--output", "out")
    assert "read other texts" in edited.warned("other-texts")[0]
    missing = bertkit(*command, "--not-worse-than", tmp_path / "blimp")
    assert (missing.code, "bertkit eval blimp" in missing.report["error"]["hint"]) == (4, True)


def test_files_that_are_not_blimps(bertkit: Call, tiny: Path, make_model: MakeModel, blimp: Path, tmp_path: Path) -> None:
    def refused(code: int, folder: Path | str, model: Path = tiny) -> str:
        done = bertkit("eval", "blimp", "--data", folder, "--model", model)
        assert done.code == code, done.out
        error = done.report["error"]
        return f"{error['message']} {error['where']} {error['hint']}"

    assert "no such folder" in refused(4, "nowhere")
    assert "lie in a folder" in refused(4, blimp / "wh_island.jsonl")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "None of BLiMP's" in refused(4, empty)
    assert bertkit("eval", "blimp", "--model", tiny).code == 2
    assert "head" in refused(3, blimp, make_model("encoder"))
    assert "the model takes 3" in refused(3, blimp, make_model(max_position_embeddings=5))
    odd = write_sets(tmp_path / "odd", {"wh_islands": ("x", [("a", "b")])})
    assert "Did you mean 'wh_island'" in refused(2, odd)
    (odd / "wh_islands.jsonl").rename(odd / "wh_island.jsonl")
    assert "of the set 'wh_islands'" in refused(3, odd)
    for text, words in (
        ("{", "no JSON"),
        ("[1]", "no pair"),
        ('{"sentence_good": "a"}', "no pair"),
        ("", "empty"),
        ("\ufeff\r\n", "empty"),
    ):
        (odd / "wh_island.jsonl").write_text(text, encoding="utf-8")
        assert words in refused(3, odd)
    write_sets(odd, {"wh_island": ("x", [("a", "\u200b")])})
    assert "no token" in refused(3, odd)
    write_sets(odd, {"wh_island": ("x", [("a " * 700, "b")])})
    assert f"The sentence '{'a ' * 30}…' has 700 tokens" in refused(3, odd)
    half = '{"sentence_good": "a \\ud800", "sentence_bad": "b", "UID": "wh_island", "linguistics_term": "x"}'
    (odd / "wh_island.jsonl").write_text(half, encoding="utf-8")
    assert "sentence_good holds half a surrogate pair" in refused(3, odd)
    write_sets(odd, {"wh_island": ("x", [("a", "b")])})
    plain = (odd / "wh_island.jsonl").read_bytes()
    (odd / "wh_island.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"))
    assert bertkit("eval", "blimp", "--data", odd, "--model", tiny).metrics["examples"] == 1


@pytest.mark.data
def test_every_set_of_the_real_files_is_known(real_data: Path) -> None:
    found = read_blimp(real_data / "data" / "blimp", limit=1)
    assert sorted(found) == sorted(SETS)
    assert len(SETS) == len(set(SETS)) == 67
    assert len({pairs[0].term for pairs in found.values()}) == 13


@pytest.mark.data
def test_real_pairs_of_a_real_model(bertkit: Call, real_data: Path) -> None:
    from transformers import BertForMaskedLM

    folder = real_data / "models" / "splade-tiny-bert-L2-H128"
    done = bertkit("eval", "blimp", "--data", real_data / "data" / "blimp", "--model", folder, *FP32, "--max-eval-samples", 1)
    model, wordpiece = BertForMaskedLM.from_pretrained(folder).eval(), load_wordpiece(folder, cased=False)
    said = {one["id"]: one for one in predictions(Path(done.report["output"]) / "predictions.jsonl")}
    for pairs in list(read_blimp(real_data / "data" / "blimp", limit=1).values())[::12]:
        one = said[pairs[0].id]
        scores = [plain_score(model, wordpiece, text) for text in (pairs[0].good, pairs[0].bad)]
        assert [one["good"], one["bad"]] == pytest.approx(scores, rel=1e-5)
