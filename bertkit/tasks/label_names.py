"""The labels of a run over texts: the task's own, the rows' or the model's, by name; and the one that binary F1 counts."""

from __future__ import annotations

from collections.abc import Sequence

from bertkit.errors import DataError
from bertkit.labelled.rows import TextRow
from bertkit.notices import say
from bertkit.tasks.labels import Labels
from bertkit.tasks.matching import in_order, is_generic, match_labels, twins
from bertkit.tasks.task import Task

_POSITIVE = ("1", "true", "yes", "positive", "pos", "acceptable", "entailment")


def labels_of(rows: Sequence[TextRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool) -> Labels:
    """The labels by output: the task's own or, where it declares none, those of the rows (training) or the model.

    Raises:
        DataError: A row has no label or one that is not known (exit 3), with its place.
        ModelError: Not for training, and the model's labels are others (exit 3).
    """
    if task.problem == "regression":
        return _one_output(model_labels, task, for_training)
    names: Sequence[str] = task.labels or _names_of(rows, model_labels, for_training)
    if for_training and len(names) < 2:
        said = repr(names[0]) if names else "none"
        raise DataError(f"There must be two labels at least; the training rows have {said}.", where=_where(rows))
    new_head = for_training and model_labels is None
    if model_labels is not None:
        names, new_head = match_labels(names, model_labels, for_training=for_training, task=task.name)
    return Labels(names=tuple(names), problem=task.problem, new_head=new_head, positive=_positive(task, names))


def _one_output(model_labels: Sequence[str] | None, task: Task, for_training: bool) -> Labels:
    name = model_labels[0] if model_labels and len(model_labels) == 1 else "score"
    new_head = for_training and (model_labels is None or len(model_labels) != 1)
    if model_labels is not None and len(model_labels) != 1:
        match_labels([name], model_labels, for_training=for_training, task=task.name)
    return Labels(names=(name,), problem="regression", new_head=new_head)


_MARKS = ";|,"  # what may part labels in a cell, and then stands in most of the names that were taken for one


def _names_of(rows: Sequence[TextRow], model_labels: Sequence[str] | None, for_training: bool) -> Sequence[str]:
    """Names where the task declares none: of the training rows; otherwise the model's, unless those say nothing."""
    if for_training or model_labels is None or (is_generic(model_labels) and any(row.label is not None for row in rows)):
        for row in rows if for_training else ():
            if row.label is None:
                raise DataError("A training row has no label.", where=str(row.place))
        given = dict.fromkeys(row.label for row in rows if row.label is not None)
        names = in_order([name for label in given for name in (label if isinstance(label, tuple) else (str(label),))])
        if twice := twins(names):
            raise DataError(
                f"The labels {twice[0]!r} and {twice[1]!r} differ in case alone.", where=_where(rows), hint="Spell them alike."
            )
        if names:
            count = "1 label" if len(names) == 1 else f"{len(names)} labels"
            say("labels", f"{count}, taken as names of classes: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}.")
        several = [label for label in given if isinstance(label, tuple)]
        mark = next((mark for mark in _MARKS if sum(mark in name for name in names) > 1), None)
        if several and mark and max(map(len, several)) == 1:
            say(
                "one-label-each",
                f"No row has two labels: are they parted by {mark!r}? --set 'data.label_separator={mark}' says so.",
            )
        return names
    return model_labels


def _positive(task: Task, names: Sequence[str]) -> str | None:
    """The label of binary F1: the task's or, of two labels of people's own, the one that says yes, else the second; said."""
    if task.positive is not None or task.labels or len(names) != 2 or task.problem != "single_label_classification":
        return task.positive
    chosen = next((name for name in names if name.casefold() in _POSITIVE), max(in_order(names), key=in_order(names).index))
    say("positive-label", f"f1 counts {chosen!r} as the positive label.")
    return chosen


def _where(rows: Sequence[TextRow]) -> str | None:
    return rows[0].place.file if rows else None
