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


def tuning_flops(config: EncoderConfig, *, length: float, read: float) -> float:
    """FLOP a token of fine-tuning. The last layer's part behind attention is needed only where the head reads.

    Args:
        config: The model.
        length: Mean length of the sequence that a token lies in, in tokens.
        read: Tokens that the head reads, per token: a classifier each sequence's first, a span's all.
    """
    width, layers = config.hidden_size, config.num_hidden_layers
    behind = 2 * width**2 + 4 * width * config.intermediate_size
    before = 6 * width**2 + 4 * length * width
    return 3.0 * (layers * before + (layers - 1 + read) * behind)
