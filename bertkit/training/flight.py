"""A step on its way: what is agreed of it, its gradients, and what came of it, which the device tells later than it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from bertkit.batches.source import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """What all processes know of a step before it begins.

    Attributes:
        began: Trained seconds when it did, on this process.
        elapsed: The share of the time that will be spent in its middle, 0 without a clock.
        tokens: Of all processes.
        counts: Targets of each part, of all processes.
        late: The time is nearly up, and what is done at this step's report may leave none for another: it has to land first.
    """

    began: float
    elapsed: float
    tokens: int
    late: bool
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A step up to this process's gradients.

    Attributes:
        at: Its batch.
        agreed: As above.
        sums: ``[3, parts]``: losses, right guesses, whether there are any.
        failed: Memory ran out.
        widest: Tokens of the largest micro-batch.
    """

    at: Position
    agreed: Agreed
    sums: Tensor
    failed: bool
    widest: int


class Told:
    """Numbers on their way from the device; reading them waits for them alone, not for what was asked of the device since."""

    def __init__(self, values: Tensor) -> None:
        self._values = values.to("cpu", non_blocking=values.is_cuda)
        self._there = torch.cuda.Event() if values.is_cuda else None  # type: ignore[no-untyped-call]
        if self._there is not None:
            self._there.record()

    def read(self) -> list[float]:
        """The numbers."""
        if self._there is not None:
            self._there.synchronize()
        return cast(list[float], self._values.tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Flying:
    """A step that the optimizer was asked for and whose outcome the host does not know.

    Attributes:
        begun: As above.
        rate: Its learning rate.
        warming: Is it part of the warm-up?
        told: The gradients' norm, then the sums of all processes.
    """

    begun: Begun
    rate: float
    warming: bool
    told: Told
