"""People's own numbers and several labels, from the file to the figures, and a head whose labels have no names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from job_tests import WORDS, Call, Done, MakeModel, predictions, sst2_lines

PLAIN = ("--precision", "fp32", "--seed", "7")


def untimed(done: Done) -> dict[str, object]:
    return {name: value for name, value in done.metrics.items() if name not in ("steps", "tokens", "train_seconds")}


def numbers(rows: range) -> str:
    """A text whose word says its number."""
    said = {"good": 4.0, "fine": 3.0, "poor": 1.0, "bad": 0.0}
    words = [list(said)[n % 4] for n in rows]
    return "text,label\n" + "".join(
        f"{'abcdef'[n % 6]} {n % 10} {word},{said[word]}\n" for n, word in zip(rows, words, strict=True)
    )


def several(rows: range) -> list[dict[str, object]]:
    """A text with any of two words, each of which is a label's."""
    made: list[dict[str, object]] = []
    for n in rows:
        names = [name for bit, name in enumerate(("positive", "negative")) if n >> bit & 1]
        words = " ".join(WORDS[name][n // 4 % 2] for name in names)
        made.append({"text": f"{'abcdef'[n % 6]} {words} {n % 10}", "label": names})
    return made


def test_regression_from_the_file_to_scipys_figures(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    from scipy import stats

    for name, rows in (("train.csv", range(80)), ("validation.csv", range(200, 224))):
        (tmp_path / name).write_text(numbers(rows))
    done = bertkit(
        "finetune", "regression", "--model", tiny, "--data", tmp_path, "--lr", "0.01", "--epochs", "8", "--batch-size", "16",
        "--output", "run", *PLAIN,
    )  # fmt: skip
    assert done.metrics["pearson"] > 0.8
    config = json.loads(Path("run/config.json").read_text())
    assert (config["problem_type"], len(config["id2label"])) == ("regression", 1)
    scored = bertkit("eval", "regression", "--model", "run", *PLAIN[:2])
    assert untimed(scored) == untimed(done)
    said = predictions(Path(scored.report["output"]) / "predictions.jsonl")
    gold, predicted = [row["gold"] for row in said], [row["prediction"] for row in said]
    assert all(isinstance(value, float) for value in predicted)
    assert scored.metrics["pearson"] == pytest.approx(stats.pearsonr(gold, predicted)[0], abs=1e-9)
    assert scored.metrics["spearman"] == pytest.approx(stats.spearmanr(gold, predicted)[0], abs=1e-9)
    (tmp_path / "new.csv").write_text("text\ngood a\nbad a\n")
    assert bertkit("predict", "regression", "--model", "run", "--test-file", "new.csv", "--output", "said.jsonl").code == 0
    high, low = (row["prediction"] for row in predictions(Path("said.jsonl")))
    assert high > low


def test_figures_that_are_undefined_are_null_with_a_warning(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    for name in ("train.csv", "validation.csv"):
        (tmp_path / name).write_text("text,label\n" + "".join(f"a {n},2.5\n" for n in range(8)))
    done = bertkit("finetune", "regression", "--model", tiny, "--data", tmp_path, "--steps", "2", "--eval-every", "1", *PLAIN)
    assert (done.metrics["pearson"], done.metrics["spearman"]) == (None, None)
    assert len(done.warned("undefined-score")) == 2


def test_several_labels_from_each_form_to_the_same_figures(bertkit: Call, tiny: Path, tmp_path: Path) -> None:
    from sklearn.metrics import accuracy_score, f1_score

    train, dev = several(range(96)), several(range(100, 124))
    for name, rows in (("train", train), ("dev", dev)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines = [f"{row['text']},{int('negative' in row['label'])},{int('positive' in row['label'])}\n" for row in rows]  # type: ignore[operator]
        (tmp_path / f"{name}.csv").write_text("text,negative,positive\n" + "".join(lines))
    quick = ("--lr", "0.003", "--epochs", "18", "--batch-size", "16", *PLAIN)
    done = bertkit(
        "finetune", "multilabel", "--model", tiny, "--train-file", "train.jsonl", "--validation-file", "dev.jsonl", "--output",
        "lists", *quick,
    )  # fmt: skip
    assert done.metrics["f1_micro"] > 0.7  # every label everywhere gets 2 / 3
    assert done.warned("label-form")
    columns = bertkit(
        "finetune", "multilabel", "--model", tiny, "--train-file", "train.csv", "--validation-file", "dev.csv", "--label-column",
        "negative,positive", "--output", "columns", *quick,
    )  # fmt: skip
    assert untimed(columns) == untimed(done)
    scored = bertkit("eval", "multilabel", "--model", "columns", "--precision", "fp32")  # its columns are remembered
    assert untimed(scored) == untimed(done)
    said = predictions(Path(scored.report["output"]) / "predictions.jsonl")
    names = ["negative", "positive"]
    gold, predicted = ([[int(name in row[key]) for name in names] for row in said] for key in ("gold", "prediction"))
    assert all((row["probabilities"][name] > 0.5) == (name in row["prediction"]) for row in said for name in names)
    assert scored.metrics["accuracy"] == accuracy_score(gold, predicted)
    assert scored.metrics["f1_micro"] == pytest.approx(f1_score(gold, predicted, average="micro"))
    assert scored.metrics["f1_macro"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    config = json.loads(Path("lists/config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"


def test_a_head_whose_labels_have_no_names_is_the_same_to_training_and_scoring(
    bertkit: Call, make_model: MakeModel, tmp_path: Path
) -> None:
    """transformers writes no id2label for two labels without names: they are LABEL_0 and LABEL_1 all the same."""
    folder = make_model("classification", ("LABEL_0", "LABEL_1"), seed=3)
    config = json.loads((folder / "config.json").read_text())
    del config["id2label"], config["label2id"]
    (folder / "config.json").write_text(json.dumps(config))
    (tmp_path / "dev.tsv").write_text(sst2_lines(range(24)))
    scored = bertkit("eval", "sst2", "--model", folder, "--data", tmp_path, *PLAIN[:2])
    assert "LABEL_1 = positive" in scored.warned("label-order")[0]
    (tmp_path / "train.tsv").write_text(sst2_lines(range(100, 148)))
    still = ("--lr", "1e-12", "--steps", "1", "--output", "run")
    done = bertkit("finetune", "sst2", "--model", folder, "--data", tmp_path, *still, *PLAIN)
    assert "LABEL_1 = positive" in done.warned("label-order")[0]
    assert not done.warned("new-head")
    assert untimed(done) == untimed(scored), "the head was kept"


def test_a_body_has_no_labels_and_gets_a_new_head(bertkit: Call, tiny: Path, sst2: Path) -> None:
    done = bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "1", *PLAIN)
    assert not done.warned("label-order")
    refused = bertkit("eval", "sst2", "--model", tiny, "--data", sst2)
    assert refused.code == 3
