"""The built-in tasks, listed explicitly: what a declaration says is in :mod:`bertkit.tasks.task`."""

from __future__ import annotations

from bertkit.labelled.columns import Columns
from bertkit.tasks.clue import CLUE
from bertkit.tasks.glue import GLUE, SNLI
from bertkit.tasks.own import OWN
from bertkit.tasks.questions import QUESTIONS, SPAN
from bertkit.tasks.tags import TAGS
from bertkit.tasks.task import HubData, Part, Task

SWAG = Task(
    name="swag",
    title="SWAG: which of four endings goes on with a scene",
    kind="choice",
    parts=(
        Part(name="train", files=("train.csv", "*-train.csv", "train.parquet")),
        Part(name="validation", files=("val.csv", "validation.csv", "dev.csv", "*-val.csv", "validation.parquet")),
        Part(name="test", files=("test.csv", "*-test.csv", "test.parquet")),
    ),
    hub=HubData(id="allenai/swag", config="regular"),
    columns=Columns(
        text="sent1",
        pair="sent2",
        candidates=("ending0", "ending1", "ending2", "ending3"),
        label_form="number",
        no_label=("-1",),
    ),
    metrics=("accuracy",),
    problem="",
    training={"batch_size": 16},
)

TASKS = (*GLUE, SNLI, *CLUE, *QUESTIONS, *TAGS, SWAG, *OWN, SPAN)
