"""The built-in tasks, listed explicitly: what a declaration says is in :mod:`bertkit.tasks.task`."""

from __future__ import annotations

from bertkit.labelled.columns import Columns
from bertkit.tasks.glue import GLUE, SNLI
from bertkit.tasks.task import HubData, Part, Task

SQUAD = Task(
    name="squad",
    title="SQuAD 1.1 and 2.0: the span of the paragraph that answers the question",
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
    title="CoNLL-2003: names of persons, places, organisations and others in English news",
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

CLASSIFICATION = Task(
    name="classification",
    title="Your own texts or pairs with a label each (CSV, TSV, JSON lines, Parquet)",
    kind="classification",
    parts=(
        Part(name="train", files=("train.csv", "train.tsv", "train.jsonl", "train.parquet")),
        Part(
            name="validation",
            files=tuple(
                f"{name}.{kind}" for name in ("validation", "valid", "dev") for kind in ("csv", "tsv", "jsonl", "parquet")
            ),
        ),
        Part(name="test", files=("test.csv", "test.tsv", "test.jsonl", "test.parquet")),
    ),
    columns=Columns(text="text", label="label"),
    metrics=("accuracy", "f1", "f1_macro", "f1_micro", "matthews"),
)

TASKS = (*GLUE, SNLI, SQUAD, CONLL2003, CLASSIFICATION)
