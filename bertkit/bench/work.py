"""The useful arithmetic of a training step: what a step must multiply, whoever does it.

3 x (24·layers·H² + 4·layers·L·H) FLOP a token for the layers, forward and backward, and 3 x (2H² + 2HV) for each masked
token's head: padding, logits nobody asked for and recomputation are no useful work.
"""

from __future__ import annotations

from bertkit.model.config import EncoderConfig


def pretraining_flops(config: EncoderConfig, *, length: float, masked: float) -> float:
    """FLOP a token of training.

    Args:
        config: The model.
        length: Mean length of the sequence that a token lies in, in tokens: a sequence of n costs n² in attention.
        masked: Masked tokens per token.
    """
    width, layers = config.hidden_size, config.num_hidden_layers
    inner = config.intermediate_size
    body = layers * (8 * width**2 + 4 * width * inner + 4 * length * width)
    return 3.0 * (body + masked * (2 * width**2 + 2 * width * config.vocab_size))
