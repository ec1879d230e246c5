"""A token store seen as documents, sentences, words and units; numpy alone.

N tokens, S sentences, D documents. A *unit* is a sentence, or a piece of one that would not fit; pairs and runs are
made of whole units. Places are token offsets into the store: an edge at offset i lies before token i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SENTENCE, WORD, INSIDE = 0, 1, 2  # what an edge is: a sentence border, a word border in a sentence, inside a word


class Store(Protocol):
    """What batches need of a token store (``bertkit.corpus.store.TokenStore``)."""

    @property
    def ids(self) -> NDArray[np.unsignedinteger]:
        """``[N]`` ids of the vocabulary."""

    def sentence_ends_between(self, first: int, last: int) -> Ints:
        """Token offsets of the sentence ends behind ``first`` and up to ``last``, rising; a document's end is one too."""

    @property
    def document_ends(self) -> Ints:
        """``[D]`` token offsets, rising, the last N."""

    @property
    def fingerprint(self) -> str:
        """Changes with the text, the tokenizer and the rules that made it."""


class Wordpieces(Protocol):
    """What batches need of a vocabulary (``bertkit.corpus.wordpiece.WordPiece``)."""

    @property
    def pad_id(self) -> int: ...  # noqa: D102
    @property
    def cls_id(self) -> int: ...  # noqa: D102
    @property
    def sep_id(self) -> int: ...  # noqa: D102
    @property
    def mask_id(self) -> int: ...  # noqa: D102
    @property
    def continues(self) -> Bools: ...  # noqa: D102
    @property
    def replaceable(self) -> Ints: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyFacts:
    """What batches keep of a vocabulary: small and picklable.

    Attributes:
        continues: ``[V]`` bool, the piece goes on with a word (``##``).
        replaceable: ids that may stand in for a masked token: no special, no ``[unusedN]``.
    """

    pad_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    continues: Bools
    replaceable: Ints

    @staticmethod
    def of(wordpiece: Wordpieces) -> VocabularyFacts:
        """Takes the facts from a vocabulary."""
        return VocabularyFacts(
            pad_id=wordpiece.pad_id,
            cls_id=wordpiece.cls_id,
            sep_id=wordpiece.sep_id,
            mask_id=wordpiece.mask_id,
            continues=np.asarray(wordpiece.continues, dtype=bool),
            replaceable=np.asarray(wordpiece.replaceable, dtype=np.int64),
        )


def ragged(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Rows of tokens end to end: the offset of every token, and where each row begins in that list ``[rows + 1]``."""
    rows = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=rows[1:])
    flat = np.arange(rows[-1], dtype=np.int64)
    flat += np.repeat(starts - rows[:-1], lengths)
    return flat, rows


class Text:
    """A store with its sentences, documents, words, and the units that fit ``room`` tokens."""

    def __init__(self, store: Store, continues: Bools, room: int) -> None:
        self.ids = store.ids
        self.continues = continues
        self.room = room
        self.edges: Ints = np.concatenate(
            [np.zeros(1, np.int64), np.asarray(store.sentence_ends_between(0, len(store.ids)), np.int64)]
        )
        self.document_edges: Ints = np.concatenate([np.zeros(1, np.int64), np.asarray(store.document_ends, np.int64)])
        self.tokens = int(self.edges[-1])
        self.unit_ends = self._units()

    @property
    def documents(self) -> int:
        """D, the count of documents."""
        return len(self.document_edges) - 1

    def begins_word(self, places: Ints) -> Bools:
        """Does the token at each place begin a word? Places below N."""
        begins: Bools = ~self.continues[self.ids[places]]
        return begins

    def document(self, places: Ints) -> Ints:
        """The document of the token at each place."""
        return np.searchsorted(self.document_edges, places, side="right") - 1

    def sentence(self, places: Ints) -> Ints:
        """The sentence of the token at each place."""
        return np.searchsorted(self.edges, places, side="right") - 1

    def kind(self, places: Ints) -> Ints:
        """What each edge is: SENTENCE, WORD or INSIDE."""
        sentence = self.edges[np.searchsorted(self.edges, places)] == places
        inside = ~self.begins_word(np.minimum(places, self.tokens - 1))
        return np.where(sentence, SENTENCE, np.where(inside, INSIDE, WORD))

    def inner_borders(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """The word borders strictly inside each span ``[start, end)``: their places, and where each span's begin in that list."""
        flat, rows = ragged(starts + 1, ends - starts - 1)
        border = self.begins_word(flat)
        before = np.zeros(len(flat) + 1, dtype=np.int64)
        np.cumsum(border, out=before[1:])
        return flat[border], before[rows]

    def sentences_per_document(self) -> Ints:
        """``[D]`` how many sentences each document holds."""
        return np.diff(np.searchsorted(self.edges, self.document_edges))

    def usable(self) -> Bools:
        """``[D]`` documents of two words or more: one word alone cannot be parted into A and B."""
        usable = self.sentences_per_document() > 1
        alone = np.flatnonzero(~usable)
        starts = self.document_edges[alone]
        ends = np.minimum(self.document_edges[alone + 1], starts + 257)  # a word is at most 100 pieces long
        _, rows = self.inner_borders(starts, ends)
        usable[alone] = np.diff(rows) > 0
        return usable

    def taken(self, without: Ints | None) -> Bools:
        """``[D]`` every document but those ``without`` (indices)."""
        taken = np.ones(self.documents, dtype=bool)
        if without is not None:
            taken[without] = False
        return taken

    def _units(self) -> Ints:
        """Ends of sentences, and of the pieces of those that are longer than the room: cut behind the last word that fits."""
        long = np.flatnonzero(np.diff(self.edges) > self.room)
        starts, ends = self.edges[long], self.edges[long + 1]
        cuts = [self.edges[1:]]
        steps = np.arange(1, self.room + 1)
        while len(starts):
            border = self.begins_word(starts[:, None] + steps)  # in bounds: more than room tokens remain
            last = self.room - np.argmax(border[:, ::-1], axis=1)
            starts = starts + np.where(border.any(axis=1), last, self.room)
            cuts.append(starts)
            keep = ends - starts > self.room
            starts, ends = starts[keep], ends[keep]
        return np.sort(np.concatenate(cuts)) if len(cuts) > 1 else cuts[0]
