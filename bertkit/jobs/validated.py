"""What validations of a training have come to: the newest figures, and which were the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertkit.jobs.training_job import Figures


@dataclass(slots=True, kw_only=True)
class Validated:
    """The validations so far.

    Attributes:
        primary: The figure that decides.
        lower_is_better: Is it a loss?
        best: Its best value; None before the first.
        at: The optimizer step of the newest validation; -1 before the first.
        figures: What that one came to.
        patience: So many in a row without a better one are enough; None: never.
        waited: How many there have been.
    """

    primary: str
    lower_is_better: bool
    best: float | None = None
    at: int = -1
    figures: Figures = field(default_factory=dict)
    patience: int | None = None
    waited: int = 0

    def take(self, figures: Figures, step: int) -> bool:
        """Takes in a validation; is the model the best so far?"""
        self.figures, self.at = figures, step
        value = figures.get(self.primary)
        better = value is not None and (self.best is None or (value < self.best if self.lower_is_better else value > self.best))
        if better:
            self.best = value
        self.waited = 0 if better else self.waited + 1
        return better

    @property
    def enough(self) -> bool:
        """Has the training gone on long enough without a better model?"""
        return self.patience is not None and self.waited >= self.patience

    def plain(self) -> dict[str, Any]:
        """The newest figures that are numbers, or that do not exist: what a log has."""
        return {name: value for name, value in self.figures.items() if isinstance(value, (int, float)) or value is None}

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"best": self.best, "figures": self.figures, "validated_at": self.at, "waited": self.waited}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Takes back what :meth:`to_json` gave."""
        self.best = kept.get("best")
        self.figures = dict(kept.get("figures") or {})
        self.at = int(kept.get("validated_at", -1))
        self.waited = int(kept.get("waited", 0))
