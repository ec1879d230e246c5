"""The data of the tasks of questions, tags and choices by their names alone, against a small hub: columns, names of classes and
hidden labels as the hub's own data sets have them, with a cold cache and offline.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hub_server
import pyarrow
import pyarrow.parquet
import pytest
import yaml

from bertkit.tasks.registry import all_tasks

pytestmark = pytest.mark.slow

ROWS = 12
Record = dict[str, Any]

LOAD = """
import json, sys
from bertkit.errors import BertkitError
from bertkit.tasks.data import load_parts
from bertkit.tasks.registry import task_named
def plain(row):
    if hasattr(row, "candidates"):
        return [row.context, row.question, row.candidates, row.label]
    if hasattr(row, "tags"):
        return [row.words, row.tags]
    return [row.id, row.question, row.context, [[answer.text, answer.start] for answer in row.answers], row.impossible]
for name in sys.argv[1:]:
    task, found = task_named(name), {}
    try:
        for role in (("train", "validation"), ("test",)):
            if role == ("train", "validation") or any(part.role == "test" for part in task.parts):
                found |= {part: [plain(row) for row in read.rows] for part, read in load_parts(task, role).items()}
    except BertkitError as error:
        found["error"] = [type(error).__name__, f"{error.message} {error.hint}"]
    print(json.dumps(found))
