"""What is said of a text: a head's outputs, a row's gold and the words of a prediction file, all in the form of a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertkit.errors import DataError
from bertkit.labelled.rows import TextRow
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.task import Task


def prediction_of(row: TextRow, value: np.ndarray | None, labels: Labels) -> Prediction:
    """What ``[K]`` logits say of a row: the likeliest name, the names above a half, or the number itself.

    Raises:
        DataError: They are not there, or not all numbers (exit 3), with the row.
    """
    if value is None or not np.isfinite(value).all():
        raise DataError("The model's output for this row is not a number.", where=str(row.place) or f"row {row.id}")
    if labels.problem == "regression":
        return Prediction(id=row.id, value=float(value[0]), gold=gold_of(row, labels))
    if labels.problem == "multi_label_classification":
        shares = 1 / (1 + np.exp(-value))
        chosen = [name for name, share in zip(labels.names, shares, strict=True) if share > 0.5]
        return Prediction(id=row.id, value=chosen, gold=gold_of(row, labels), more={"probabilities": _by_name(labels, shares)})
    shares = np.exp(value - value.max())
    shares /= shares.sum()
    best = int(value.argmax())
    return Prediction(
        id=row.id,
        value=labels.names[best],
        score=float(shares[best]),
        gold=gold_of(row, labels),
        more={"probabilities": _by_name(labels, shares)},
    )


def gold_of(row: TextRow, labels: Labels) -> Any:
    """The row's gold in the form of a prediction: a number, a name or names in the head's spelling; None where it has none."""
    if row.label is None or labels.problem == "regression":
        return row.label
    spelled = _spelled(row, labels)
    return [name for name in labels.names if name in spelled] if labels.problem == "multi_label_classification" else spelled[0]


def answer_of(text: str, labels: Labels, task: Task, where: str) -> Any:
    """A prediction as it is spelled in a file: a name, or the number of a class in the task's order.

    Raises:
        DataError: It is neither (exit 3).
    """
    if labels.problem == "regression":
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not np.isfinite(number):
            raise DataError(f"The prediction {text!r} is no number.", where=where)
        return number
    names = [part for part in text.split(",") if part] if labels.problem == "multi_label_classification" else [text]
    found = []
    aliases = task.columns.aliases if task.columns else {}
    for name in (aliases.get(name, name) for name in names):
        known = labels.number(name)
        if known is not None:
            found.append(labels.names[known])
        elif name.isdecimal() and name.isascii() and int(name) < len(task.labels):
            found.append(task.labels[int(name)])
        else:
            raise DataError(f"The prediction {name!r} is none of {', '.join(labels.names[:20])}.", where=where)
    return found if labels.problem == "multi_label_classification" else found[0]


def _spelled(row: TextRow, labels: Labels) -> list[str]:
    """The row's labels in the head's spelling; one that it does not have stays as it is."""
    given = row.label if isinstance(row.label, tuple) else (str(row.label),)
    return [name if (number := labels.number(name)) is None else labels.names[number] for name in given]


def _by_name(labels: Labels, shares: np.ndarray) -> dict[str, float]:
    return {name: float(share) for name, share in zip(labels.names, shares, strict=True)}
