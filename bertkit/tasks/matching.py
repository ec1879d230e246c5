"""Labels by name: a task's or a file's against a model's ``id2label``, without regard to case and never by chance of order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from bertkit.errors import ModelError
from bertkit.notices import say

_GENERIC = re.compile(r"label_\d+", re.IGNORECASE)


def is_generic(names: Sequence[str]) -> bool:
    """Are these ``LABEL_0``, ``LABEL_1``, …, which say nothing?"""
    return bool(names) and all(_GENERIC.fullmatch(name) for name in names)


def in_order(names: Sequence[str]) -> list[str]:
    """Distinct names of a file in a fixed order: numbers by value, everything else by code point."""
    distinct = set(names)
    if all(name.isascii() and name.isdigit() for name in distinct):
        return sorted(distinct, key=lambda name: (int(name), name))
    return sorted(distinct)


def twins(names: Sequence[str]) -> tuple[str, str] | None:
    """Two names that are one without regard to case, or None."""
    beside = pairwise(sorted(names, key=str.casefold))
    return next((pair for pair in beside if pair[0].casefold() == pair[1].casefold()), None)


def match_labels(names: Sequence[str], model: Sequence[str], *, for_training: bool, task: str) -> tuple[tuple[str, ...], bool]:
    """The names in the order of the model's outputs, and whether training needs a new head.

    Args:
        names: The task's labels, in its order and spelling.
        model: The model's, by output.
        for_training: A head that does not fit becomes a new one, which is said; otherwise it is an error.
        task: The task's name, for people.

    Raises:
        ModelError: Not for training, and the counts or the names differ; both lists are named. Or two outputs have one name
            (exit 3).
    """
    if not for_training and (twice := twins(model)):
        raise ModelError(
            f"Two of the model's outputs have one name: {twice[0]!r} and {twice[1]!r}.",
            where="id2label in config.json",
            hint="Give each output the name of its own class there, or train again with `bertkit finetune`.",
        )
    folded = {name.casefold(): name for name in names}
    if len(model) == len(names):
        if set(model) == set(names):
            return tuple(model), False
        if {name.casefold() for name in model} == set(folded):
            return tuple(folded[name.casefold()] for name in model), False
        if is_generic(model):
            order = ", ".join(f"{generic} = {name}" for generic, name in zip(model, names, strict=True))
            say("label-order", f"The model's labels have no names, so they are taken in the order of {task}: {order}.")
            return tuple(names), False
    if for_training:
        say(
            "new-head", f"The model's labels ({_few(model)}) are not those of {task} ({_few(names)}): training starts a new head."
        )
        return tuple(names), True
    counts = f"{len(model)} labels ({_few(model)})"
    raise ModelError(
        f"The model has {counts}, but {task} has {len(names)} ({_few(names)}).",
        where="id2label in config.json",
        hint="Use a model that was trained for these labels, or train one with `bertkit finetune`.",
    )


def _few(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … {len(names) - most} more" if len(names) > most else "")
