"""What a model says of one row, and what all of it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the model says of one row.

    Attributes:
        id: The row's id.
        value: A label name, number, list of names or tags, or an answer's text; JSON's own types.
        score: The model's own score of it (a probability, or a sum of logits for spans); None where it has none.
        gold: The row's gold in the form of ``value`` (a list of texts for spans); None where it has none.
        more: Further facts under fixed names (probabilities by label, n-best, null odds, …).
    """

    id: str
    value: Any
    score: float | None = None
    gold: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Figures of one part: fractions under fixed keys (SQuAD's ``exact`` and ``f1`` are 0–100), None where undefined.

    Attributes:
        values: By name.
        primary: The name that decides.
        examples: N, the rows scored.
        interval: The 95 % bootstrap interval of the primary figure, or None where it is undefined.
    """

    values: dict[str, float | None]
    primary: str
    examples: int
    interval: tuple[float, float] | None = None

    @property
    def best(self) -> float | None:
        """The primary figure."""
        return self.values[self.primary]
