"""Entities of types that training never had: in published tasks validations and eval score them as missed, and say so once; in
people's own data, and for classes, they are an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from job_tests import Call, MakeModel, predictions

KINDS = ("PER", "LOC")
TRAIN = "\n".join(f"in O\ngood{number} B-{KINDS[number % 2]}\nx I-{KINDS[number % 2]}\n" for number in range(16))
DEV = "in O\ngood99 B-LOC\nx I-LOC\n\nbad B-GPE\nin O\npoor B-ORG.NOM\nx I-ORG.NOM\n\nbad B-GPE\n\na O\n"
BRIEF = ("--precision", "fp32", "--lr", "0.01", "--batch-size", "8", "--steps", "4", "--max-length", "24")


@pytest.fixture
def data() -> tuple[str, ...]:
    Path("train.conll").write_text(TRAIN)
    Path("dev.conll").write_text(DEV)
    return ("--train-file", "train.conll", "--validation-file", "dev.conll")


def test_validations_and_eval_count_them_as_missed_and_say_so(bertkit: Call, tiny: Path, data: tuple[str, ...]) -> None:
    done = bertkit("finetune", "conll2003", "--model", tiny, *data, *BRIEF, "--output", "run")
    told = (
        "dev.conll: entities of types that the model has no label for, as its training had none, count as missed: "
        "GPE (2), ORG.NOM (1)."
    )
    assert done.warned("unknown-types") == [told]
    ceiling = "3 gold labels are out of reach; a perfect model could get f1 40.00, recall 25.00."
    assert f"validation: {ceiling}" in done.err
    line = next(line for line in done.err.splitlines() if line.startswith("Step 4, validation:"))
    assert "  f1 " in line
    assert "  7 more in log.jsonl" in line
    assert "ORG.NOM_f1" not in line
    assert '"valid_ORG.NOM_f1": 0.0' in Path("run/log.jsonl").read_text()
    gates = ("--min", "GPE_recall=0", "--max", "GPE_recall=1%", "--junit", "gates.xml")
    scored = bertkit("eval", "conll2003", "--model", "run", *gates)
    assert scored.warned("unknown-types") == [told]
    assert f"validation: {ceiling}" in scored.err
    assert scored.metrics["f1"] == done.metrics["f1"]
    facts = json.loads((Path(scored.report["output"]) / "metrics.json").read_text())
    assert facts["classes"]["GPE"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2}
    assert (facts["coverage"]["unreachable"], facts["coverage"]["ceilings"]) == (3, {"f1": 0.4, "recall": 0.25})
    right = sum(len(one["entities"]) for one in predictions(Path(scored.report["output"]) / "predictions.jsonl"))
    assert facts["recall"] * 4 == pytest.approx(facts["precision"] * right)  # 4 entities of gold, whatever their type
    shown = bertkit("eval", "conll2003", "--model", "run", plain=True)
    assert any(line.split() == ["GPE", "0.00", "0.00", "0.00", "2"] for line in shown.out.splitlines())
    Path("other.conll").write_text("bad B-GPE\nx I-GPE\n")  # none of its types is the model's
    none = bertkit("eval", "conll2003", "--model", "run", "--validation-file", "other.conll", "--output", "other")
    assert (none.metrics["f1"], none.metrics["GPE_recall"]) == (0.0, 0.0)
    assert "a perfect model could get f1 0.00, recall 0.00" in none.err
    # Whoever predicts is not told of gold, nor refused for it.
    said = bertkit("predict", "conll2003", "--model", "run", "--test-file", "dev.conll", "--output", "said.jsonl")
    assert (said.metrics, said.warned("unknown-types")) == ({"examples": 4}, [])


def test_in_data_of_ones_own_a_type_that_training_never_had_is_an_error_with_its_row(
    bertkit: Call, tiny: Path, data: tuple[str, ...]
) -> None:
    command = ("finetune", "tokens", "--model", tiny, *data, *BRIEF, "--output", "run")
    refused = bertkit(*command)
    fault = refused.report["error"]
    assert (refused.code, fault["where"]) == (3, "dev.conll, line 5")
    assert fault["message"] == "The tag 'B-GPE' of the word 'bad' is none of the labels O, B-LOC, I-LOC, B-PER, I-PER."
    Path("dev.conll").write_text("x I-LOC\n\ngood I-PER\n")  # the same types in another scheme
    assert bertkit(*command).code == 0


def test_a_class_that_training_never_had_is_an_error_before_training_and_in_eval(
    bertkit: Call, tiny: Path, data: tuple[str, ...]
) -> None:
    for name, text in (("train.conll", TRAIN), ("dev.conll", TRAIN)):
        Path(name).write_text(text.replace("B-", "").replace("I-", ""))
    command = ("finetune", "tokens", "--model", tiny, *data, *BRIEF, "--output", "run")
    assert bertkit(*command).code == 0
    with Path("dev.conll").open("a") as file:
        file.write("\n\nx UH\n")
    place = f"dev.conll, line {len(TRAIN.splitlines()) + 3}"
    for refused in (bertkit("eval", "tokens", "--model", "run", *data[2:]), bertkit(*command, "--overwrite")):
        fault = refused.report["error"]
        assert (refused.code, fault["where"]) == (3, place)
        assert fault["message"] == "The tag 'UH' of the word 'x' is none of the labels LOC, O, PER."


def test_sentences_without_gold_are_scored_by_nobody(bertkit: Call, make_model: MakeModel) -> None:
    records = [{"tokens": ["good", "bad"], "tags": ["B-LOC", "O"]}, {"tokens": ["x"], "tags": None}]
    Path("some.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    test = ("--test-file", "some.jsonl")
    scored = bertkit("eval", "tokens", "--model", make_model("tagging", ("O", "B-LOC", "I-LOC")), *test, "--output", "scored")
    assert scored.metrics["examples"] == 1
    given = ("eval", "tokens", *test, "--predictions", Path(scored.report["output"]) / "predictions.jsonl")
    again = bertkit(*given, "--not-worse-than", "scored", "--output", "again")
    assert again.metrics == scored.metrics


def test_one_wrong_letter_in_dev_does_not_turn_entities_into_classes(bertkit: Call, tiny: Path, data: tuple[str, ...]) -> None:
    Path("dev.conll").write_text("in O\ngood B-LOC\n\nx B_LOC\n")
    refused = bertkit("finetune", "tokens", "--model", tiny, *data, *BRIEF, "--output", "run")
    assert (refused.code, refused.report["error"]["where"]) == (3, "dev.conll, line 4")
    assert "'B_LOC' of the word 'x'" in refused.report["error"]["message"]
