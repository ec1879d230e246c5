"""``bertkit eval``: a model's or any system's predictions against gold, each row once, in the task's own arithmetic."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from job_tests import Call, MakeModel, predictions, review, sst2_lines

from bertkit.jobs import scoring
from bertkit.tasks.predictions import read_predictions


def test_the_newest_run_is_scored_and_the_figures_kept_in_it(bertkit: Call, tiny: Path, sst2: Path) -> None:
    missing = bertkit("eval", "sst2", "--data", sst2)
    assert (missing.code, missing.report["error"]["kind"]) == (4, "missing")
    assert "bertkit finetune sst2" in missing.report["error"]["hint"]
    assert bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "2").code == 0
    before = {path: path.read_bytes() for path in Path("runs/sst2").rglob("*") if path.is_file()}
    done = bertkit("eval", "sst2", "--data", sst2, "--max-eval-samples", "20")
    assert "runs/sst2" in done.warned("model")[0]
    where = Path("runs/sst2/evals/sst2-validation")
    assert done.report["output"] == str(where)
    kept = json.loads((where / "metrics.json").read_text())
    assert {name: kept[name] for name in done.metrics} == done.metrics
    assert (kept["examples"], kept["task"], kept["part"], kept["primary"]) == (20, "sst2", "validation", "accuracy")
    records = predictions(where / "predictions.jsonl")
    assert [record["gold"] for record in records] == [review(number)[1] for number in range(100, 120)]
    assert [record["id"] for record in records] == [str(number) for number in range(20)]
    right = sum(record["gold"] == record["prediction"] for record in records)
    assert done.metrics["accuracy"] == right / 20
    assert all(set(record["probabilities"]) == {"negative", "positive"} for record in records)
    assert before == {path: path.read_bytes() for path in before}  # nothing that training wrote
    assert kept["files"] == sorted(path.name for path in where.iterdir())
    (where / "notes.txt").write_text("mine")
    assert bertkit("finetune", "sst2", "--model", tiny, "--data", sst2, "--steps", "2", "--overwrite").code == 0
    assert list(Path("runs/sst2/evals").rglob("*")) == [where, where / "notes.txt"]  # a new model has no figures yet


def test_a_run_is_scored_on_the_data_that_it_was_trained_with(bertkit: Call, tiny: Path) -> None:
    """Columns, files and the rows that training held out are the run's own unless others are given."""
    rows = [review(number) for number in range(60)]
    Path("own.csv").write_text("verdict,review\n" + "".join(f'{label},"{text}"\n' for text, label in rows))
    named = ("--text-column", "review", "--label-column", "verdict")
    trained = bertkit(
        "finetune", "classification", "--model", tiny, "--train-file", "own.csv", *named, "--steps", "2", "--max-length", "32"
    )
    assert trained.code == 0, trained.err
    scored = bertkit("eval", "classification")
    assert scored.code == 0, scored.err
    assert "train file own.csv" in scored.warned("as-trained")[0]
    assert {name: trained.metrics[name] for name in ("accuracy", "examples")} == {
        name: scored.metrics[name] for name in ("accuracy", "examples")
    }
    assert 0 < scored.metrics["examples"] < 60
    Path("more.csv").write_text("review\n" + "".join(f'"{text}"\n' for text, _ in rows[:5]))
    assert bertkit("predict", "classification", "--test-file", "more.csv", "--output", "out.jsonl").metrics["examples"] == 5
    Path("own.csv").rename("gone.csv")
    lost = bertkit("eval", "classification")
    assert (lost.code, lost.report["error"]["kind"]) == (2, "usage")
    assert "--validation-file" in lost.report["error"]["hint"]
    assert "--train-file" not in lost.report["error"]["hint"]


@pytest.mark.parametrize("named", [("--data", "mine/train.csv"), ("--data", "mine"), ("--train-file", "mine/train.csv")])
def test_what_training_held_out_is_scored_however_its_data_were_named(bertkit: Call, tiny: Path, named: tuple[str, str]) -> None:
    """The rows that the model has learned from are never taken for its validation."""
    Path("mine").mkdir()
    rows = [review(number) for number in range(60)]
    Path("mine/train.csv").write_text("label,text\n" + "".join(f'{label},"{text}"\n' for text, label in rows))
    trained = bertkit("finetune", "classification", "--model", tiny, *named, "--steps", "2", "--max-length", "32")
    assert trained.code == 0, trained.err
    scored = bertkit("eval", "classification")
    assert scored.code == 0, scored.err
    assert scored.warned("held-out") == trained.warned("held-out")
    assert {name: trained.metrics[name] for name in ("accuracy", "examples")} == {
        name: scored.metrics[name] for name in ("accuracy", "examples")
    }
    assert 0 < scored.metrics["examples"] < 60


