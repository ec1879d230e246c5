"""Windows: how a text longer than the model's room is cut into pieces that overlap, and which window each token is trusted in.

In go counts of tokens, out come ``(start, length)`` pairs and plain arrays. Questions, labels and special tokens are their
callers' business: ``room`` is what the caller has left for the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bertkit.errors import UsageError

Window = tuple[int, int]
"""``(start, length)`` in tokens of the whole text."""


def check_windows(room: int, overlap: int, *, max_length: int | None = None) -> None:
    """Refuses windows that could not move forwards, before any work.

    Args:
        room: Tokens of the text in one window.
        overlap: Tokens that neighbouring windows share (``--stride``), at least 0 and under ``room``.
        max_length: The whole sequence's limit, for the message alone.

    Raises:
        UsageError: The room is not positive, or the overlap is not in ``0 … room - 1``; both numbers are named.
    """
    limit = "" if max_length is None else f" of --max-length {max_length}"
    if room < 1:
        raise UsageError(
            f"Windows{limit} have no room for the text: {room} tokens.",
            where="--max-length" if max_length is not None else None,
            hint="Use a larger --max-length.",
        )
    if not 0 <= overlap < room:
        raise UsageError(
            f"A stride of {overlap} would leave tokens in no window: it is the overlap of windows{limit} with room for {room}.",
            where="--stride",
            hint=f"Use a --stride from 0 to {room - 1}, or a larger --max-length.",
        )


def windows(length: int, room: int, overlap: int) -> list[Window]:
    """Cuts ``length`` tokens into windows of at most ``room``, each sharing ``overlap`` tokens with the one before.

    Every token lies in a window, each window but the last is full, and none lies wholly in the one before. A text of no
    tokens has one empty window, so that it is still asked and answered.

    >>> windows(157, 114, 0)
    [(0, 114), (114, 43)]

    Raises:
        UsageError: See :func:`check_windows`.
    """
    check_windows(room, overlap)
    if length <= room:
        return [(0, length)]
    step = room - overlap
    count = 1 + -(-(length - room) // step)
    return [(i * step, min(room, length - i * step)) for i in range(count)]


def trusted_windows(cuts: Sequence[Window], length: int) -> npt.NDArray[np.int64]:
    """For each of ``length`` tokens the index in ``cuts`` of the window where it has most context, ``[length]``.

    A token's context in a window is the lesser of the tokens on its left and on its right; equals go to the longer window
    as in google's run_squad.py (there by a hundredth of its length), then to the earlier one.
    """
    best = np.full(length, -1, dtype=np.int64)
    owner = np.zeros(length, dtype=np.int64)
    for index, (start, size) in enumerate(cuts):
        place = np.arange(size)
        # In hundredths, so that ties are exact: google adds 0.01 of the window's length.
        context = 100 * np.minimum(place, size - 1 - place) + size
        here = slice(start, start + size)
        better = context > best[here]
        best[here][better] = context[better]
        owner[here][better] = index
    return owner
