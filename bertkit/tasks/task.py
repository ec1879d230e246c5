"""What a task is: the values of a declaration, free of torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bertkit.errors import UsageError, nearest
from bertkit.labelled.columns import Columns

# What config.json calls the problem of a classifier: what its column of labels holds, and the figures there are for it.
_LABELS = {"single_label_classification": "class", "multi_label_classification": "several", "regression": "number"}
_FIGURES = {
    "single_label_classification": ("accuracy", "f1", "f1_macro", "f1_micro", "matthews"),
    "multi_label_classification": ("f1_micro", "f1_macro", "accuracy"),
    "regression": ("pearson", "spearman"),
}
# The figures of the other kinds.
_OF_KIND = {
    "choice": ("accuracy",),
    "tagging": ("f1", "precision", "recall", "f1_strict", "accuracy"),
    "span": ("f1", "exact"),
    "span_chinese": ("f1", "exact", "squad_f1", "squad_exact"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a task's data.

    Attributes:
        name: ``train``, ``validation``, ``validation_mismatched``, ``test``, …; evaluations are filed under it.
        files: The file names by which it is known in a folder; the first that is there is taken.
        split: The hub's name of it; ``name`` where it is None.
    """

    name: str
    files: tuple[str, ...]
    split: str | None = None

    @property
    def role(self) -> str:
        """``train``, ``validation`` or ``test``."""
        return self.name.partition("_")[0]


_ENDINGS = ("csv", "tsv", "jsonl", "json", "parquet")
OWN_PARTS = tuple(
    Part(name=name, files=tuple(f"{file}.{ending}" for file in files for ending in _ENDINGS))
    for name, files in (("train", ("train",)), ("validation", ("validation", "valid", "dev")), ("test", ("test",)))
)
"""Parts of a folder of people's own: train.csv, validation.csv (or valid, or dev), test.csv, or as TSV, JSON lines, Parquet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubData:
    """A data set on the hub: its id, configuration and revision, and its columns where they differ from the files'."""

    id: str
    config: str | None = None
    revision: str | None = None
    columns: Columns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task's declaration.

    Attributes:
        name: What the command line calls it.
        title: One line for ``bertkit tasks``.
        metrics: Keys of the figures that it reports, the primary one first.
        kind: Which kind reads, trains and scores it: ``classification``, ``tagging``, ``span``, ``choice``.
        parts: Its parts, training first; by default the files of a folder of people's own tables.
        hub: Its data on the hub, or None: data are the user's own then.
        columns: Columns of its tables; None for kinds that read no table.
        labels: Names in order; empty where the training rows say them.
        positive: The label that binary F1 counts, or None.
        bounds: Lowest and highest number of a regression, which its official file keeps to; None where there are none.
        problem: config.json's ``problem_type``; empty where there is none.
        settings: Its kind's settings where they differ from the kind's own defaults (``max_length``, …).
        training: Training defaults of its own (``epochs``, ``batch_size``, …) over those of its kind and width.
        official: The name of the official prediction file (GLUE's ``CoLA.tsv``), by part; empty where there is none.
        published: Its parts are as they were published, and entities of a type that training never had count as missed, as the
            official scorers count them. In data of people's own they are an error.
        served_by: The task whose models answer this one, which has no training part of its own (AX's is MNLI); else None.
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    kind: str = "classification"
    parts: tuple[Part, ...] = OWN_PARTS
    hub: HubData | None = None
    columns: Columns | None = None
    labels: tuple[str, ...] = ()
    positive: str | None = None
    bounds: tuple[float, float] | None = None
    problem: str = "single_label_classification"
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    training: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    official: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    published: bool = False
    served_by: str | None = None

    def faults(self) -> Iterator[str]:
        """What in the declaration contradicts itself, a sentence each."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", self.name):
            yield "a name has small letters, digits, and - _ . within"
        if not self.metrics:
            yield "it has no metrics, the primary one first"
        if len(set(self.labels)) < len(self.labels):
            yield "a label comes twice"
        if self.positive is not None and self.labels and self.positive not in self.labels:
            yield f"positive is {self.positive!r}, which is none of its labels"
        texts = self.kind == "classification"
        if texts and self.problem not in _FIGURES:
            yield f"problem is {self.problem!r}, which is none of {', '.join(_FIGURES)}"
        known = _FIGURES.get(self.problem) if texts else _OF_KIND.get(self.kind)
        if known and (unknown := [name for name in self.metrics if name not in known]):
            yield f"there is no metric {unknown[0]!r} for {self.problem if texts else self.kind}: there are {', '.join(known)}"
        if self.columns is None:
            if texts or self.kind == "choice":
                yield "it has no columns"
        elif texts and _LABELS.get(self.problem, self.columns.kind) != self.columns.kind:
            yield f"columns.kind is {self.columns.kind!r}, and {self.problem} needs {_LABELS[self.problem]!r}"

    @property
    def trained_as(self) -> str:
        """The task that its models are trained for."""
        return self.served_by or self.name

    @property
    def primary(self) -> str:
        """The figure that decides."""
        return self.metrics[0]

    def part(self, name: str) -> Part:
        """The part of that name.

        Raises:
            UsageError: There is none; the parts are listed.
        """
        for part in self.parts:
            if part.name == name:
                return part
        known = [part.name for part in self.parts]
        raise UsageError(f"{self.name} has no part {name!r}.{nearest(name, known)}", hint=f"Its parts are {', '.join(known)}.")
