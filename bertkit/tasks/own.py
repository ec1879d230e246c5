"""Tasks over people's own tables, as declarations: a label a text, a number, several labels, or candidates."""

from __future__ import annotations

from bertkit.labelled.columns import Columns
from bertkit.tasks.task import Task

CLASSIFICATION = Task(
    name="classification",
    title="Your own texts or pairs with a label each",
    columns=Columns(),
    metrics=("accuracy", "f1", "f1_macro", "f1_micro", "matthews"),
)

REGRESSION = Task(
    name="regression",
    title="Your own texts or pairs with a number each",
    columns=Columns(kind="number"),
    problem="regression",
    metrics=("pearson", "spearman"),
)

MULTILABEL = Task(
    name="multilabel",
    title="Your own texts or pairs with any number of labels each",
    columns=Columns(kind="several"),
    problem="multi_label_classification",
    metrics=("f1_micro", "f1_macro", "accuracy"),
)

CHOICE = Task(
    name="choice",
    title="Your own contexts with candidates, one of which is right",
    kind="choice",
    columns=Columns(text="context"),
    metrics=("accuracy",),
    problem="",
)

OWN = (CLASSIFICATION, REGRESSION, MULTILABEL, CHOICE)
