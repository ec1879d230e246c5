"""The built-in tasks, listed explicitly: what a declaration says is in :mod:`bertkit.tasks.task`.

GLUE's columns, labels and file names are those of the published archives; hub columns those of ``nyu-mll/glue``.
"""

from __future__ import annotations

from bertkit.labelled.columns import Columns
from bertkit.tasks.task import HubData, Part, Task

_TRAIN, _DEV, _TEST = Part(name="train", files=("train.tsv",)), Part(name="validation", files=("dev.tsv",)), ("test.tsv",)

COLA = Task(
    name="cola",
    title="CoLA: is the English sentence grammatical? (GLUE)",
    kind="classification",
    parts=(_TRAIN, _DEV, Part(name="test", files=_TEST)),
    hub=HubData(id="nyu-mll/glue", config="cola", columns=Columns(text="sentence", label="label", id="idx")),
    # train.tsv and dev.tsv: source, label, the author's mark, sentence, without a header; test.tsv: index, sentence.
    columns=Columns(
        text="sentence",
        label="label",
        id="index",
        names=("unacceptable", "acceptable"),
        positions={"label": 1, "text": 3},
        width=4,
        plain=True,
    ),
    labels=("unacceptable", "acceptable"),
    positive="acceptable",
    metrics=("matthews", "accuracy", "f1", "f1_macro"),
    official={"test": "CoLA.tsv"},
)

SST2 = Task(
    name="sst2",
    title="SST-2: is the sentence of a film review positive? (GLUE)",
    kind="classification",
    parts=(_TRAIN, _DEV, Part(name="test", files=_TEST)),
    hub=HubData(id="nyu-mll/glue", config="sst2", columns=Columns(text="sentence", label="label", id="idx")),
    columns=Columns(text="sentence", label="label", id="index", names=("negative", "positive"), plain=True),
    labels=("negative", "positive"),
    positive="positive",
    metrics=("accuracy", "f1", "f1_macro", "matthews"),
    official={"test": "SST-2.tsv"},
)

MNLI = Task(
    name="mnli",
    title="MNLI: does the premise entail or contradict the hypothesis? matched and mismatched apart (GLUE)",
    kind="classification",
    parts=(
        _TRAIN,
        Part(name="validation_matched", files=("dev_matched.tsv",)),
        Part(name="validation_mismatched", files=("dev_mismatched.tsv",)),
        Part(name="test_matched", files=("test_matched.tsv",)),
        Part(name="test_mismatched", files=("test_mismatched.tsv",)),
    ),
    hub=HubData(id="nyu-mll/glue", config="mnli", columns=Columns(text="premise", pair="hypothesis", label="label", id="idx")),
    columns=Columns(text="sentence1", pair="sentence2", label="gold_label", id="index", plain=True),
    labels=("entailment", "neutral", "contradiction"),
    metrics=("accuracy", "f1_macro"),
    official={"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
)

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

TASKS = (COLA, SST2, MNLI, SQUAD, CONLL2003, CLASSIFICATION)
