"""What a label counts in the loss, so that rare ones are not drowned: by the training rows, or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from bertkit.errors import SettingsError, nearest
from bertkit.tasks.labels import Labels
from bertkit.tasks.text_examples import TextExample

ClassWeights = Literal["balanced"] | dict[str, float]


def weighted(examples: Sequence[TextExample], labels: Labels, wanted: ClassWeights) -> list[TextExample]:
    """The training examples with the weights of their labels.

    Args:
        examples: All that is trained on, each with its label.
        labels: By the head's outputs; one a text.
        wanted: ``balanced``: a label's weight is the inverse of how often it comes (scikit-learn's ``balanced``); or a weight by
            label, 1 where none is given. Either way they are scaled so that the mean over the examples is 1, and rate and
            clipping mean what they mean without.

    Raises:
        SettingsError: A name that no label has, or a task without one label a text (exit 2).
    """
    if labels.problem != "single_label_classification":
        raise SettingsError("Class weights are for tasks with one label a text.", where="kind.class_weights")
    numbers = np.array([example.label for example in examples], dtype=np.int64)
    counts = np.bincount(numbers, minlength=labels.outputs)
    shares = np.ones(labels.outputs)
    if wanted == "balanced":
        shares[counts > 0] = 1 / counts[counts > 0]
    else:
        for name, weight in _by_name(wanted, labels).items():
            shares[name] = weight
    total = float((shares * counts).sum())
    if total <= 0:
        raise SettingsError("Every label that is trained on has the weight 0.", where="kind.class_weights")
    weights = shares * len(examples) / total
    return [replace(example, weight=float(weights[number])) for example, number in zip(examples, numbers, strict=True)]


def _by_name(wanted: Mapping[str, float] | str, labels: Labels) -> dict[int, float]:
    assert not isinstance(wanted, str)
    found = {}
    for name, weight in wanted.items():
        number = labels.number(name)
        if number is None:
            known = ", ".join(labels.names[:20])
            raise SettingsError(
                f"There is no label {name!r} to weigh.{nearest(name, labels.names)}",
                where="kind.class_weights",
                hint=f"Labels are {known}.",
            )
        found[number] = weight
    return found
