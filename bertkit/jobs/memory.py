"""Will it fit? The memory of a training, forecast from its sizes, and the memory that this process may still have.

P = weights   T = tokens of a micro-batch   H = width   L = longest sequence   V = words
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bertkit.jobs.free_memory import free_memory
from bertkit.model.config import EncoderConfig

_LEAST_TOKENS = 256
_LAYER, _FEED = 10, 2  # copies of [T, H] and of [T, intermediate] that a layer keeps for its way back
_SCORES = 7  # copies of [heads, T, L] where attention is computed plainly, on a CPU; measured, as the two above
_WORDS = 3  # copies of [targets, V]: scores, their softmax, their gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Bytes that a training is going to take beyond what it has already.

    Attributes:
        fixed: Gradients, and Adam's moments where they are not there yet.
        per_token: For each token of a micro-batch.
    """

    fixed: int
    per_token: float

    def total(self, micro_tokens: int) -> float:
        """Bytes with micro-batches of so many tokens."""
        return self.fixed + self.per_token * micro_tokens

    def fitting(self, micro_tokens: int, room: float) -> int | None:
        """The largest of ``micro_tokens``, a half of it, a quarter … that fits into ``room`` bytes; None where none does."""
        while self.total(micro_tokens) > room:
            if micro_tokens // 2 < _LEAST_TOKENS:
                return None
            micro_tokens //= 2
        return micro_tokens


def forecast(
    config: EncoderConfig,
    weights: int,
    *,
    longest: int,
    targets: float,
    device: torch.device,
    resumed: bool = False,
    save_memory: bool = False,
) -> Forecast:
    """The memory of training ``weights`` parameters of a model of this shape.

    Args:
        config: The encoder.
        weights: P, the parameters.
        longest: L, tokens of the longest sequence.
        targets: Share of the tokens that are scored over all V words; 0 for tasks.
        device: Attention keeps its scores on a CPU alone.
        resumed: Adam's moments are there already.
        save_memory: A layer keeps its input alone, and the rest while it is on its way back.
    """
    scores = _SCORES * config.num_attention_heads * longest if device.type == "cpu" else 0
    layer = _LAYER * config.hidden_size + _FEED * config.intermediate_size + scores
    layers = config.num_hidden_layers
    kept = layers * config.hidden_size + layer if save_memory else layers * layer
    numbers = kept + targets * _WORDS * config.vocab_size
    return Forecast(fixed=4 * weights * (1 if resumed else 3), per_token=4.0 * numbers)


def room(device: torch.device, processes: int = 1) -> float:
    """Bytes that this process may still take: of its GPU, or its share of the machine's, the container's or the job's memory.

    Args:
        device: Where it computes.
        processes: Of this run on this machine.
    """
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return free_memory() / max(1, processes)
