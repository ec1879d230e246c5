"""Which documents are held out for validation, and the copying of some of a store's documents into another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.store import TokenStore
from bertkit.corpus.writer import StoreWriter

_RUN = 4096  # documents copied at once


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """How many documents are held out: a share of all, within bounds."""

    share: float = 0.01
    least: int = 1
    most: int = 2000


def held_out_documents(hashes: NDArray[np.uint64], held_out: HeldOut) -> NDArray[np.bool_]:
    """``[documents]`` bool: held out, by the hash of the text, so that equal texts lie on one side, whatever their order.

    Texts are taken by rising hash until their documents are enough; one that would pass that count (a text repeated
    very often would fill the held-out part with copies of itself) is passed over. Where that leaves nothing, it is the
    rarest text; a corpus of a single text holds nothing out.
    """
    total = len(hashes)
    wanted = min(max(round(held_out.share * total), held_out.least), held_out.most, total - 1)
    texts, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    chosen = np.zeros(len(texts), dtype=np.bool_)
    taken = 0
    for index, count in enumerate(counts.tolist()):
        if taken + count <= wanted:
            chosen[index] = True
            taken += count
    if not taken and len(texts) > 1:
        chosen[counts.argmin()] = True
    return chosen[inverse]


def copy_documents(source: TokenStore, chosen: NDArray[np.bool_], folder: Path, fingerprint: str) -> None:
    """Writes the chosen documents of ``source`` as a store of their own, in their order."""
    starts = np.concatenate([[0], source.document_ends[:-1]])
    bounds = source.document_sentences
    with StoreWriter(folder, source.vocab_size) as writer:
        for first, last in _runs(np.flatnonzero(chosen)):
            begin, end = int(starts[first]), int(source.document_ends[last])
            shift = writer.tokens - begin
            writer.add(
                source.ids[begin:end],
                source.sentence_ends[bounds[first] : bounds[last + 1]] + shift,
                source.document_ends[first : last + 1] + shift,
            )
        writer.finish(fingerprint)


def _runs(documents: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Neighbouring documents, first and last, copied together."""
    runs: list[tuple[int, int]] = []
    for document in documents.tolist():
        if runs and runs[-1][1] == document - 1 and document - runs[-1][0] < _RUN:
            runs[-1] = (runs[-1][0], document)
        else:
            runs.append((document, document))
    return runs