def test_settings_of_batches_change_no_prediction(bertkit: Call, trained: Path, sst2: Path) -> None:
    found = []
    for flags in ((), ("--batch-size", "7"), ("--micro-tokens", "64"), ("--batch-size", "1")):
        done = bertkit("eval", "sst2", "--model", trained, "--data", sst2, "--output", "out", *flags)
        records = predictions(Path("out/sst2-validation/predictions.jsonl"))
        found.append([(record["id"], record["gold"], record["prediction"]) for record in records])
        assert done.metrics["examples"] == 24
    assert found[1:] == found[:1] * 3


# Predictions of any system


@pytest.mark.parametrize("spelling", ["numbers", "names", "ids"])
def test_glues_file_is_scored(bertkit: Call, sst2: Path, tmp_path: Path, spelling: str) -> None:
    said = ["positive" if number % 3 else "negative" for number in range(24)]
    gold = [review(number)[1] for number in range(100, 124)]
    lines = [f"{i}\t{int(name == 'positive') if spelling == 'numbers' else name.title()}" for i, name in enumerate(said)]
    (tmp_path / "SST-2.tsv").write_text("index\tprediction\n" + "\n".join(lines[::-1] if spelling == "ids" else lines) + "\n")
    done = bertkit("eval", "sst2", "--predictions", "SST-2.tsv", "--data", sst2)
    assert done.metrics["accuracy"] == sum(a == b for a, b in zip(said, gold, strict=True)) / 24
    assert done.report["output"] == "runs/evals/SST-2-sst2-validation"
    kept = read_predictions(Path("runs/evals/SST-2-sst2-validation/predictions.jsonl"))
    assert [(one.value, one.gold) for one in kept] == list(zip(said, gold, strict=True))


def test_an_output_that_is_a_file_is_refused_before_the_work(bertkit: Call, trained: Path, sst2: Path) -> None:
    Path("taken").write_text("mine")
    for place in ("taken", "taken/below"):
        done = bertkit("eval", "sst2", "--model", trained, "--data", sst2, "--output", place)
        assert (done.code, done.report["error"]["kind"]) == (2, "folder")
        assert "Scoring" not in done.err
    assert Path("taken").read_text() == "mine"


def test_a_file_of_more_predictions_than_rows_is_told(bertkit: Call, sst2: Path) -> None:
    """The test part's official file has the name of dev's, and its numbers of rows begin at 0 as well."""
    Path("SST-2.tsv").write_text("index\tprediction\n" + "".join(f"{number}\t1\n" for number in range(30)))
    Path("said.jsonl").write_text(
        "".join(f'{{"id": "{number}", "gold": null, "prediction": "positive", "score": 1.0}}\n' for number in range(30))
    )
    for file in ("SST-2.tsv", "said.jsonl"):
        done = bertkit("eval", "sst2", "--predictions", file, "--data", sst2)
        assert done.metrics["examples"] == 24
        assert done.warned("more-predictions") == [
            f"{file} has 30 predictions, and 24 rows are scored: is it the file of another part?"
        ]


