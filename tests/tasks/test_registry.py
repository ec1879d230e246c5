"""The registry: names, kinds, and what listing the tasks may not load."""

import subprocess
import sys
from dataclasses import replace

import pytest

from bertkit.errors import UsageError
from bertkit.tasks import registry
from bertkit.tasks.defaults import learning_rate, listed_defaults, training_defaults
from bertkit.tasks.glue import GLUE
from bertkit.tasks.registry import all_tasks, kind_of, register, task_named


def test_the_built_in_tasks() -> None:
    assert [task.name for task in all_tasks()][:11] == [*(task.name for task in GLUE), "snli"]
    assert {"squad", "conll2003", "classification"} <= {task.name for task in all_tasks()}


@pytest.mark.parametrize(
    ("name", "near"), [("mnil", "mnli"), ("SQUAD2", "squad"), ("cola2003", "cola"), ("clasification", "classification")]
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"'{near}'") as caught:
        task_named(name)
    assert caught.value.exit_code == 2


def test_a_name_may_be_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    own = replace(task_named("cola"), name="own")
    assert register(own) is task_named("own")
    with pytest.raises(ValueError, match="already"):
        register(own)
    with pytest.raises(ValueError, match="none of"):
        register(replace(own, name="other", kind="guessing"))


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_every_declaration_holds_together(task: registry.Task) -> None:
    kind = kind_of(task)
    assert kind.name == task.kind
    settings = kind.settings(**task.settings)
    assert listed_defaults(task)["max_length"] == settings.max_length
    assert not list(task.faults())
    assert len(task.title) <= 64, "a line of `bertkit tasks` has 80 columns"
    names = [part.name for part in task.parts]
    assert len(set(names)) == len(names)
    assert {part.role for part in task.parts} == ({"test"} if task.served_by else {"train", "validation", "test"})
    assert task_named(task.trained_as).labels == task.labels
    assert set(task.official) <= set(names)
    assert task.positive is None or task.positive in task.labels
    if task.columns is not None and task.columns.names:
        assert task.columns.names == task.labels
    with pytest.raises(UsageError, match="has no part"):
        task.part("nothing")
    assert task.part(names[0]) is task.parts[0]


def test_listing_tasks_loads_no_slow_library() -> None:
    script = "import sys, bertkit.tasks.registry as r; r.all_tasks(); print({'torch', 'datasets', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"


def test_narrow_models_learn_faster() -> None:
    """google's grid for the small models is 3e-5 … 3e-4, the paper's for base and large 2e-5 … 5e-5."""
    for kind in ("classification", "tagging", "span"):
        rates = [learning_rate(width, kind) for width in (128, 256, 512, 768, 1024)]
        assert rates == sorted(rates, reverse=True)
        assert 1e-4 <= rates[1] <= rates[0] <= 3e-4
        assert 2e-5 <= rates[4] <= rates[3] <= 5e-5
    assert training_defaults(task_named("squad"), 768)["epochs"] == 2.0
    assert training_defaults(task_named("mnli"), 128) == {"learning_rate": 3e-4, "batch_size": 32, "epochs": 3.0, "warmup": 0.1}
