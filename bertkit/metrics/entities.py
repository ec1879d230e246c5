"""Entities in tag sequences, counted as the CoNLL shared tasks' ``conlleval`` counts them, and strictly as IOB2.

In go lists of tags, a list a sentence; out come counts and fractions in 0–1. The reading of tags is written once, here:
the converting of files between schemes uses it too. Source: conlleval (Sang and Buchholz 2000; Sang and De Meulder 2003).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.labelled.tags import Entity, entities, split_tag, strict_entities
from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.counts import Counts

__all__ = [
    "Counts",
    "Entity",
    "EntityScores",
    "count_entities",
    "entities",
    "entity_scores",
    "resampled_entities",
    "strict_entities",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityScores:
    """What one evaluation of tags gives.

    Attributes:
        total: All entities, read as conlleval reads them.
        strict: All entities, both sides read strictly as IOB2.
        types: Each type's own counts, by name in alphabetical order.
        words: Words in all.
        correct_words: Words whose predicted tag equals the gold tag.
    """

    total: Counts
    strict: Counts
    types: dict[str, Counts]
    words: int
    correct_words: int

    @property
    def accuracy(self) -> float | None:
        """Share of words with the right tag; None without words."""
        return self.correct_words / self.words if self.words else None

    def metrics(self) -> dict[str, float | None]:
        """The fixed keys of metrics.json, fractions in 0–1."""
        return {
            "precision": self.total.precision,
            "recall": self.total.recall,
            "f1": self.total.f1,
            "f1_strict": self.strict.f1,
            "accuracy": self.accuracy,
        }

    def report(self) -> str:
        """The words and layout that conlleval prints."""
        total = self.total
        lines = [
            f"processed {self.words} tokens with {total.gold} phrases; found: {total.found} phrases; correct: {total.correct}.",
            f"accuracy: {_points(self.accuracy)}%; {_line(total)}",
            *(f"{name:>17}: {_line(counts)}  {counts.found}" for name, counts in self.types.items()),
        ]
        return "\n".join(lines) + "\n"


def _points(share: float | None) -> str:
    return f"{100 * (share or 0.0):6.2f}"


def _line(counts: Counts) -> str:
    return f"precision: {_points(counts.precision)}%; recall: {_points(counts.recall)}%; FB1: {_points(counts.f1)}"


def count_entities(gold: Iterable[set[Entity]], found: Iterable[set[Entity]]) -> tuple[Counts, dict[str, Counts]]:
    """Counts entities over sentences: all of them, and by type in alphabetical order."""
    golds: Counter[str] = Counter()
    founds: Counter[str] = Counter()
    corrects: Counter[str] = Counter()
    for ours, theirs in zip(gold, found, strict=True):
        golds.update(entity.type for entity in ours)
        founds.update(entity.type for entity in theirs)
        corrects.update(entity.type for entity in ours & theirs)
    types = {
        name: Counts(gold=golds[name], found=founds[name], correct=corrects[name])
        for name in sorted(golds.keys() | founds.keys())
    }
    total = Counts(gold=golds.total(), found=founds.total(), correct=corrects.total())
    return total, types


def entity_scores(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EntityScores:
    """Scores predicted tags against gold tags, a list of tags a sentence.

    Any of IOB1, IOB2 and IOBES is read, on either side, and tags that follow one another unlawfully as conlleval reads
    them. The strict figures take both sides as IOB2: convert gold tags first (:func:`bertkit.labelled.tags.to_iob2`).

    Raises:
        ValueError: The two sides differ in sentences or in words of a sentence.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} sentences of gold tags, but {len(predicted)} of predicted ones")
    for row, (ours, theirs) in enumerate(zip(gold, predicted, strict=True)):
        if len(ours) != len(theirs):
            raise ValueError(f"sentence {row} has {len(ours)} gold tags, but {len(theirs)} predicted ones")
    total, types = count_entities(map(set, map(entities, gold)), map(set, map(entities, predicted)))
    strict, _ = count_entities(map(set, map(strict_entities, gold)), map(set, map(strict_entities, predicted)))
    return EntityScores(
        total=total,
        strict=strict,
        types=types,
        words=sum(map(len, gold)),
        correct_words=sum(
            split_tag(a) == split_tag(b)
            for ours, theirs in zip(gold, predicted, strict=True)
            for a, b in zip(ours, theirs, strict=True)
        ),
    )


def resampled_entities(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], name: str) -> Resampled:
    """One of :meth:`EntityScores.metrics` as a function of how often each sentence is drawn.

    Raises:
        ValueError: There is no figure of that name.
    """
    read = strict_entities if name == "f1_strict" else entities
    counts = []
    for ours, theirs in zip(gold, predicted, strict=True):
        if name == "accuracy":
            counts.append((len(ours), len(ours), sum(a == b for a, b in zip(ours, theirs, strict=True))))
        else:
            golds, founds = set(read(ours)), set(read(theirs))
            counts.append((len(golds), len(founds), len(golds & founds)))
    # Each figure is right ones ÷ some sum of gold and found: 2c / (g + f), c / f, c / g.
    wanted = {"f1": (0.5, 0.5), "f1_strict": (0.5, 0.5), "precision": (0.0, 1.0), "recall": (1.0, 0.0), "accuracy": (1.0, 0.0)}
    if name not in wanted:
        raise ValueError(f"there is no entity figure {name!r}")
    weights = np.array(wanted[name])

    def score(sums: np.ndarray) -> np.ndarray:
        below = sums[:, :2] @ weights
        shares = np.full(len(sums), np.nan)
        np.divide(sums[:, 2], below, out=shares, where=below > 0)
        return shares

    return Resampled.of_counts(np.array(counts, dtype=np.float64).reshape(-1, 3), score)
