"""The labels of a tagging run: gold tags as IOB2, their names in the head's order, matched against a model's by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertkit.errors import DataError, ModelError
from bertkit.labelled.rows import TaggedRow
from bertkit.labelled.tags import Scheme, iob2_names, recognise, split_tag, to_iob2
from bertkit.notices import say
from bertkit.tasks.kinds import Labels
from bertkit.tasks.matching import is_generic, match_labels
from bertkit.tasks.task import Task

PLAIN_FIGURES = ("accuracy", "f1_macro")


def scheme_of(rows: Sequence[TaggedRow]) -> Scheme:
    """The tagging scheme of a whole part, by all its gold tags."""
    return recognise(row.tags for row in rows if row.tags is not None)[0]


def gold_tags(rows: Sequence[TaggedRow]) -> list[list[str] | None]:
    """The rows' gold tags as IOB2 whatever the file's scheme; plain tags as they stand; None for a row without gold."""
    plain = scheme_of(rows) == "plain"
    return [None if row.tags is None else list(row.tags) if plain else to_iob2(row.tags) for row in rows]


def judged(task: Task, rows: Sequence[TaggedRow]) -> Task:
    """The task with the figures that its rows have: of tags that name no entities, which is said, accuracy and macro F1."""
    if scheme_of(rows) != "plain":
        return task
    say("plain-tags", "The tags name no entities: they are scored word by word, by accuracy and macro F1.")
    return replace(task, metrics=PLAIN_FIGURES)


def tag_labels(rows: Sequence[TaggedRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool) -> Labels:
    """``O`` and two IOB2 tags for each type in the rows (plain tags: as they stand), or the model's own where they serve.

    Raises:
        DataError: A gold tag that neither the task nor the model has (exit 3), with its row.
        ModelError: Not for training, and the model's labels have no names (exit 3).
    """
    golds = gold_tags(rows)
    wanted = task.labels or _names(golds, plain=scheme_of(rows) == "plain")
    if for_training:
        if not any(tags is not None for tags in golds):
            raise DataError("There are no tags to train on.", where=rows[0].place.file if rows else None)
        names, new_head = tuple(wanted), True
        if model_labels:
            names, new_head = match_labels(wanted, model_labels, for_training=True, task=task.name)
        _check(rows, golds, names)
        return Labels(names=names, problem="", new_head=new_head)
    if model_labels is None:  # predictions that were given are scored without a model
        return Labels(names=tuple(wanted), problem="")
    if is_generic(model_labels) and not task.labels:
        raise ModelError(
            "The model's labels have no names, so they cannot be tags.",
            where="id2label in config.json",
            hint=f"Fine-tune a model first: bertkit finetune {task.name}.",
        )
    names = tuple(model_labels)
    if task.labels:
        names, _ = match_labels(task.labels, model_labels, for_training=False, task=task.name)
    _check(rows, golds, names)
    return Labels(names=names, problem="")


def _names(golds: Sequence[Sequence[str] | None], *, plain: bool) -> tuple[str, ...]:
    distinct = {tag for tags in golds if tags is not None for tag in tags}
    if plain:
        return tuple(sorted(distinct))
    types = sorted({split_tag(tag)[1] for tag in distinct if tag != "O"})
    return ("O", *(name for kind in types for name in iob2_names(kind)))


def _check(rows: Sequence[TaggedRow], golds: Sequence[Sequence[str] | None], names: Sequence[str]) -> None:
    known = {name.casefold() for name in names}
    # An entity type is known by either of its tags: a head may lack I-LOC because its training had no long LOC.
    kinds = {split_tag(name)[1] for name in known} - {""}
    for row, tags in zip(rows, golds, strict=True):
        for word, tag in zip(row.words, tags or (), strict=False):
            folded = tag.casefold()
            if folded not in known and folded != "o" and split_tag(folded)[1] not in kinds:
                raise DataError(
                    f"The tag {tag!r} of the word {word!r} is none of the labels {_listed(names)}.",
                    where=str(row.place),
                    hint="Train on data that have it, or mend the tag.",
                )


def _listed(names: Sequence[str], show: int = 12) -> str:
    return ", ".join(names[:show]) + (f" and {len(names) - show} more" if len(names) > show else "")
