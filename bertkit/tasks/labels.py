"""The labels of a run, in the order of the head's outputs (K of them)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a run, in the order of the head's outputs.

    Attributes:
        names: K names; empty where the head has none to name (spans); one for a regression.
        problem: ``single_label_classification``, ``multi_label_classification``, ``regression`` or ``""``, as config.json's
            ``problem_type`` has them.
        new_head: True where the model's head cannot serve and training starts a new one.
        positive: The name that binary F1 counts, or None.
    """

    names: tuple[str, ...]
    problem: str = "single_label_classification"
    new_head: bool = False
    positive: str | None = None

    @property
    def outputs(self) -> int:
        """K, the head's outputs."""
        return len(self.names)

    def number(self, name: str) -> int | None:
        """The output of a name, without regard to case; None where there is none."""
        folded = name.casefold()
        return next((i for i, known in enumerate(self.names) if known.casefold() == folded), None)
