"""Hub data against a small hub on the loopback address; each try in a process of its own, since the libraries read the
environment once. What must hold: the same rows online, from the cache alone, and without either an answer at once: whoever
waits is counted, not timed, as a busy machine takes its time for the imports alone.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hub_server
import pytest

pytestmark = pytest.mark.slow

README = """---
configs:
- config_name: cola
  data_files:
  - split: train
    path: cola/train-*
  - split: validation
    path: cola/validation-*
---
"""
COLA = {"train": [("Fine – é.", 1), ("Bad the.", 0)], "validation": [("[SEP]", -1)]}
NER = {"train": [["Ann", "null"], [1, 0]], "validation": [["x"], [0]], "test": [["y"], [2]]}

BUILD = """
import json, sys, datasets
from pathlib import Path
from datasets import ClassLabel, Dataset, Features, List, Value
datasets.disable_progress_bars()
root, cola, ner = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
for split, rows in cola.items():
    path = root / "datasets/nyu-mll/glue/cola" / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"sentence": [t for t, _ in rows], "label": [l for _, l in rows], "idx": list(range(len(rows)))}
    names = ClassLabel(names=["unacceptable", "acceptable"])
    features = Features({"sentence": Value("string"), "label": names, "idx": Value("int32")})
    Dataset.from_dict(columns, features=features).to_parquet(path)
for split, (tokens, tags) in ner.items():
    path = root / "datasets/eriktks/conll2003/conll2003" / split / "0000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    names = List(ClassLabel(names=["O", "B-PER", "B-LOC"]))
    features = Features({"id": Value("string"), "tokens": List(Value("string")), "ner_tags": names})
    Dataset.from_dict({"id": ["0"], "tokens": [tokens], "ner_tags": [tags]}, features=features).to_parquet(path)
"""
LOAD = """
import json, sys, time
waited = []
time.sleep = waited.append
from bertkit.errors import BertkitError
from bertkit.tasks.data import load_parts
from bertkit.tasks.registry import task_named
for name, folder in json.loads(sys.argv[1]):
    try:
        parts = load_parts(task_named(name), ("train", "validation"), folder=folder)
        rows = {part: [[r.text, r.label] if name == "cola" else [r.words, r.tags] for r in p.rows] for part, p in parts.items()}
        print(json.dumps(rows))
    except BertkitError as error:
        print(json.dumps([type(error).__name__, error.message, error.where, error.hint]))
print(json.dumps(sum(waited)))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    subprocess.run([sys.executable, "-c", BUILD, str(folder), json.dumps(COLA), json.dumps(NER)], check=True, timeout=120)
    (folder / "datasets/nyu-mll/glue/README.md").write_text(README, encoding="utf-8")
    return folder


def load(wanted: list[tuple[str, str | None]], home: Path, **environment: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(wanted)],
        env={**os.environ, "HF_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=180,
    )
    assert "\r" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


EXPECTED_COLA = {"train": [["Fine – é.", "acceptable"], ["Bad the.", "unacceptable"]], "validation": [["[SEP]", None]]}
EXPECTED_NER = {"train": [[["Ann", "null"], ["B-PER", "O"]]], "validation": [[["x"], ["O"]]]}


def test_rows_online_then_from_the_cache_alone(root: Path, tmp_path: Path) -> None:
    wanted: list[tuple[str, str | None]] = [("cola", None), ("conll2003", None), ("cola", "nobody/nothing")]
    with hub_server.serving(root) as hub:
        cola, ner, nothing, _ = load(wanted, tmp_path, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
        assert (cola, ner) == (EXPECTED_COLA, EXPECTED_NER)
        assert nothing[0] == "MissingError"
        assert "no data set 'nobody/nothing' on the hub" in nothing[1]
        assert any("conll2003/train/0000.parquet" in request for request in hub.asked)
        endpoint = hub.endpoint
        asked = len(hub.asked)
        offline = load(wanted[:2], tmp_path, HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="1")
        assert offline[:2] == [EXPECTED_COLA, EXPECTED_NER]
        assert len(hub.asked) == asked
    assert load(wanted[:2], tmp_path, HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="0")[:2] == [EXPECTED_COLA, EXPECTED_NER]


@pytest.mark.parametrize("environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_without_network_and_cache_the_answer_comes_without_waiting(tmp_path: Path, environment: dict[str, str]) -> None:
    cola, ner, waited = load([("cola", None), ("conll2003", None)], tmp_path, **environment)
    for (kind, message, _, hint), files in ((cola, "train.tsv, dev.tsv"), (ner, "train.txt, valid.txt")):
        assert kind == "MissingError"
        assert "cannot be fetched" in message
        assert all(word in hint for word in (files, "--data", "--train-file", "HF_ENDPOINT", "HF_HUB_OFFLINE"))
    assert waited == 0  # left to themselves the libraries wait for 23 s between their tries
