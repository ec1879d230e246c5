"""Is the model learning? A small state fed with means of steps, which says in words what looks wrong, each thing once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEAR = 0.05
"""Nats from the unigram reference within which a model knows word frequencies alone."""
NEAR_COIN = 0.01
"""Nats below ln 2 within which a pair loss is a thrown coin's."""
ENOUGH_TARGETS = 1_000_000
MEMORY = 0.98
"""A smoothed loss forgets this share of itself in a step: it looks back some 50 steps."""


def unigram_reference(frequencies: NDArray[np.int64], targets: NDArray[np.int64]) -> float:
    """Cross-entropy in nats of ``targets`` [n] (ids) under the add-one ``frequencies`` [V] of the training tokens.

    This is the loss of a model that has learned how often each word occurs and nothing else.
    """
    logs = np.log(frequencies.astype(np.float64) + 1.0)
    total = math.log(float(frequencies.sum()) + len(frequencies))
    return float(total - logs[targets].mean())


@dataclass(slots=True, kw_only=True)
class Health:
    """Feed it :meth:`update` after logged steps; it keeps its state as JSON for a resume.

    Attributes:
        reference: Unigram cross-entropy of the masked validation tokens, or None.
        smoothed: Smoothed mean of each loss part.
        since: The step from which each complaint has held without a break.
        said: Complaints that were made.
    """

    reference: float | None = None
    smoothed: dict[str, float] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    last_step: int = 0

    def update(
        self, step: int, losses: Mapping[str, float], *, targets: int, rate: float, warming: bool, applied: bool = True
    ) -> list[str]:
        """Takes in one step's means and returns new sentences for the reader.

        Args:
            step: Optimizer steps so far.
            losses: Mean of each part, nats a target (``mlm``, ``nsp``).
            targets: Masked-word targets so far.
            rate: Learning rate of the step.
            warming: Is the step part of the warm-up?
            applied: False where the step was left out.
        """
        found: dict[str, str] = {}
        if not applied or not all(map(math.isfinite, losses.values())):
            found["finite"] = _NOT_FINITE.format(step=step + (not applied))
        if rate == 0.0 and not warming and step > 1:
            found["rate"] = _NO_RATE.format(step=step)
        if applied:
            self._smooth(step, losses)
            if not warming and targets >= ENOUGH_TARGETS:
                found |= self._stuck(step)
        fresh = {name: words for name, words in found.items() if name not in self.said}
        self.said.extend(fresh)
        return list(fresh.values())

    def _smooth(self, step: int, losses: Mapping[str, float]) -> None:
        keep = MEMORY ** max(1, step - self.last_step)
        self.last_step = step
        for name, loss in losses.items():
            if math.isfinite(loss):
                self.smoothed[name] = keep * self.smoothed.get(name, loss) + (1 - keep) * loss

    def _stuck(self, step: int) -> dict[str, str]:
        reference, found = self.reference, {}
        pairs = "sop" if "sop" in self.smoothed else "nsp"
        holds = {
            "unigram": reference is not None and self.smoothed.get("mlm", -math.inf) >= reference - NEAR,
            "coin": self.smoothed.get(pairs, -math.inf) >= math.log(2) - NEAR_COIN,
        }
        for name, true in holds.items():
            if not true:
                self.since.pop(name, None)
            elif step - self.since.setdefault(name, step) >= step / 5:
                words = _UNIGRAM if name == "unigram" else _COIN
                found[name] = words.format(
                    loss=self.smoothed["mlm" if name == "unigram" else pairs], reference=reference or 0.0, since=self.since[name]
                )
        return found

    def to_json(self) -> dict[str, Any]:
        """For ``extra`` of a checkpoint."""
        return asdict(self)

    @staticmethod
    def from_json(state: Mapping[str, Any]) -> Health:
        """The inverse of :meth:`to_json`."""
        return Health(**state)


_NOT_FINITE = (
    "At step {step} the loss or a gradient was not finite; the step is left out. If it goes on: a lower --learning-rate, "
    "a longer --warmup, or --precision fp32."
)
_NO_RATE = "The learning rate is 0 at step {step}: nothing is learned any more. Are the planned steps or minutes right?"
_UNIGRAM = (
    "The masked-word loss ({loss:.2f} nats) has stayed at or above {reference:.2f} since step {since}: that is what word "
    "frequencies alone give. Likely causes: a learning rate that is too high or too low, a small --batch-size, many duplicate "
    "lines, or a text without real sentences."
)
_COIN = (
    "The sentence-pair loss ({loss:.3f}) has stayed at ln 2 = 0.693 since step {since}: the pairs are told apart no better than "
    "by a coin. Likely causes: no document boundaries in the text (blank lines), documents of one sentence, duplicate lines, or "
    "a rate that is too high. --objective mlm does without pairs."
)
