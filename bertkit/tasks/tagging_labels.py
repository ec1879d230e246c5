"""The labels of a tagging run: gold tags as IOB2, their names in the head's order, matched against a model's by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bertkit.errors import DataError, ModelError
from bertkit.labelled.rows import Place, TaggedRow
from bertkit.labelled.tags import Scheme, iob2_names, recognise, split_tag, to_iob2
from bertkit.notices import say
from bertkit.tasks.labels import Labels
from bertkit.tasks.matching import is_generic, match_labels
from bertkit.tasks.task import Task

PLAIN_FIGURES = ("accuracy", "f1_macro")


def scheme_of(rows: Sequence[TaggedRow]) -> Scheme:
    """The tagging scheme of a whole part: what its reader found, else by all gold tags at hand."""
    told = rows[0].scheme if rows else None
    return told or recognise(row.tags for row in rows if row.tags is not None)[0]


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


def tag_labels(
    rows: Sequence[TaggedRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool, scored: bool = True
) -> Labels:
    """``O`` and two IOB2 tags for each type in the rows (plain tags: as they stand), or the model's own where they serve.

    A model's names are spelled as the rows spell them: scorers tell ``B-PER`` from ``b-per``.

    Raises:
        DataError: In training there are not two tags (exit 3). Not for training but ``scored``, and the model lacks a tag, with
            the row of the first; but for the types of a published task's entities.
        ModelError: Not for training, and the model's labels have no names (exit 3).
    """
    scheme, found = _distinct(rows)
    plain = scheme == "plain"
    wanted = task.labels or _names(found, plain=plain)
    if for_training:
        if not found:
            raise DataError("There are no tags to train on.", where=rows[0].place.file if rows else None)
        if len(wanted) < 2:
            raise DataError(
                f"There must be two tags at least; the training rows have {wanted[0]!r} alone.", where=rows[0].place.file or None
            )
        names, new_head = tuple(wanted), True
        if model_labels:
            names, new_head = match_labels(wanted, model_labels, for_training=True, task=task.name)
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
    names = _respelled(names, wanted, plain=plain)
    if plain or recognise([names])[0] == "plain":
        known = set(names) | (set() if plain else {"O"})
        strange = [tag for tag in found if tag not in known]
    else:
        known = types_of(names)
        strange = [] if task.published else [tag for tag in found if not types_of([tag]) <= known]
    if strange and scored:
        raise unknown_tag(strange[0], *found[strange[0]], names)
    return Labels(names=names, problem="")


_Found = Mapping[str, tuple[str, Place]]
"""Each tag as the file spells it, with the first word that has it, and that word's sentence."""


def _distinct(rows: Iterable[TaggedRow]) -> tuple[Scheme, _Found]:
    """The scheme and the tags of rows that are read once, and may be more than memory holds."""
    found: dict[str, tuple[str, Place]] = {}

    def tags() -> Iterator[Sequence[str]]:
        for row in rows:
            if row.tags is None:
                continue
            for word, tag in zip(row.words, row.tags, strict=True):
                if tag not in found:
                    found[tag] = word, row.place
            yield row.tags

    return recognise(tags())[0], found


def _names(found: Iterable[str], *, plain: bool) -> tuple[str, ...]:
    if plain:
        return tuple(sorted(found))
    return ("O", *(name for kind in sorted(types_of(found)) for name in iob2_names(kind)))


def _respelled(names: Sequence[str], wanted: Sequence[str], *, plain: bool) -> tuple[str, ...]:
    """A model's names as the rows spell them; but ``b-x`` of rows where it names no entity is not the model's ``B-X``."""
    if plain and recognise([names])[0] != "plain":
        return tuple(names)
    spelled = {name.casefold(): name for name in wanted if name not in names}
    return tuple(spelled.get(name.casefold(), name) for name in names)


def types_of(tags: Iterable[str]) -> set[str]:
    """The entity types that tags of any scheme name. A head has a type that it has either tag of: others may lack ``I-LOC``."""
    return {kind for prefix, kind in map(split_tag, tags) if prefix != "O"}


def unknown_tag(tag: str, word: str, place: Place, names: Sequence[str]) -> DataError:
    """The error of a tag that is none of the labels."""
    return DataError(
        f"The tag {tag!r} of the word {word!r} is none of the labels {_listed(names)}.",
        where=str(place),
        hint="Train on data that have it, or mend the tag.",
    )


def _listed(names: Sequence[str], show: int = 12) -> str:
    return ", ".join(names[:show]) + (f" and {len(names) - show} more" if len(names) > show else "")
