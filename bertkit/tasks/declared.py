"""The built-in tasks, listed explicitly: what a declaration says is in :mod:`bertkit.tasks.task`."""

from __future__ import annotations

from bertkit.tasks.clue import CLUE
from bertkit.tasks.glue import GLUE, SNLI
from bertkit.tasks.own import OWN
from bertkit.tasks.task import HubData, Part, Task

SQUAD = Task(
    name="squad",
    title="SQuAD 1.1 and 2.0: the span of a text that answers a question",
    kind="span",
    parts=(
        Part(name="train", files=("train-v1.1.json", "train-v2.0.json", "train-v1.1*.json", "train-v2.0*.json", "train.json")),
        Part(name="validation", files=("dev-v1.1.json", "dev-v2.0.json", "dev-v1.1*.json", "dev-v2.0*.json", "dev.json")),
        Part(name="test", files=("test.json",)),
    ),
    hub=HubData(id="rajpurkar/squad"),
    metrics=("f1", "exact"),
    problem="",
    training={"batch_size": 32, "epochs": 2.0},
    official={"validation": "predictions.json", "test": "predictions.json"},
)

CONLL2003 = Task(
    name="conll2003",
    title="CoNLL-2003: persons, places, organisations in English news",
    kind="tagging",
    parts=(
        Part(name="train", files=("train.txt", "eng.train")),
        Part(name="validation", files=("valid.txt", "dev.txt", "eng.testa")),
        Part(name="test", files=("test.txt", "eng.testb")),
    ),
    hub=HubData(id="eriktks/conll2003", config="conll2003", revision="refs/convert/parquet"),
    metrics=("f1", "precision", "recall", "f1_strict", "accuracy"),
    problem="",
    official={"validation": "predictions.txt", "test": "predictions.txt"},
)

TASKS = (*GLUE, SNLI, *CLUE, SQUAD, CONLL2003, *OWN)
