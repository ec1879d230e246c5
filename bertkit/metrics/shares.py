"""Which figures are shares: pages show those in points (53.50 for 0.535), losses and counts as they are."""

from __future__ import annotations

import re

_OF_A_TYPE = re.compile(r"^(?!.*evaluate/).+_(precision|recall|f1)(_mean|_std)?$")
"""Figures of a type of entities, whose name may hold any word: ``country_f1`` is no count."""

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
    return bool(_OF_A_TYPE.search(name)) or not any(word in name for word in _OTHERS)
