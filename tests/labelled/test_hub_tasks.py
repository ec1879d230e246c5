"""The data of every classification task by its name alone, against a small hub: columns, names of classes and hidden labels as
the hub's own data sets have them, with a cold cache, with a warm one, and offline.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import hub_server
import pytest
from hub_sets import SETS, label_of, text_of, write_sets

from bertkit.tasks.registry import all_tasks

pytestmark = pytest.mark.slow

LOAD = """
import json, sys
from bertkit.notices import collecting
from bertkit.tasks.data import load_parts
from bertkit.tasks.registry import task_named
for name in sys.argv[1:]:
    task = task_named(name)
    with collecting() as said:
        parts = load_parts(task, tuple({part.role: None for part in task.parts}))
    rows = {part: [[row.id, row.text, row.pair, row.label] for row in found.rows] for part, found in parts.items()}
    print(json.dumps({"rows": rows, "said": sorted({notice.kind for notice in said})}))
"""
NAMED = {"tnews": ("news_story", "news_culture", "news_entertainment"), "chnsenticorp": ("negative", "positive")}
"""Names that the hub's columns do not have."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each task's data came to, by the state of the cache; ``asked`` are the files that the hub was asked for."""
    home = tmp_path_factory.mktemp("home")
    found: dict[str, dict[str, Any]] = {}

    def load(state: str, offline: str, hub: hub_server.Hub) -> None:
        before = len(hub.asked)
        environment = os.environ | {"HF_HOME": str(home), "HF_ENDPOINT": hub.endpoint, "HF_HUB_OFFLINE": offline}
        command = [sys.executable, "-c", LOAD, *SETS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        found[state] = dict(zip(SETS, map(json.loads, done.stdout.splitlines()), strict=True))
        found[state]["asked"] = hub.asked[before:]

    with hub_server.serving(write_sets(tmp_path_factory.mktemp("hub"))) as hub:
        load("cold", "0", hub)
        load("warm", "0", hub)
        load("offline", "1", hub)
    return found


def expected(task: str) -> dict[str, list[list[Any]]]:
    made = SETS[task]
    names = NAMED.get(task, made.names)
    texts = made.texts[::-1] if task == "csl" else made.texts  # keywords first, as CLUE's own baseline has it

    def row(split: str, number: int) -> list[Any]:
        label: Any = label_of(task, split, number)
        cells = [text_of(task, split, column, number) for column in texts]
        first, second, *_ = [" ".join(cell) if isinstance(cell, list) else cell for cell in cells] + [None]
        named = None if label < 0 else label if task == "stsb" else names[label]
        return [str(10 * number if "idx" in made.ids else number), first, second, named]

    kept = 3 if task == "snli" else made.rows  # the fourth of SNLI's has no label
    return {split: [row(split, number) for number in range(kept)] for split in made.splits}


@pytest.mark.parametrize("task", SETS)
def test_rows_of_a_task(loaded: dict[str, dict[str, Any]], task: str) -> None:
    for state in ("cold", "warm", "offline"):
        assert loaded[state][task]["rows"] == expected(task), state
        assert loaded[state][task]["said"] == (["skipped-rows"] if task == "snli" else [])


def test_a_file_is_fetched_once(loaded: dict[str, dict[str, Any]]) -> None:
    assert sum(request.startswith("GET") and ".parquet" in request for request in loaded["cold"]["asked"]) >= len(SETS)
    assert not [request for request in loaded["warm"]["asked"] if request.startswith("GET") and ".parquet" in request]
    assert loaded["offline"]["asked"] == []


def test_every_task_of_labels_is_among_them() -> None:
    assert set(SETS) == {task.name for task in all_tasks() if task.kind == "classification" and task.hub is not None}
