"""What an evaluation says beside its figures: each class's own figures, what is taken for what, and the surest wrong answers.

The values alone; each kind fills them in ``label_detail``, ``tagging_detail`` and ``span_detail``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertkit.metrics.counts import Counts
from bertkit.metrics.entity_errors import EntityError


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often each gold class was predicted as which.

    Attributes:
        labels: K names: those of the head, then any other that was predicted.
        counts: K rows of K counts: gold by predicted.
    """

    labels: list[str]
    counts: list[list[int]]

    def taken_for(self, name: str) -> list[tuple[str, int]]:
        """The other classes that gold ``name`` was predicted as, the most frequent first."""
        row = self.counts[self.labels.index(name)]
        others = [(label, count) for label, count in zip(self.labels, row, strict=True) if count and label != name]
        return sorted(others, key=lambda each: -each[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A wrong answer.

    Attributes:
        id: The row's id.
        texts: What was asked, by name: ``text`` and ``pair``, ``question``, ``words``.
        gold: As predictions.jsonl has it.
        prediction: As predictions.jsonl has it.
        said: Gold and prediction in a few words.
        sure: How sure the model was of it (a probability), or how far off it is (a number's error); None where nobody says.
    """

    id: str
    texts: Mapping[str, str]
    gold: Any
    prediction: Any
    said: str
    sure: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What an evaluation says of one part beside its figures.

    Attributes:
        classes: Counts by class or type of entity, in the head's order; empty where there are none.
        confusion: Of tasks with one label a row; else None.
        groups: Of questions, the figures of each group (``examples`` and scores in points), by what they are grouped by.
        errors: Of entities, how often each sort of error was made, the commonest first.
        wrong: All wrong answers, the surest first.
        measure: What ``Wrong.sure`` is: ``probability`` or ``error``.
    """

    classes: Mapping[str, Counts] = field(default_factory=dict)
    confusion: Confusion | None = None
    groups: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    errors: Mapping[EntityError, int] = field(default_factory=dict)
    wrong: list[Wrong] = field(default_factory=list)
    measure: str = "probability"

    def facts(self) -> dict[str, Any]:
        """``classes``, ``confusion`` and ``groups`` as metrics.json has them; a key is there where the task has such figures."""
        facts: dict[str, Any] = {}
        if self.classes:
            facts["classes"] = {name: counts.figures() for name, counts in self.classes.items()}
        if self.confusion is not None:
            facts["confusion"] = {"labels": self.confusion.labels, "counts": self.confusion.counts}
        if self.groups:
            facts["groups"] = self.groups
        if self.errors:
            facts["errors"] = [error._asdict() | {"count": count} for error, count in self.errors.items()]
        return facts

    def records(self) -> Iterable[dict[str, Any]]:
        """The lines of errors.jsonl."""
        for one in self.wrong:
            yield {"id": one.id, "gold": one.gold, "prediction": one.prediction, self.measure: one.sure, **one.texts}


def surest_first(wrong: Iterable[Wrong]) -> list[Wrong]:
    """The surest first; those of which nobody says how sure they are last; else in the order of their rows."""
    return sorted(wrong, key=lambda one: (one.sure is None, -(one.sure or 0.0)))
