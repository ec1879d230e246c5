"""What a model scores that gives every row the same answer: whoever scores no more than that has learned nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bertkit.notices import hushed
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.task import Task


def constant_score(kind: Kind, rows: Sequence[Any], task: Task, labels: Labels) -> float:
    """The best primary figure of one answer for all rows: the most frequent gold, or the label that F1 counts.

    Where such answers have no figure (a correlation), or none but 0 (entities), it is 0.
    """
    golds = kind.golds(rows, labels)
    plain = kind.head == "tagging" and task.primary == "accuracy"
    if labels.problem == "regression" or not (plain or kind.head in ("classification", "span", "choice")):
        return 0.0
    if plain:
        frequent = Counter(tag for tags in golds for tag in tags or ()).most_common(1)[0][0]
        said = [
            Prediction(id=row.id, value=[frequent] * len(row.words), gold=gold) for row, gold in zip(rows, golds, strict=True)
        ]
        return kind.score(said, rows, task, labels).best or 0.0
    if kind.head == "span":
        answers: list[Any] = [""]
    else:
        frequent = Counter(_hashable(gold) for gold in golds).most_common(1)[0][0]
        answers = [list(frequent) if isinstance(frequent, tuple) else frequent]
        answers += [labels.positive] if labels.positive is not None else []
    best = 0.0
    for answer in answers:
        said = [Prediction(id=row.id, value=answer, gold=gold) for row, gold in zip(rows, golds, strict=True)]
        with hushed("undefined-score"):
            best = max(best, kind.score(said, rows, task, labels).best or 0.0)
    return best


def _hashable(gold: Any) -> Any:
    return tuple(gold) if isinstance(gold, list) else gold
