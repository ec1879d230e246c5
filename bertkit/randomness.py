"""The only source of randomness: generators keyed by what they are for, never a global one.

Two coordinates that differ in anything give independent streams, so drawing more of one thing (validating more often,
say) never moves another. Nothing here keeps state: resuming a run needs no stored random state.
"""

from __future__ import annotations

import hashlib

import numpy as np


def _words(seed: int, purpose: str, coordinates: tuple[int, ...]) -> list[int]:
    digest = hashlib.sha256(purpose.encode()).digest()
    return [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF, *np.frombuffer(digest[:8], dtype="<u4").tolist(), *coordinates]


def stream(seed: int, purpose: str, *coordinates: int) -> np.random.Generator:
    """A numpy generator for one purpose, say ``stream(seed, "masking", epoch, batch)``; coordinates are at least 0."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(_words(seed, purpose, coordinates))))


def torch_seed(seed: int, purpose: str, *coordinates: int) -> int:
    """A 63-bit seed for ``torch.manual_seed``, keyed like :func:`stream` (dropout, new weights)."""
    state = np.random.SeedSequence(_words(seed, purpose, coordinates)).generate_state(2, np.uint32)
    return (int(state[0]) | int(state[1]) << 32) & (2**63 - 1)
