"""Which documents are held out for validation: a view of a store, chosen by the hashes of its documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 1 << 20  # documents looked at in one go
_HASHES = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """How many documents are held out: a share of all, within bounds."""

    share: float = 0.01
    least: int = 1
    most: int = 2000


def held_out_documents(hashes: NDArray[np.uint64], held_out: HeldOut) -> NDArray[np.int64]:
    """Indices of the documents that are held out, rising: by the hash of the text, whatever their order.

    Texts are taken by rising hash until their documents are enough, equal texts together; one that would pass that count
    (a text repeated very often would fill the held-out part with copies of itself) is passed over. Where that leaves
    nothing, it is the rarest text; a corpus of a single text holds nothing out. Memory holds a few times what is held out,
    unless most texts are equal.
    """
    total = len(hashes)
    wanted = min(max(round(held_out.share * total), held_out.least), held_out.most, total - 1)
    bound = min(_HASHES, _HASHES * (2 * max(wanted, 0) + 64) // max(1, total))
    while True:  # hashes are spread evenly, so the smallest are below a bound that is known beforehand
        texts, counts = np.unique(_below(hashes, bound), return_counts=True)
        taken = _taken(counts, wanted)
        if bound == _HASHES or int(counts[taken].sum()) == wanted:
            break
        bound = min(_HASHES, 8 * bound)
    chosen = texts[taken]
    if not len(chosen) and len(texts) > 1:
        chosen = texts[[counts.argmin()]]
    # By sorting: numpy 2.0's other way, a table, fails on numbers beyond 2^63.
    parts = [np.flatnonzero(np.isin(hashes[at : at + _AT_ONCE], chosen, kind="sort")) + at for at in range(0, total, _AT_ONCE)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _below(hashes: NDArray[np.uint64], bound: int) -> NDArray[np.uint64]:
    blocks = (np.asarray(hashes[at : at + _AT_ONCE]) for at in range(0, len(hashes), _AT_ONCE))
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(block[block <= np.uint64(bound - 1)] for block in blocks)])


def _taken(counts: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """Places of the texts that are taken, of all by rising hash."""
    places, documents = [], 0
    for place, count in enumerate(counts.tolist()):
        if documents + count <= wanted:
            places.append(place)
            documents += count
        if documents == wanted:
            break
    return np.array(places, dtype=np.int64)
