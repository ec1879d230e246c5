"""The shells for ``evaluate.load`` and metrics of others: local scripts, no network, the pure functions' own figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bertkit
from bertkit.errors import MissingError
from bertkit.metrics.added import _number, _script

SCRIPT = """
import json, sys, evaluate
from bertkit.metrics import shells
from bertkit.metrics.added import AddedMetric
from bertkit.errors import BertkitError

def of(name, predictions, references):
    return evaluate.load(shells.FOLDER, name).compute(predictions=predictions, references=references)

found = {name: of(name, [1, 0, 1, 1], [1, 1, 1, 0])[name] for name in ("accuracy", "f1", "f1_macro", "f1_micro", "matthews")}
found |= {name: of(name, [1, 2, 3.5], [1, 3, 2])[name] for name in ("pearson", "spearman")}
found |= {f"several_{key}": value for key, value in of("multilabel", [[1, 0], [1, 1]], [[1, 1], [1, 1]]).items()}
found |= {f"tags_{key}": value for key, value in of("entities", [["B-X", "O"]], [["B-X", "B-Y"]]).items()}
answers = [{"id": "1", "prediction_text": "the cat"}], [{"id": "1", "answers": {"text": ["cat", "dog"], "answer_start": [0, 4]}}]
found |= {f"{name}_exact": of(name, *answers)["exact"] for name in ("squad", "squad_v2")}
own = AddedMetric("mine.py")
found["mine"] = own.figures([1, 0], [1, 1])
found["config"] = AddedMetric(f"{shells.FOLDER}:f1").figures([1, 0], [1, 1])
for name in ("mcc_of_the_hub", "failing.py", "lacking.py", "function.py", "mine.py"):
    try:
        AddedMetric(name).figures(["x", "y"], ["x", "x"])
    except BertkitError as error:
        found[name] = [error.exit_code, error.message, error.where, error.hint]
print(json.dumps(found))
"""
MINE = '''
"""Mine."""
import datasets
import evaluate
import numpy

class Mine(evaluate.Metric):
    def _info(self):
        value = datasets.Value("int64")
        return evaluate.MetricInfo(description="d", citation="c", inputs_description="i",
            features=datasets.Features({"predictions": value, "references": value}))

    def _compute(self, predictions, references):
        print("noise")
        return {"share": numpy.float64(sum(predictions) / len(predictions)), "each": numpy.array([1, 2]), "odd": float("nan")}
'''


@pytest.mark.slow
def test_evaluate_loads_them_and_others_without_a_network(tmp_path: Path) -> None:
    from sklearn.metrics import f1_score

    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "failing.py").write_text(MINE + "\n1 / 0\n")
    (tmp_path / "function.py").write_text("def compute(predictions, references):\n    return {}\n")
    (tmp_path / "lacking.py").write_text(MINE + "\nimport no_such_library_at_all\n")
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    # Not all of sys.path: a test before may have had evaluate put its folder of modules there, which would be found first.
    environment["PYTHONPATH"] = str(Path(bertkit.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "noise" not in done.stdout
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["mine"] == {"share": 0.5, "each": None, "odd": None}
    assert found["config"] == {"f1": pytest.approx(2 / 3)}
    code, message, where, _ = found["mcc_of_the_hub"]
    assert (code, "cannot be had from the hub" in message, "127.0.0.1" in where) == (4, True, True)
    assert found["failing.py"][:2] == [3, "The metric cannot be loaded: ZeroDivisionError: division by zero"]
    assert found["lacking.py"][0] == 4
    assert "derives from evaluate.Metric" in found["function.py"][3]
    assert "no_such_library_at_all" in found["lacking.py"][1]
    assert found["mine.py"][0] == 3
    assert "cannot score these predictions" in found["mine.py"][1]
    figures = {name: value for name, value in found.items() if isinstance(value, float)}
    several = [[1, 0], [1, 1]], [[1, 1], [1, 1]]
    assert figures == pytest.approx(
        {
            "accuracy": 0.5, "f1": 2 / 3, "f1_macro": 1 / 3, "f1_micro": 0.5, "matthews": -1 / 3,
            "pearson": 0.3973597071195132, "spearman": 0.5,
            "several_f1_micro": f1_score(several[1], several[0], average="micro"),
            "several_f1_macro": f1_score(several[1], several[0], average="macro"), "several_accuracy": 0.5,
            "tags_precision": 1.0, "tags_recall": 0.5, "tags_f1": 2 / 3, "tags_f1_strict": 2 / 3, "tags_accuracy": 0.5,
            "squad_exact": 100.0, "squad_v2_exact": 100.0,
        }
    )  # fmt: skip


def test_what_is_no_metric_is_refused_before_evaluate_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("")
    for name in ("none.py", "./none", "folder", "file.txt", "/no/such/place", "a/b/c"):
        with pytest.raises(MissingError, match="no such metric"):
            _script(name)
    (tmp_path / "folder" / "folder.py").write_text("")
    assert _script("folder") == str(tmp_path / "folder")
    assert _script("accuracy") is None
    assert _script("owner/metric") is None


def test_numbers_of_whatever_a_metric_gives() -> None:
    import numpy

    given = [0.5, numpy.float32(0.5), numpy.array([0.5]), numpy.array([1.0, 2.0]), float("inf"), "text", None, [1]]
    assert [_number(value) for value in given] == [0.5, 0.5, 0.5, None, None, None, None, None]
