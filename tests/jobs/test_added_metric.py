"""``--metric``: others' metrics beside the task's own figures, in the form that each kind of label has for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from job_tests import QUICK, Call
from small_runs import Call as Finished
from small_runs import log, run_commands, told

import bertkit as library
from bertkit.errors import UsageError
from bertkit.labelled.rows import Answer, QuestionRow, TextRow
from bertkit.tasks.added_figures import added_figures, rehearse
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import kind_of, task_named

OWN = '''
"""The share of predictions that are the last class, and how many there are."""
import datasets
import evaluate

class Last(evaluate.Metric):
    def _info(self):
        value = datasets.Value("int64")
        features = datasets.Features({"predictions": value, "references": value})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        return {"last": sum(p == 1 for p in predictions) / len(predictions), "rows": len(references)}
'''


class Recorded:
    """A metric that says what it was given."""

    def __init__(self, stem: str = "recorded") -> None:
        self.stem, self.given = stem, ([], [])

    def figures(self, predictions: list[object], references: list[object]) -> dict[str, float | None]:
        self.given = (predictions, references)
        return {"n": float(len(predictions))}


def test_rows_in_the_form_of_their_kind() -> None:
    def given(kind: str, labels: Labels, *pairs: tuple[object, object]) -> tuple[list[object], list[object]]:
        metric = Recorded()
        rows = [Prediction(id=str(n), value=value, gold=gold) for n, (value, gold) in enumerate(pairs)]
        added = added_figures([metric, Recorded("other")], rows, kind, labels)  # type: ignore[list-item]
        judged = float(sum(gold is not None for _, gold in pairs))
        assert added == {"evaluate/n": judged, "evaluate/other.n": judged}
        return metric.given

    two = Labels(names=("no", "yes"))
    assert given("classification", two, ("yes", "no"), ("NO", "yes"), ("maybe", "no"), ("yes", None)) == ([1, 0, 2], [0, 1, 0])
    several = Labels(names=("a", "b", "c"), problem="multi_label_classification")
    assert given("classification", several, (["b"], ["a", "c"])) == ([[0, 1, 0]], [[1, 0, 1]])
    assert given("classification", Labels(names=("score",), problem="regression"), (1.5, 2.0)) == ([1.5], [2.0])
    assert given("tagging", Labels(names=("O",), problem=""), (["O"], ["B-X"])) == ([["O"]], [["B-X"]])
    answers = given("span", Labels(names=(), problem=""), (None, ["cat", "the cat"]))
    assert answers == (
        [{"id": "0", "prediction_text": ""}],
        [{"id": "0", "answers": {"text": ["cat", "the cat"], "answer_start": [0, 0]}}],
    )
    assert added_figures([], [], "classification", two) == {}


def test_a_rehearsal_has_the_gold_itself_for_predictions() -> None:
    metric, rows = Recorded(), [TextRow(id="0", text="a", label="yes"), TextRow(id="1", text="b")]
    rehearse([metric], kind_of(task_named("sst2")), rows, Labels(names=("no", "yes")))  # type: ignore[list-item]
    assert metric.given == ([1], [1])
    asked = [
        QuestionRow(id="0", question="?", context="a cat", answers=(Answer("cat", 2), Answer("a cat", 0))),
        QuestionRow(id="1", question="?", context="a cat", impossible=True),
    ]
    rehearse([metric], kind_of(task_named("squad_v2")), asked, Labels(names=(), problem=""))  # type: ignore[list-item]
    assert metric.given[0] == [{"id": "0", "prediction_text": "cat"}, {"id": "1", "prediction_text": ""}]


@pytest.mark.slow
def test_a_metric_of_ones_own_beside_the_tasks(bertkit: Call, trained: Path, sst2: Path, tmp_path: Path) -> None:
    (tmp_path / "last.py").write_text(OWN)
    evaluated = ("eval", "sst2", "--model", trained, "--data", sst2, "--output", "evals", "--precision", "fp32")
    done = bertkit(*evaluated, "--metric", "last.py")
    said = [json.loads(line)["prediction"] for line in Path("evals/sst2-validation/predictions.jsonl").read_text().splitlines()]
    assert done.metrics["evaluate/last"] == said.count("positive") / 24
    assert done.metrics["evaluate/rows"] == 24.0
    assert json.loads(Path("evals/sst2-validation/metrics.json").read_text())["evaluate/rows"] == 24.0
    assert "\nevaluate/rows" in "\n" + bertkit(*evaluated, "--metric", "last.py", plain=True).out
    Path("evals/sst2-validation/predictions.jsonl").unlink()
    wrong = bertkit(*evaluated, "--metric", "lost.py")
    assert (wrong.code, wrong.report["error"]["where"]) == (4, "--metric lost.py")
    assert not Path("evals/sst2-validation/predictions.jsonl").exists(), "refused before any work"


@pytest.fixture
def last(tmp_path: Path) -> str:
    """A metric as evaluate's own lie in a folder: a script of the folder's name."""
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "last.py").write_text(OWN)
    return "last"


def test_a_validations_line_has_it_however_many_figures_of_types_there_are(bertkit: Call, tiny: Path) -> None:
    tags = 'datasets.Sequence(datasets.Value("string"))'
    Path("tags.py").write_text(OWN.replace('datasets.Value("int64")', tags).replace("p == 1", 'p[0] == "O"'))
    Path("own.conll").write_text("".join(f"in O\ngood B-{kind}\n\n" for kind in ("PER", "LOC", "ORG") * 4))
    files = ("--train-file", "own.conll", "--validation-file", "own.conll", "--metric", "tags.py", "--precision", "fp32")
    done = bertkit("finetune", "tokens", "--model", tiny, *files, "--steps", "2", "--output", "run")
    line = next(line for line in done.err.splitlines() if line.startswith("Step 2, validation:"))
    shown = [name for name in line.split() if name.startswith(("f1", "ORG", "evaluate"))]
    assert shown == ["f1", "f1_strict", "evaluate/last", "evaluate/rows"]
    assert " more in log.jsonl" in line


@pytest.mark.slow
def test_every_validation_of_a_training_has_it_and_so_have_the_final_figures(
    bertkit: Call, tiny: Path, sst2: Path, last: str
) -> None:
    command = ("finetune", "sst2", "--model", tiny, "--data", sst2, "--precision", "fp32", *QUICK, "--metric", last)
    done = bertkit(*command, "--epochs", "3")
    lines = [line for line in log(Path("runs/sst2")) if "valid_accuracy" in line]
    assert len(lines) == 3
    assert all(line["valid_evaluate/rows"] == 24.0 for line in lines)
    best = max(lines, key=lambda line: line["valid_accuracy"])  # the first of the best
    assert done.metrics["evaluate/last"] == best["valid_evaluate/last"]
    assert json.loads(Path("runs/sst2/metrics.json").read_text())["evaluate/last"] == best["valid_evaluate/last"]
    assert "| evaluate/last |" in Path("runs/sst2/README.md").read_text()
    scored = bertkit("eval", "sst2", "--metric", last, "--precision", "fp32")
    assert scored.metrics["evaluate/last"] == done.metrics["evaluate/last"]
    # A recipe may be another person's: the metric is run where it is named.
    refused = bertkit("finetune", "--recipe", "runs/sst2/settings.yaml")
    assert (refused.code, refused.report["error"]["hint"]) == (2, "Add --metric last")
    with pytest.raises(UsageError, match="Python code, last,"):
        library.finetune("sst2", recipe="runs/sst2/settings.yaml", quiet=True)
    again = bertkit("finetune", "--recipe", "runs/sst2/settings.yaml", "--metric", last)
    assert again.report["state"] == "already finished"
    other = bertkit(*command[:-2], "--epochs", "3", "--output", "runs/sst2")
    assert (other.code, 'metrics: ["last"] before, [] now' in other.report["error"]["message"]) == (2, True)
    # Of several seeds it has a mean, as any figure.
    swept = bertkit(*command, "--epochs", "1", "--seeds", "1,2", "--output", "swept")
    values = [each["figures"]["evaluate/last"] for each in swept.report["sweep"]["trials"]]
    assert swept.metrics["evaluate/last_mean"] == pytest.approx(sum(values) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["finetune", "eval"])
def test_a_metric_that_cannot_score_the_rows_is_refused_before_the_work(
    bertkit: Call, trained: Path, sst2: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "fussy.py").write_text(OWN.replace("return {", 'raise ValueError("no such rows")\n        return {'))
    refused = bertkit(command, "sst2", "--model", trained, "--data", sst2, "--metric", "fussy.py", "--output", "out")
    assert (refused.code, refused.report["error"]["where"]) == (3, "--metric fussy.py")
    assert "no such rows" in refused.report["error"]["message"]
    assert not list(Path("out").glob("**/*.safetensors")) + list(Path("out").glob("**/predictions.jsonl"))
    assert "Step 1" not in refused.err


@pytest.mark.slow
def test_on_two_processes_it_scores_each_row_once_and_its_errors_end_both(
    bertkit: Call, tiny: Path, sst2: Path, last: str, tmp_path: Path
) -> None:
    twice = 'self.calls = getattr(self, "calls", 0) + 1\n        if self.calls > 1: raise ValueError("twice")\n        return {'
    (tmp_path / "later.py").write_text(OWN.replace("return {", twice))  # the gold is scored first
    shared = ["finetune", "sst2", "--model", str(tiny), "--data", str(sst2), "--precision", "fp32", *QUICK, "--json"]
    commands = [
        [*shared, "--metric", str(tmp_path / last), "--epochs", "2", "--output", str(tmp_path / "run")],
        [*shared, "--metric", str(tmp_path / "lost.py"), "--output", str(tmp_path / "lost")],
        [*shared, "--metric", str(tmp_path / "later.py"), "--epochs", "1", "--output", str(tmp_path / "later")],
    ]
    run_commands(tmp_path, [(words, 0, {}) for words in commands], 2)
    first, *failed = ([Finished(**told(tmp_path, number, rank)) for rank in (0, 1)] for number in range(3))
    assert [process.code for process in first] == [0, 0], first[0].err
    lines = [line for line in log(tmp_path / "run") if "valid_accuracy" in line]
    assert [line["valid_evaluate/rows"] for line in lines] == [24.0, 24.0]
    figures = first[0].object["metrics"]
    assert figures["evaluate/last"] in [line["valid_evaluate/last"] for line in lines]
    alone = bertkit("eval", "sst2", "--model", "run", "--data", sst2, "--metric", last, "--precision", "fp32")
    assert alone.metrics["evaluate/last"] == figures["evaluate/last"]
    # One that is not there ends both processes before the work, one that fails at the validation behind it.
    for processes, code, words in zip(failed, (4, 3), ("no such metric", "twice"), strict=True):
        assert [process.code for process in processes] == [code, code]
        assert words in processes[0].object["error"]["message"]
        assert (processes[1].out, processes[1].err) == ("", "")
