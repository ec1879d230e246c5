"""Tasks of questions on texts, as declarations: SQuAD and the Chinese sets in its form.

File names are those under which each was published; the Chinese ones are scored by CMRC 2018's own arithmetic.
"""

from __future__ import annotations

from bertkit.labelled.questions import QUESTIONS as COLUMNS
from bertkit.tasks.task import HubData, Part, Task

_TRAINING = {"batch_size": 32, "epochs": 2.0}
# A token is a character: of the first 1 000 questions of CMRC 2018's dev, 30 tokens put 57 answers out of reach, 50 put 16.
_CHINESE = {"max_answer_length": 50}
_OFFICIAL = {"validation": "predictions.json", "test": "predictions.json"}


def _parts(train: tuple[str, ...], validation: tuple[str, ...], test: tuple[str, ...]) -> tuple[Part, ...]:
    return (Part(name="train", files=train), Part(name="validation", files=validation), Part(name="test", files=test))


SQUAD = Task(
    name="squad",
    title="SQuAD 1.1 and 2.0: the span of a text that answers a question",
    kind="span",
    parts=_parts(
        ("train-v1.1.json", "train-v2.0.json", "train-v1.1*.json", "train-v2.0*.json", "train.json"),
        ("dev-v1.1.json", "dev-v2.0.json", "dev-v1.1*.json", "dev-v2.0*.json", "dev.json"),
        ("test.json",),
    ),
    hub=HubData(id="rajpurkar/squad"),
    metrics=("f1", "exact"),
    problem="",
    training=_TRAINING,
    official=_OFFICIAL,
)

SQUAD_V2 = Task(
    name="squad_v2",
    title="SQuAD 2.0: the same, and half of the questions have no answer",
    kind="span",
    parts=_parts(
        ("train-v2.0.json", "train-v2.0*.json", "train.json"), ("dev-v2.0.json", "dev-v2.0*.json", "dev.json"), ("test.json",)
    ),
    hub=HubData(id="rajpurkar/squad_v2"),
    metrics=("f1", "exact"),
    problem="",
    settings={"null_answers": True},
    training=_TRAINING,
    official=_OFFICIAL,
)

DRCD = Task(
    name="drcd",
    title="DRCD: the same in traditional Chinese",
    kind="span_chinese",
    parts=_parts(
        ("DRCD_training.json", "DRCD_train.json", "train.json"), ("DRCD_dev.json", "dev.json"), ("DRCD_test.json", "test.json")
    ),
    hub=HubData(id="clue/clue", config="drcd"),
    metrics=("f1", "exact", "squad_f1", "squad_exact"),
    problem="",
    settings=_CHINESE,
    training=_TRAINING,
    official=_OFFICIAL,
)

CMRC2018 = Task(
    name="cmrc2018",
    title="CMRC 2018: the same in simplified Chinese",
    kind="span_chinese",
    parts=_parts(
        ("cmrc2018_train.json", "train.json", "cmrc2018_trial.json"),
        ("cmrc2018_dev.json", "dev.json"),
        ("cmrc2018_test.json", "test.json"),
    ),
    hub=HubData(id="hfl/cmrc2018"),
    metrics=("f1", "exact", "squad_f1", "squad_exact"),
    problem="",
    settings=_CHINESE,
    training=_TRAINING,
    official=_OFFICIAL,
)

SPAN = Task(
    name="span",
    title="Your own questions on texts, answered by a span of them",
    kind="span",
    columns=COLUMNS,
    metrics=("f1", "exact"),
    problem="",
    training=_TRAINING,
    official=_OFFICIAL,
)

QUESTIONS = (SQUAD, SQUAD_V2, DRCD, CMRC2018)
