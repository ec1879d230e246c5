"""GLUE's tasks and SNLI, as declarations: what a declaration says is in :mod:`bertkit.tasks.task`.

Columns, labels and file names are those of the published archives (Wang et al. 2018), hub columns those of ``nyu-mll/glue``;
the primary figure is the one that Devlin et al. 2019 report, but for STS-B Pearson's, which the benchmark names first.
"""

from __future__ import annotations

from bertkit.labelled.columns import Columns
from bertkit.tasks.task import HubData, Part, Task

_HUB = "nyu-mll/glue"
_TRAIN, _DEV, _TEST = (
    Part(name=name, files=(f"{file}.tsv",)) for name, file in (("train", "train"), ("validation", "dev"), ("test", "test"))
)
_PARTS = (_TRAIN, _DEV, _TEST)
_NLI = ("entailment", "neutral", "contradiction")
_ENTAILED = ("entailment", "not_entailment")
_BINARY = ("accuracy", "f1", "f1_macro", "matthews")


def _hub(config: str, text: str, pair: str | None = None) -> HubData:
    return HubData(id=_HUB, config=config, columns=Columns(text=text, pair=pair, id="idx"))


COLA = Task(
    name="cola",
    title="CoLA: is the English sentence grammatical? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=_hub("cola", "sentence"),
    # train.tsv and dev.tsv: source, label, the author's mark, sentence, without a header; test.tsv: index, sentence.
    columns=Columns(
        text="sentence",
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
    parts=_PARTS,
    hub=_hub("sst2", "sentence"),
    columns=Columns(text="sentence", id="index", names=("negative", "positive"), plain=True),
    labels=("negative", "positive"),
    positive="positive",
    metrics=_BINARY,
    official={"test": "SST-2.tsv"},
)

MRPC = Task(
    name="mrpc",
    title="MRPC: do two sentences of the news say the same? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=_hub("mrpc", "sentence1", "sentence2"),
    columns=Columns(
        text="#1 String", pair="#2 String", label="Quality", id="index", names=("not_equivalent", "equivalent"), plain=True
    ),
    labels=("not_equivalent", "equivalent"),
    positive="equivalent",
    metrics=("f1", "accuracy", "f1_macro", "matthews"),
    official={"test": "MRPC.tsv"},
)

QQP = Task(
    name="qqp",
    title="QQP: do two questions of Quora's ask the same? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=_hub("qqp", "question1", "question2"),
    columns=Columns(
        text="question1", pair="question2", label="is_duplicate", id="id", names=("not_duplicate", "duplicate"), plain=True
    ),
    labels=("not_duplicate", "duplicate"),
    positive="duplicate",
    metrics=("f1", "accuracy", "f1_macro", "matthews"),
    official={"test": "QQP.tsv"},
)

STSB = Task(
    name="stsb",
    title="STS-B: how alike are two sentences, from 0 to 5? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=HubData(
        id=_HUB,
        config="stsb",
        columns=Columns(text="sentence1", pair="sentence2", id="idx", kind="number", no_label=("-1.0",)),  # of its test part
    ),
    columns=Columns(text="sentence1", pair="sentence2", label="score", id="index", kind="number", plain=True),
    problem="regression",
    bounds=(0.0, 5.0),
    metrics=("pearson", "spearman"),
    official={"test": "STS-B.tsv"},
)

MNLI = Task(
    name="mnli",
    title="MNLI: entailment, contradiction or neither? two dev parts (GLUE)",
    kind="classification",
    parts=(
        _TRAIN,
        Part(name="validation_matched", files=("dev_matched.tsv",)),
        Part(name="validation_mismatched", files=("dev_mismatched.tsv",)),
        Part(name="test_matched", files=("test_matched.tsv",)),
        Part(name="test_mismatched", files=("test_mismatched.tsv",)),
    ),
    hub=_hub("mnli", "premise", "hypothesis"),
    columns=Columns(text="sentence1", pair="sentence2", label="gold_label", id="index", plain=True),
    labels=_NLI,
    metrics=("accuracy", "f1_macro"),
    official={"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
)

QNLI = Task(
    name="qnli",
    title="QNLI: does the sentence answer the question? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=_hub("qnli", "question", "sentence"),
    columns=Columns(text="question", pair="sentence", id="index", plain=True),
    labels=_ENTAILED,
    positive="entailment",
    metrics=_BINARY,
    official={"test": "QNLI.tsv"},
)

RTE = Task(
    name="rte",
    title="RTE: does the first text entail the second? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=_hub("rte", "sentence1", "sentence2"),
    columns=Columns(text="sentence1", pair="sentence2", id="index", plain=True),
    labels=_ENTAILED,
    positive="entailment",
    metrics=_BINARY,
    official={"test": "RTE.tsv"},
)

WNLI = Task(
    name="wnli",
    title="WNLI: is the pronoun read right? (GLUE)",
    kind="classification",
    parts=_PARTS,
    hub=_hub("wnli", "sentence1", "sentence2"),
    columns=Columns(text="sentence1", pair="sentence2", id="index", names=("not_entailment", "entailment"), plain=True),
    labels=("not_entailment", "entailment"),
    positive="entailment",
    metrics=_BINARY,
    official={"test": "WNLI.tsv"},
)

AX = Task(
    name="ax",
    title="AX: diagnostic pairs, which a model of mnli answers (GLUE)",
    kind="classification",
    parts=(Part(name="test", files=("diagnostic.tsv",)),),
    hub=_hub("ax", "premise", "hypothesis"),
    columns=Columns(text="sentence1", pair="sentence2", id="index", plain=True),
    labels=_NLI,
    metrics=("matthews", "accuracy", "f1_macro"),
    official={"test": "AX.tsv"},
    served_by="mnli",
)

SNLI = Task(
    name="snli",
    title="SNLI: entailment, contradiction or neither? on captions",
    kind="classification",
    parts=tuple(
        Part(name=name, files=(f"{file}.tsv", f"snli_1.0_{file}.jsonl", f"snli_1.0_{file}.txt"))
        for name, file in (("train", "train"), ("validation", "dev"), ("test", "test"))
    ),
    # "-" (-1 on the hub) stands where the annotators did not agree.
    hub=HubData(id="stanfordnlp/snli", columns=Columns(text="premise", pair="hypothesis", no_label=("-", "-1"))),
    columns=Columns(text="sentence1", pair="sentence2", label="gold_label", id="pairID", plain=True, no_label=("-", "-1")),
    labels=_NLI,
    metrics=("accuracy", "f1_macro"),
)

GLUE = (COLA, SST2, MRPC, QQP, STSB, MNLI, QNLI, RTE, WNLI, AX)
