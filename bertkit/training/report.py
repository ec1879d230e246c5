"""What the loop says of each optimizer step, and what a run must remember to go on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class TrainState:
    """Where a run stands. The loop moves it; a checkpoint keeps it; a new loop goes on from it.

    Attributes:
        step: Optimizer steps that changed the weights.
        epoch: Epoch of the last batch, from 0.
        batch: Batches of that epoch that are done (skipped ones too): the next one to be read.
        seconds: Trained seconds over all starts.
        tokens: Tokens seen.
        targets: Targets of each loss part so far.
        skipped: Steps left out because a loss or gradient was not finite, and overflowed fp16 steps.
        in_a_row: Of these, the last ones without a good step between (fp16 steps whose scale could still fall aside).
        signal: 0, or the signal (2, 15) that ended the loop.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    targets: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    in_a_row: int = 0
    signal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSum:
    """One part of a loss over a step or an evaluation, all processes together.

    Attributes:
        total: Sum of the losses of its targets, in nats (or squared units for a regression).
        count: Targets.
        correct: Targets whose best guess was right; None where there is no such thing.
    """

    total: float
    count: int
    correct: float | None = None

    @property
    def mean(self) -> float:
        """Loss per target; 0 where there was none."""
        return self.total / self.count if self.count else 0.0

    @property
    def accuracy(self) -> float | None:
        """Share of right guesses; None where there is no such thing or no target."""
        return None if self.correct is None or not self.count else self.correct / self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One optimizer step, all processes together.

    Attributes:
        step: Optimizer steps so far; a step that was left out does not count.
        epoch: Epoch of this step's batch, from 0.
        batch: Batches of that epoch that are done, this one too.
        applied: False: the step was left out because a loss or gradient was not finite; step and rate did not move.
        rate: Learning rate of this step.
        parts: The loss by its parts.
        tokens: Tokens of this step.
        seconds: Seconds that this step took.
        total_seconds: Trained seconds over all starts.
        total_tokens: Tokens over all starts.
        grad_norm: L2 norm of all gradients before clipping.
        skipped: Steps left out so far.
        warming: Is this step part of the warm-up?
    """

    step: int
    epoch: int
    batch: int
    applied: bool
    rate: float
    parts: dict[str, PartSum]
    tokens: int
    seconds: float
    total_seconds: float
    total_tokens: int
    grad_norm: float
    skipped: int
    warming: bool

    @property
    def loss(self) -> float:
        """The sum of the parts' means: what was differentiated."""
        return sum(part.mean for part in self.parts.values())

    def values(self) -> dict[str, float | int | None]:
        """One line of log.jsonl; what is not finite is null. A step that was left out says so."""
        line: dict[str, float | int | None] = {
            "step": self.step,
            "epoch": self.epoch,
            "batch": self.batch,
            "loss": _finite(self.loss),
        }
        for name, part in self.parts.items():
            line[f"{name}_loss"] = _finite(part.mean) if part.count else None
            if part.correct is not None:
                line[f"{name}_accuracy"] = _finite(part.accuracy)
        return line | {
            "lr": self.rate,
            "grad_norm": _finite(self.grad_norm),
            "tokens": self.total_tokens,
            "seconds": round(self.total_seconds, 3),
            "tokens_per_second": round(self.tokens / self.seconds, 1) if self.seconds > 0 else None,
            "skipped": self.skipped,
            **({} if self.applied else {"left_out": True}),
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
