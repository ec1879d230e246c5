"""Over how many rows a product of matrices is made: on CPUs in bf16 a few counts that come again, elsewhere as many as there are.

oneDNN, which multiplies bf16 there, compiles a kernel for each new shape: some 0.25 ms, as long as many a product itself takes,
and batches of packed tokens hardly ever have the same count twice (docs/speed.md).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_COUNTS = 32  # between a power of two and the next: from 256 rows on at most 3 % are added
_LEAST = 8


def shapes_cost(device: torch.device) -> bool:
    """Does each new shape of a product cost time on ``device``, as things are computed now?"""
    return device.type == "cpu" and torch.is_autocast_enabled("cpu")


def rows_for(count: int, device: torch.device) -> int:
    """The rows over which products of ``count`` rows are made; those behind it mean nothing and get no gradient."""
    if not shapes_cost(device):
        return count
    step = max(_LEAST, (1 << count.bit_length() >> 1) // _COUNTS)
    return -(-count // step) * step


def lengthened(indices: Tensor, rows: int) -> Tensor:
    """``[N]`` indices with zeros behind them, ``[rows]``: what those select is nobody's."""
    return indices if rows == indices.shape[0] else F.pad(indices, (0, rows - indices.shape[0]))


def shortened(states: Tensor, count: int) -> Tensor:
    """The first ``count`` rows."""
    return states if count == states.shape[0] else states[:count]


def selected(source: Tensor, indices: Tensor, rows: int) -> Tensor:
    """``[rows, d]``: the rows of ``source`` ``[M, d]`` at the indices, and zeros behind them."""
    count = indices.shape[0]
    if rows == count:
        return source.index_select(0, indices)
    made = source.new_empty(rows, source.shape[1])
    torch.index_select(source, 0, indices, out=made[:count])
    made[count:] = 0.0
    return made
