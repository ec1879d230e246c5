"""Which figures are shares: pages show those in points (53.50 for 0.535), losses and counts as they are."""

from __future__ import annotations

_OTHERS = (
    "loss",
    "perplexity",
    "nats",
    "seconds",
    "tokens",
    "count",
    "examples",
    "steps",
    "thresh",
    "unigram",
    "epoch",
    "evaluate/",
)


def is_share(name: str) -> bool:
    """Is the figure of this key a share in 0-1, or a correlation in -1-1?"""
    return not any(word in name for word in _OTHERS)
