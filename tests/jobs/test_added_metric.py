"""``eval --metric``: others' metrics beside the task's own figures, in the form that each kind of label has for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from job_tests import Call

from bertkit.tasks.added_figures import with_added
from bertkit.tasks.kinds import Labels, Prediction, Scores

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
    scores = Scores(values={"accuracy": 1.0}, primary="accuracy", examples=2)

    def given(kind: str, labels: Labels, *pairs: tuple[object, object]) -> tuple[list[object], list[object]]:
        metric = Recorded()
        rows = [Prediction(id=str(n), value=value, gold=gold) for n, (value, gold) in enumerate(pairs)]
        added = with_added(scores, [metric, Recorded("other")], rows, kind, labels)  # type: ignore[list-item]
        judged = float(sum(gold is not None for _, gold in pairs))
        assert added.values == {"accuracy": 1.0, "evaluate/n": judged, "evaluate/other.n": judged}
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
    assert with_added(scores, [], [], "classification", two) is scores


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
