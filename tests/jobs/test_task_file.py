"""Tasks of people's own from a Python file: registered, remembered, and told with the line where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_tests import QUICK, Call, predictions, sst2_lines

import bertkit as library
from bertkit.errors import DataError, UsageError
from bertkit.jobs.outcome import Outcome
from bertkit.tasks import registry, task_file
from bertkit.tasks.registry import task_named
from bertkit.tasks.task_file import load_task_file

OWN = """
from bertkit.tasks.registry import Columns, Task, register

register(
    Task(
        name="reviews",
        title="Is a review good?",
        columns=Columns(text="sentence", names=("bad", "fine")),
        labels=("bad", "fine"),
        positive="fine",
        metrics=("f1", "accuracy"),
        settings={"max_length": 24},
        training={"epochs": 4.0},
    )
)
"""


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    monkeypatch.setattr(task_file, "_loaded", {})


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.tsv").write_text(sst2_lines(range(80)))
    (tmp_path / "data" / "dev.tsv").write_text(sst2_lines(range(100, 124)))
    path = tmp_path / "my_tasks.py"
    path.write_text(OWN)
    return path


def test_from_the_declaration_to_the_figures_and_back(bertkit: Call, tiny: Path, own: Path) -> None:
    listed = bertkit("tasks", "--task-file", own).report["tasks"]
    assert listed[-1]["name"] == "reviews"
    assert listed[-1]["defaults"] == {"max_length": 24, "batch_size": 32, "epochs": 4.0}
    flags = ("--data", "data", "--task-file", own.name)
    done = bertkit("finetune", "reviews", "--model", tiny, *flags, *QUICK, "--precision", "fp32")
    assert done.metrics["f1"] > 0.9
    resolved = Path("runs/reviews/settings.yaml").read_text()
    assert "task_file: my_tasks.py" in resolved
    assert "max_length: 24" in resolved
    scored = bertkit("eval", "reviews", "--task-file", own.name, "--precision", "fp32")
    assert scored.metrics["f1"] == done.metrics["f1"]
    assert {row["prediction"] for row in predictions(Path(scored.report["output"]) / "predictions.jsonl")} <= {"bad", "fine"}
    Path("new.tsv").write_text("sentence\na good film\n")
    said = bertkit("predict", "reviews", "--task-file", own.name, "--test-file", "new.tsv", "--output", "said.jsonl")
    assert (said.code, len(predictions(Path("said.jsonl")))) == (0, 1)
    again = bertkit("finetune", "reviews", "--model", tiny, *flags, *QUICK, "--precision", "fp32")
    assert again.report["state"] == "already finished"


def test_a_recipe_alone_never_runs_code(bertkit: Call, tiny: Path, own: Path) -> None:
    own.write_text(OWN + "\nimport pathlib\npathlib.Path('ran').touch()\n")
    Path("other.yaml").write_text(f"command: finetune\ntask: reviews\ntask_file: my_tasks.py\nmodel: {tiny}\n")
    refused = bertkit("finetune", "--recipe", "other.yaml", "--data", "data")
    assert (refused.code, refused.report["error"]["hint"]) == (2, "Add --task-file my_tasks.py")
    assert not Path("ran").exists()
    done = bertkit("finetune", "--recipe", "other.yaml", "--data", "data", "--task-file", own, "--steps", "1")
    assert done.code == 0, done.err
    assert Path("ran").exists()


def test_in_python(tiny: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    settings = {"task_file": str(own), "budget.steps": 1}
    run: Outcome = library.finetune("reviews", model=tiny, data="data", settings=settings, quiet=True)
    assert "f1" in run.metrics


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\n1 / 0\n", 2, "ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('deep')\nf()\n", 2, "KeyError"),
        ("import nothing_of_that_name\n", 1, "ModuleNotFoundError"),
        ("x = (\n", 1, "SyntaxError"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        (OWN.replace('"accuracy")', '"acuracy")'), 4, "no metric 'acuracy' for single_label_classification"),
        (OWN.replace('"reviews"', '"cola"'), 4, "there is a task 'cola' already"),
        (OWN.replace('positive="fine"', 'positive="good"'), 4, "positive is 'good', which is none of its labels"),
        (OWN.replace("positive=", 'problem="regression", positive='), 4, "no metric 'f1' for regression"),
        (
            OWN.replace("positive=", 'kind="span", positive=').replace('("f1", "accuracy")', '("em",)'),
            4,
            "no metric 'em' for span",
        ),
        (OWN.replace("positive=", 'kind="tagging", positive=').replace('"f1",', '"f1_micro",'), 4, "'f1_micro' for tagging"),
        (OWN.replace("positive=", 'kind="choice", positive='), 4, "no metric 'f1' for choice: there are accuracy"),
        (OWN.replace("training=", "trainig="), 5, "unexpected keyword argument 'trainig'"),
    ],
)
def test_a_fault_is_told_with_file_and_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    before = [task.name for task in registry.all_tasks()]
    with pytest.raises(DataError, match=message) as caught:
        load_task_file(str(path))
    assert caught.value.where == f"{path}, line {line}"
    assert caught.value.exit_code == 3
    assert [task.name for task in registry.all_tasks()] == before


def test_a_file_that_is_not_there_or_registers_nothing(bertkit: Call, tmp_path: Path) -> None:
    assert bertkit("tasks", "--task-file", "none.py").code == 4
    (tmp_path / "empty.py").write_text("")
    told = bertkit("tasks", "--task-file", "empty.py")
    assert (told.code, "registers no task" in told.report["error"]["message"]) == (3, True)
    unknown = bertkit("eval", "reviews")
    assert (unknown.code, "--task-file" in unknown.report["error"]["hint"]) == (2, True)


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(own: Path) -> None:
    (first,) = load_task_file(str(own))
    assert load_task_file(str(own))[0] is first
    own.write_text(OWN.replace('name="reviews"', 'name="films"'))
    assert [task.name for task in load_task_file(str(own))] == ["films"]
    with pytest.raises(UsageError):
        task_named("reviews")
