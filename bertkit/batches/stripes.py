"""A store cut into stripes, which each epoch are shuffled and taken in blocks, so that no more than a block is ever in memory.

A stripe is some :data:`STRIPE` tokens of whole documents; a document longer than that is cut into several. Where a
sentence ends nearby it is cut there, else between words, and counts as two sentences.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bertkit.batches.text import Bools, Ints, Store, Text, begins_word
from bertkit.randomness import stream

STRIPE = 1 << 18
"""Tokens of a stripe, about."""
BLOCK = 16
"""Stripes of a block at most: its examples are shuffled among themselves, and give one another their wrong B."""


class Stripes:
    """The stripes of a store.

    Attributes:
        edges: ``[K+1]`` the place in the store where each stripe begins; the last is N.
        first: ``[K]`` the document of each stripe's first token. ``last``: of its last.
    """

    def __init__(self, store: Store, continues: Bools) -> None:
        self.store, self.continues = store, continues
        self.edges = cut_stripes(store, continues)
        self.first = np.searchsorted(store.document_ends, self.edges[:-1] + 1)
        self.last = np.searchsorted(store.document_ends, self.edges[1:])

    def __len__(self) -> int:
        return len(self.edges) - 1

    def blocks(self, seed: int, purpose: str, epoch: int) -> list[Ints]:
        """The stripes of each block of an epoch, rising: all of them, shuffled, in blocks as even as may be."""
        order = stream(seed, f"{purpose}/stripes", epoch).permutation(len(self))
        return [np.sort(part) for part in np.array_split(order, -(-len(self) // BLOCK))] if len(self) else []

    def text(self, stripes: Iterable[int], room: int) -> Text:
        """The text of some stripes, rising."""
        spans = [(int(self.edges[number]), int(self.edges[number + 1])) for number in stripes]
        return Text.gathered(self.store, self.continues, room, spans)

    def with_others(self, block: Ints, room: int, without: Ints | None, rng: np.random.Generator) -> tuple[Text, Bools]:
        """The text of a block, and ``[D]`` which of its rows are the block's own.

        Where most of it is one giant document, the stripes of others are taken in, to give it their sentences: as many
        as make up half of it, or as there are.
        """
        text = self.text(block, room)
        giant, wanted = _giant(text, without)
        if wanted <= 0:
            return text, np.ones(text.documents, dtype=bool)
        away = np.ones(len(self), dtype=bool)
        away[block] = False
        others = np.flatnonzero(away & ((self.first != giant) | (self.last != giant)))
        taken: list[int] = []
        for number in rng.permutation(others):
            more = self.text([int(number)], room)
            found = _sizes(more, without)[more.owner != giant].sum()
            if found:
                taken.append(int(number))
                wanted -= int(found)
            if wanted <= 0 or len(taken) >= BLOCK // 2:
                break
        text = self.text(np.sort(np.append(block, taken)).astype(np.int64), room)
        return text, np.isin(np.searchsorted(self.edges, text.origin, side="right") - 1, block)


def _sizes(text: Text, without: Ints | None) -> Ints:
    """``[D]`` tokens of the rows that can give a B, 0 for the others."""
    return np.diff(text.document_edges) * (text.usable() & text.taken(without))


def _giant(text: Text, without: Ints | None) -> tuple[int, int]:
    """The document with most tokens, and how many tokens of others are lacking to make up half of it."""
    sizes = _sizes(text, without)
    rows = np.flatnonzero(np.diff(text.owner, prepend=-1))  # where each document's rows begin
    tokens = np.add.reduceat(sizes, rows)
    row = int(np.argmax(tokens))
    most = int(tokens[row])
    return int(text.owner[rows[row]]), max(1, most // 2) - int(sizes.sum() - most) if most else 0


def cut_stripes(store: Store, continues: Bools) -> Ints:
    """``[K+1]`` where stripes begin and end."""
    ends, size = store.document_ends, STRIPE
    tokens = len(store.ids)
    whole = np.asarray(ends[np.searchsorted(ends, np.arange(size, tokens, size))], dtype=np.int64)
    edges = np.unique(np.concatenate([np.zeros(1, np.int64), whole, np.full(1, tokens)]))
    inner: list[int] = []
    for stop in edges[1:][np.diff(edges) > 2 * size].tolist():
        document = int(np.searchsorted(ends, stop))
        start = int(ends[document - 1]) if document else 0
        if stop - start > size:
            inner.append(start)
            inner += [_near(store, continues, aim) for aim in range(start + size, stop - size // 2, size)]
    return np.unique(np.concatenate([edges, np.array(inner, dtype=np.int64)]))


def _near(store: Store, continues: Bools, aim: int) -> int:
    """The first sentence end from ``aim`` on, within half a stripe; else the first word border; else ``aim``."""
    last = min(aim + STRIPE // 2, len(store.ids))
    ends = store.sentence_ends_between(aim - 1, last)
    return int(ends[0]) if len(ends) else aim + int(np.argmax(begins_word(store, continues, aim, last)))
