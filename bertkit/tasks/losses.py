"""What a head returns of a batch: sums and counts. The loop alone divides, by the count of the whole optimizer step.

Two micro-batches of 1 target at 4.0 and 9 at a mean of 1.0 give 1.3, never the mean of means, 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossPart:
    """One part of a loss.

    Attributes:
        total: ``[]``, the sum over the targets, fp32 at least; zero and still part of the graph where there are none.
        count: How many targets, known without asking the device.
        correct: ``[]`` int64, how many the model has right, or None where that means nothing.
    """

    total: Tensor
    count: int
    correct: Tensor | None = None


LossParts = dict[str, LossPart]
"""By part: ``mlm``, ``nsp``, ``classification``, ``tagging``, ``span``, ``choice``."""
