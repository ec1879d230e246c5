"""Gold, found and right ones of one class (or of one type of entity), and the figures that follow from the three counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.metrics.classification import check_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What precision, recall and F1 are made of. Of entities one is right where its first word, last word and type are.

    Attributes:
        gold: Those in the gold (the class's support).
        found: Those predicted.
        correct: Those in both.
    """

    gold: int
    found: int
    correct: int

    @property
    def defined(self) -> bool:
        """False where neither side has one: then there is nothing to score."""
        return self.gold + self.found > 0

    @property
    def precision(self) -> float | None:
        """correct / found; 0.0 where nothing was found, as conlleval prints; None where there is nothing to score."""
        return None if not self.defined else self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float | None:
        """correct / gold; 0.0 where there is no gold one, as conlleval prints; None where there is nothing to score."""
        return None if not self.defined else self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None where there is nothing to score."""
        return 2 * self.correct / (self.gold + self.found) if self.defined else None

    def figures(self) -> dict[str, float | int | None]:
        """``precision``, ``recall``, ``f1`` (fractions in 0-1) and ``support``, as metrics.json has them."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "support": self.gold}


def count_classes(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]], names: Sequence[str]) -> dict[str, Counts]:
    """Counts by class: those of ``names``, then any other that occurs; a row of one label is a set of one.

    Raises:
        DataError: The set is empty or the counts of rows differ (exit 3).
    """
    check_pairs(gold, predicted)
    counts = {name: [0, 0, 0] for name in names}
    for ours, theirs in zip(gold, predicted, strict=True):
        for place, side in enumerate((ours, theirs, ours & theirs)):
            for name in sorted(side):
                counts.setdefault(name, [0, 0, 0])[place] += 1
    return {name: Counts(gold=g, found=f, correct=c) for name, (g, f, c) in counts.items()}