def test_what_predict_wrote_for_a_part_without_labels_is_scored_later(bertkit: Call, trained: Path, sst2: Path) -> None:
    assert bertkit("predict", "sst2", "--model", trained, "--data", sst2, "--output", "said/said.jsonl").code == 0
    assert {record["gold"] for record in predictions(Path("said/said.jsonl"))} == {None}
    (sst2 / "dev.tsv").write_text(sst2_lines(range(200, 210)))  # the labels come out
    for file in ("said/said.jsonl", "said/SST-2.tsv"):
        done = bertkit("eval", "sst2", "--predictions", file, "--data", sst2)
        assert (done.metrics["accuracy"], done.metrics["examples"]) == (1.0, 10)
    kept = predictions(Path(str(done.report["output"])) / "predictions.jsonl")
    assert [record["gold"] for record in kept] == [review(number)[1] for number in range(200, 210)]


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ("0\t1\n", "no prediction file of GLUE's", "line 1"),
        ("", "no prediction file of GLUE's", "line 1"),
        ("index\tprediction\n0\tmaybe\n", "'maybe' is none of negative, positive", "line 2"),
        ("index\tprediction\n0\t2\n", "'2' is none of negative, positive", "line 2"),
        ("index\tprediction\n0\t1\t1\n", "3 columns", "line 2"),
        ("index\tprediction\n0\t1\n0\t1\n", "index 0 comes twice", "line 3"),
        ("index\tprediction\n0\t1\n2\t1\n", "1 of 2 rows have no prediction, the first is index 1", "said.tsv"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(bertkit: Call, sst2: Path, text: str, message: str, where: str) -> None:
    (sst2 / "dev.tsv").write_text(sst2_lines(range(2)))
    Path("said.tsv").write_text(text if "\n0\t2" not in text and "maybe" not in text else text + "1\t1\n")
    done = bertkit("eval", "sst2", "--predictions", "said.tsv", "--data", sst2)
    assert (done.code, done.report["error"]["kind"]) == (3, "data")
    assert message in done.report["error"]["message"]
    assert where in done.report["error"]["where"]
    assert not Path("runs").exists()


TAGS = "-DOCSTART- -X- O\n\nAnn I-PER\nwas O\nin O\nNew I-LOC\nYork I-LOC\n\nBob I-PER\n"


@pytest.mark.parametrize("form", ["conlleval", "two columns", "bare"])
def test_tags_are_scored_from_columns_or_one_a_line(bertkit: Call, tmp_path: Path, form: str) -> None:
    (tmp_path / "valid.txt").write_text(TAGS)
    said = iter(["I-PER", "O", "O", "I-LOC", "O", "I-PER"])
    lines = []
    for line in TAGS.splitlines():
        word = line.strip() and not line.startswith("-DOCSTART-")
        given = {"conlleval": line + " ", "two columns": line.split(" ")[0] + " ", "bare": ""}[form]
        lines.append(given + next(said) if word else "" if form == "bare" else line)
    (tmp_path / "said.txt").write_text("\n".join(lines) + "\n")
    done = bertkit("eval", "conll2003", "--predictions", "said.txt", "--validation-file", "valid.txt")
    figures = done.metrics  # by hand: three entities, three found, two right; five of six words
    assert [figures[name] for name in ("precision", "recall", "f1", "PER_f1", "LOC_f1")] == pytest.approx([2 / 3] * 3 + [1, 0])
    assert (figures["accuracy"], figures["f1_strict"]) == pytest.approx((5 / 6, 2 / 3))
    # bertkit's own copy of them gives the same
    again = bertkit(
        "eval", "conll2003", "--predictions", f"{done.report['output']}/predictions.jsonl", "--validation-file", "valid.txt"
    )
    assert again.metrics == figures


def test_strict_figures_take_predictions_as_they_stand_beside_iob2(bertkit: Call, tmp_path: Path) -> None:
    (tmp_path / "valid.txt").write_text("a B-PH\nb I-PH\n")
    (tmp_path / "said.txt").write_text("a B-PH I-PH\nb I-PH I-PH\n")
    done = bertkit("eval", "conll2003", "--predictions", "said.txt", "--validation-file", "valid.txt")
    assert (done.metrics["f1"], done.metrics["f1_strict"]) == (1.0, 0.0)


def test_the_reference_scores_of_squad_are_printed_again(bertkit: Call, real_data: Path) -> None:
    reference = real_data / "data/squad/reference"
    expected = json.loads((reference / "expected-scores.json").read_text())
    for version in expected.values():
        for file, scores in version["scores"].items():
            done = bertkit(
                "eval", "squad", "--predictions", reference / file,
                "--validation-file", real_data / "data/squad" / version["dataset"],
            )  # fmt: skip
            for name, value in scores.items():
                ours = {"exact_match": "exact", "total": "examples"}.get(name, name)
                assert done.metrics[ours] == pytest.approx(value, abs=1e-9), (file, name)


def test_the_reference_scores_of_conlleval_are_printed_again(bertkit: Call, real_data: Path) -> None:
    folder = real_data / "data/conll2003"
    done = bertkit(
        "eval", "conll2003", "--predictions", folder / "reference/unigram-pred-test600.txt", "--part", "test", "--data", folder,
        "--max-eval-samples", "600",
    )  # fmt: skip
    figures = done.metrics
    printed = (folder / "reference/unigram-pred-test600.conlleval.txt").read_text()
    assert "accuracy:  93.71%; precision:  71.42%; recall:  73.68%; FB1:  72.53" in printed
    points = [f"{100 * figures[name]:.2f}" for name in ("accuracy", "precision", "recall", "f1")]
    assert points == ["93.71", "71.42", "73.68", "72.53"]
    for line in printed.splitlines()[2:]:
        name, rest = line.split(":", 1)
        wanted = [part.split(":")[1].strip(" %").split()[0] for part in rest.split(";")]
        ours = [f"{100 * figures[f'{name.strip()}_{what}']:.2f}" for what in ("precision", "recall", "f1")]
        assert ours == [value.rstrip("%") for value in wanted], name


# What a score costs

SCORE = """
import sys
from bertkit.cli.main import run
code = run(["eval", "sst2", "--model", sys.argv[1], "--data", sys.argv[2], "-q"])
heavy = ("transformers.models", "evaluate", "datasets", "pyarrow", "pandas", "sklearn", "scipy", "torch._dynamo", "sympy")
print(sorted(name for name in heavy if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_100_rows_from_a_cold_start_take_seconds_and_load_nothing_that_they_do_not_need(trained: Path, sst2: Path) -> None:
    (sst2 / "dev.tsv").write_text(sst2_lines(range(100, 200)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", SCORE, str(trained), str(sst2)],
        capture_output=True, text=True, check=True, cwd=sst2, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stderr.splitlines()[-1] == "[]"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 8


def test_a_head_that_was_never_trained_is_no_model_to_score(bertkit: Call, make_model: MakeModel, sst2: Path) -> None:
    body = make_model("encoder")
    for command in ("eval", "predict"):
        refused = bertkit(command, "sst2", "--model", body, "--data", sst2, "--output", "out")
        assert (refused.code, refused.report["error"]["kind"]) == (3, "model")
        assert "bertkit finetune" in refused.report["error"]["hint"]
        assert not Path("out").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("command", ["eval", "predict"])
def test_a_signal_leaves_nothing_half_written(
    bertkit: Call, trained: Path, sst2: Path, monkeypatch: pytest.MonkeyPatch, command: str, number: int, code: int
) -> None:
    plain = scoring.Scorer._outputs

    def outputs(self: Any, model: Any, batch: Any) -> Any:
        os.kill(os.getpid(), number)
        return plain(self, model, batch)

    monkeypatch.setattr(scoring.Scorer, "_outputs", outputs)
    flags = ("--data", sst2, "--batch-size", "4", "--output", "out")
    stopped = bertkit(command, "sst2", "--model", trained, *flags)
    assert (stopped.code, stopped.report["exit_code"]) == (code, code)
    assert not Path("out").exists()


def test_of_two_validation_parts_each_has_its_figures_and_its_file(bertkit: Call, make_model: MakeModel, tmp_path: Path) -> None:
    names = ("entailment", "neutral", "contradiction")
    header, folder = "index\tsentence1\tsentence2\tgold_label\n", tmp_path / "MNLI"
    folder.mkdir()
    for part, gold in (("matched", names[0]), ("mismatched", names[1])):
        (folder / f"dev_{part}.tsv").write_text(header + "".join(f"{i}\ta {i}\tb\t{gold}\n" for i in range(4)))
    (folder / "matched.tsv").write_text("index\tprediction\n" + "".join(f"{i}\t{names[i % 2]}\n" for i in range(4)))
    done = bertkit("eval", "mnli", "--model", make_model("classification", names), "--data", folder, "--output", "out")
    assert {path.name for path in Path("out").iterdir()} == {"mnli-validation_matched", "mnli-validation_mismatched"}
    assert (done.metrics["examples"], done.metrics["examples_mismatched"]) == (4, 4)
    assert done.metrics["accuracy"] + done.metrics["accuracy_mismatched"] <= 1.0  # no answer is right in both
    for flags, said in (((), 1), (("--part", "validation_mismatched"), 0)):
        done = bertkit("eval", "mnli", "--predictions", folder / "matched.tsv", "--data", folder, *flags)
        assert (done.metrics["accuracy"], len(done.warned("part"))) == (0.5, said)


def test_a_part_that_is_not_there_is_not_another_one(bertkit: Call, make_model: MakeModel, tmp_path: Path) -> None:
    names = ("entailment", "neutral", "contradiction")
    text = "index\tsentence1\tsentence2\tgold_label\n" + "".join(f"{i}\ta {i}\tb\t{names[i % 3]}\n" for i in range(3))
    (tmp_path / "dev_matched.tsv").write_text(text)
    model = make_model("classification", names)
    flags = ("eval", "mnli", "--model", model, "--output", "out", "--part", "validation_mismatched")
    missing = bertkit(*flags, "--data", ".")
    assert (missing.code, missing.report["error"]["kind"]) == (4, "missing")
    assert "dev_mismatched.tsv" in missing.report["error"]["hint"]
    assert not Path("out").exists()
    done = bertkit(*flags, "--validation-file", "dev_matched.tsv")  # a file is the part that one says it is
    assert (done.metrics["examples"], done.report["output"]) == (3, "out/mnli-validation_mismatched")


def test_a_run_is_scored_as_it_was_trained(bertkit: Call, tiny: Path, sst2: Path) -> None:
    flags = ("--model", tiny, "--data", sst2, "--max-length", "4", "--lr", "0.01", "--steps", "20", "--output", "runs/short")
    trained = bertkit("finetune", "sst2", *flags)
    done = bertkit("eval", "sst2", "--data", sst2)
    assert done.warned("as-trained") == ["As the model was trained: max_length 4."]
    assert {name: trained.metrics[name] for name in done.metrics} == done.metrics
    assert bertkit("eval", "sst2", "--data", sst2, "--max-length", "128").warned("as-trained") == []