"""


@dataclass(frozen=True, kw_only=True)
class HubSet:
    """The data of one task, as the hub has it.

    Attributes:
        repo: Its repository.
        file: Its Parquet file of a split.
        splits: Those there are.
        record: The nth record of a split.
        features: What the metadata of the hub's Parquet files say of columns with classes.
        config: The configuration that its card names; None where there is no card (a branch that the hub converted).
    """

    repo: str
    file: str
    splits: tuple[str, ...]
    record: Callable[[str, int], Record]
    features: Record | None = None
    config: str | None = None


def question(split: str, number: int) -> Record:
    context = f"{split} – é 中 {number}."
    answers = {"text": [str(number)], "answer_start": [context.index(str(number))]}
    return {"id": f"{split}-{number}", "title": "t", "context": context, "question": "which?", "answers": answers}


def unanswered(split: str, number: int) -> Record:
    return question(split, number) | ({"answers": {"text": [], "answer_start": []}} if number % 2 else {})


def words(split: str, number: int) -> Record:
    return {"id": str(number), "tokens": ["北", split, "null", str(number)], "ner_tags": [2, 0, 1 + number % 2, 0]}


def scene(split: str, number: int) -> Record:
    endings = {f"ending{n}": f"{split} {number} {n}" for n in range(4)}
    return {
        "sent1": f"He – {number}.",
        "sent2": "They",
        "gold-source": "gold",
        **endings,
        "label": -1 if split == "test" else number % 4,
    }


TAGS = ["O", "B-PER", "B-LOC"]
ENTITIES = {"ner_tags": {"feature": {"names": TAGS, "_type": "ClassLabel"}, "_type": "List"}}
LABELS = {"label": {"names": ["0", "1", "2", "3"], "_type": "ClassLabel"}}
BOTH, ALL = ("train", "validation"), ("train", "validation", "test")
SETS = {
    "squad": HubSet(
        repo="rajpurkar/squad", file="plain_text/{}-00000-of-00001.parquet", splits=BOTH, record=question, config="plain_text"
    ),
    "squad_v2": HubSet(
        repo="rajpurkar/squad_v2", file="squad_v2/{}-00000-of-00001.parquet", splits=BOTH, record=unanswered, config="squad_v2"
    ),
    "drcd": HubSet(repo="clue/clue", file="drcd/{}-00000-of-00001.parquet", splits=ALL, record=question, config="drcd"),
    "cmrc2018": HubSet(repo="hfl/cmrc2018", file="data/{}-00000-of-00001.parquet", splits=ALL, record=question, config="default"),
    "conll2003": HubSet(repo="eriktks/conll2003", file="conll2003/{}/0000.parquet", splits=ALL, record=words, features=ENTITIES),
    "msra_ner": HubSet(
        repo="levow/msra_ner", file="msra_ner/{}/0000.parquet", splits=("train", "test"), record=words, features=ENTITIES
    ),
    "weibo_ner": HubSet(repo="hltcoe/weibo_ner", file="default/{}/0000.parquet", splits=ALL, record=words, features=ENTITIES),
    "swag": HubSet(
        repo="allenai/swag",
        file="regular/{}-00000-of-00001.parquet",
        splits=ALL,
        record=scene,
        features=LABELS,
        config="regular",
    ),
}


def write_sets(root: Path) -> Path:
    for made in SETS.values():
        folder = root / "datasets" / made.repo
        for split in made.splits:
            path = folder / made.file.format(split)
            path.parent.mkdir(parents=True, exist_ok=True)
            table = pyarrow.Table.from_pylist([made.record(split, number) for number in range(ROWS)])
            if made.features is not None:
                features = {name: {"dtype": "string", "_type": "Value"} for name in table.column_names} | made.features
                if "tokens" in features:
                    features["tokens"] = {"feature": features["tokens"], "_type": "List"}
                table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
            pyarrow.parquet.write_table(table, path)
        if made.config is not None:
            files = [{"split": split, "path": made.file.format(split)} for split in made.splits]
            card = {"configs": [{"config_name": made.config, "data_files": files}]}
            (folder / "README.md").write_text(f"---\n{yaml.safe_dump(card)}---\n", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each task's data came to, by the state of the cache; ``asked`` is what the hub was asked for."""
    home = tmp_path_factory.mktemp("home")
    found: dict[str, dict[str, Any]] = {}
    with hub_server.serving(write_sets(tmp_path_factory.mktemp("hub"))) as hub:
        for state, offline in (("cold", "0"), ("offline", "1")):
            before = len(hub.asked)
            environment = os.environ | {"HF_HOME": str(home), "HF_ENDPOINT": hub.endpoint, "HF_HUB_OFFLINE": offline}
            command = [sys.executable, "-c", LOAD, *SETS, "cluener"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
            assert done.returncode == 0, done.stderr
            found[state] = dict(zip([*SETS, "cluener"], map(json.loads, done.stdout.splitlines()), strict=True))
            found[state]["asked"] = hub.asked[before:]
    return found


def expected(task: str, split: str, number: int) -> list[Any]:
    record = SETS[task].record(split, number)
    if task == "swag":
        label = None if split == "test" else record["label"]
        return [record["sent1"], record["sent2"], [record[f"ending{n}"] for n in range(4)], label]
    if "tokens" in record:
        return [record["tokens"], [TAGS[tag] for tag in record["ner_tags"]]]
    answers = [list(pair) for pair in zip(record["answers"]["text"], record["answers"]["answer_start"], strict=True)]
    return [record["id"], record["question"], record["context"], answers, not answers]


@pytest.mark.parametrize("state", ["cold", "offline"])
@pytest.mark.parametrize("task", SETS)
def test_rows_of_a_task(loaded: dict[str, dict[str, Any]], task: str, state: str) -> None:
    found = loaded[state][task]
    if task == "msra_ner":  # it has no validation part: some of its training rows are held out
        held = found.pop("validation")
        assert held
        found = {**found, "train": sorted([*found["train"], *held])}
        assert found["train"] == sorted(expected(task, "train", number) for number in range(ROWS))
        assert found["test"] == [expected(task, "test", number) for number in range(ROWS)]
        return
    if task in ("squad", "squad_v2"):  # their test parts are nobody's but the server's
        assert "There is no test part" in found.pop("error")[1]
    assert found == {split: [expected(task, split, number) for number in range(ROWS)] for split in SETS[task].splits}


def test_offline_nothing_is_asked(loaded: dict[str, dict[str, Any]]) -> None:
    assert sum("GET" in request and ".parquet" in request for request in loaded["cold"]["asked"]) >= len(SETS)
    assert loaded["offline"]["asked"] == []


def test_a_set_that_the_hub_does_not_have_says_which_files_it_has(loaded: dict[str, dict[str, Any]]) -> None:
    kind, message = loaded["cold"]["cluener"]["error"]
    assert kind == "UsageError"
    assert all(word in message for word in ("train.json", "dev.json", "--data", "--train-file"))


def test_every_other_task_with_data_on_the_hub_is_among_them() -> None:
    assert set(SETS) == {task.name for task in all_tasks() if task.kind != "classification" and task.hub is not None}
