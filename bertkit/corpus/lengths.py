"""How long the sentences and documents of a token store are: counts by powers of two, gathered block by block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 20  # tokens, or documents, looked at in one go
_CLASSES = 64

Int64s = NDArray[np.int64]


class Text(Protocol):
    """What is measured: a token store."""

    @property
    def ids(self) -> Any: ...  # noqa: D102
    @property
    def document_ends(self) -> Any: ...  # noqa: D102
    def sentence_ends_between(self, first: int, last: int) -> Int64s: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lengths in tokens.

    Attributes:
        count: How many there are.
        longest: The longest.
        mean: Tokens by count.
        classes: How many have 1 token, 2, 3 to 4, 5 to 8, …, up to the class of the longest.
        over: Limit -> how many are longer, of the limits that were asked for.
    """

    count: int
    longest: int
    mean: float
    classes: tuple[int, ...]
    over: Mapping[int, int]

    @property
    def labels(self) -> list[str]:
        """``1``, ``2``, ``3-4``, ``5-8`` … for the classes."""
        edges = [1 << n for n in range(len(self.classes))]
        return [f"{edge}" if edge < 3 else f"{edge // 2 + 1:,}-{edge:,}" for edge in edges]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: the classes by their upper end."""
        classes = {str(1 << n): count for n, count in enumerate(self.classes)}
        return {"count": self.count, "longest": self.longest, "mean": self.mean, "up_to": classes}


def sentence_lengths(text: Text, limits: Sequence[int] = ()) -> Lengths:
    """Of the sentences; those longer than each of ``limits`` are counted."""
    blocks = range(0, len(text.ids), _BLOCK)
    return _gathered((text.sentence_ends_between(start, min(start + _BLOCK, len(text.ids))) for start in blocks), limits)


def document_lengths(text: Text) -> Lengths:
    """Of the documents."""
    ends = text.document_ends
    blocks = range(0, len(ends), _BLOCK)
    return _gathered((np.asarray(ends[start : start + _BLOCK], dtype=np.int64) for start in blocks), ())


def _gathered(ends: Iterable[Int64s], limits: Sequence[int]) -> Lengths:
    classes, count, longest, before = np.zeros(_CLASSES, dtype=np.int64), 0, 0, 0
    over = dict.fromkeys(limits, 0)
    for some in ends:
        if not len(some):
            continue
        lengths = np.diff(some, prepend=before)
        before = int(some[-1])
        classes += np.bincount(np.frexp(lengths - 0.5)[1].clip(0), minlength=_CLASSES)  # 1: 0, 2: 1, 3 and 4: 2, 5 to 8: 3
        count += len(some)
        longest = max(longest, int(lengths.max()))
        for limit in limits:
            over[limit] += int((lengths > limit).sum())
    used = int(np.flatnonzero(classes)[-1]) + 1 if count else 0
    return Lengths(count=count, longest=longest, mean=before / max(1, count), classes=tuple(classes[:used].tolist()), over=over)
