"""One bit a token, packed eight to a byte, the first in the lowest bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_AT_ONCE = 1 << 22  # tokens unpacked at once


def packed_size(tokens: int) -> int:
    """Bytes for so many bits."""
    return (tokens + 7) // 8


def packed(bits: Bools) -> Bytes:
    """``[n]`` bool as ``[packed_size(n)]`` bytes; the last one's spare bits are 0."""
    return np.packbits(bits, bitorder="little")


def between(data: Bytes, first: int, last: int) -> Bools:
    """The bits of the tokens from ``first`` up to ``last``."""
    some = np.unpackbits(np.asarray(data[first >> 3 : packed_size(last)]), bitorder="little")
    return some[first & 7 : (first & 7) + last - first].view(np.bool_)


def at(data: Bytes, places: Ints) -> Bools:
    """The bits of the tokens at ``places``."""
    found: Bools = ((data[places >> 3] >> (places & 7).astype(np.uint8)) & 1).astype(np.bool_)
    return found


def ends_between(data: Bytes, first: int, last: int) -> Ints:
    """Offsets behind the set bits among the tokens from ``first`` up to ``last``, rising, int64."""
    parts = []
    for start in range(first, last, _AT_ONCE):
        found = np.flatnonzero(between(data, start, min(start + _AT_ONCE, last)))
        found += start + 1
        parts.append(found)
    return np.concatenate(parts) if len(parts) > 1 else (parts[0] if parts else np.zeros(0, dtype=np.int64))
