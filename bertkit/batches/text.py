"""Some of a token store seen as documents, sentences, words and units; numpy alone.

N tokens, S sentences, D rows: documents, or parts of giant ones. A *unit* is a sentence, or a piece of one that would
not fit; pairs and runs are made of whole units. Places are token offsets into the text: an edge at offset i lies
before token i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SENTENCE, WORD, INSIDE = 0, 1, 2  # what an edge is: a sentence border, a word border in a sentence, inside a word


class Store(Protocol):
    """What batches need of a token store (``bertkit.corpus.store.TokenStore``)."""

    @property
    def ids(self) -> Any:
        """``[N]`` ids of the vocabulary: an array, or what gives arrays for slices and for arrays of places."""

    def sentence_ends_between(self, first: int, last: int) -> Ints:
        """Token offsets of the sentence ends behind ``first`` and up to ``last``, rising; a document's end is one too."""

    @property
    def document_ends(self) -> Ints:
        """``[D]`` token offsets, rising, the last N."""

    def word_begins(self, places: Ints) -> Bools | None:
        """Does a word begin at each place? None where the store does not keep it: then ``##`` pieces go on with a word."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What the build counted, by name."""

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
        chinese: ``[V]`` bool, the piece is a Chinese character, which is no word by itself; None: not known.
    """

    pad_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    continues: Bools
    replaceable: Ints
    chinese: Bools | None = None

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
            chinese=getattr(wordpiece, "chinese", None),
        )


def ragged(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Rows of tokens end to end: the offset of every token, and where each row begins in that list ``[rows + 1]``."""
    rows = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=rows[1:])
    flat = np.arange(rows[-1], dtype=np.int64)
    flat += np.repeat(starts - rows[:-1], lengths)
    return flat, rows


def begins_word(store: Store, continues: Bools, first: int, last: int) -> Bools:
    """``[last - first]`` does a word begin at each token of the store from ``first`` up to ``last``?"""
    kept = store.word_begins(np.arange(first, last))
    begins: Bools = ~continues[store.ids[first:last]] if kept is None else kept
    return begins


class Text:
    """Documents end to end with their sentences, words, and the units that fit ``room`` tokens.

    Attributes:
        begins: ``[N]`` bool, a word begins at this token.
        edges: ``[S+1]`` where sentences begin; the last is N. The end of a row ends a sentence.
        document_edges: ``[D+1]`` where rows begin; the last is N.
        owner: ``[D]`` which document of the store each row is, or is a part of; never falling.
        origin: ``[D]`` the place in the store (of :meth:`only`: in the text that was chosen from) where each row begins.
        room: Tokens of an example at most.
    """

    def __init__(self, *, begins: Bools, edges: Ints, document_edges: Ints, owner: Ints, origin: Ints, room: int) -> None:
        self.begins = begins
        self.edges = edges
        self.document_edges = document_edges
        self.owner = owner
        self.origin = origin
        self.room = room
        self.tokens = len(begins)

    @staticmethod
    def of(store: Store, continues: Bools, room: int) -> Text:
        """All documents of a store."""
        tokens = len(store.ids)
        return Text.gathered(store, continues, room, [(0, tokens)] if tokens else [])

    @staticmethod
    def gathered(store: Store, continues: Bools, room: int, spans: Iterable[tuple[int, int]]) -> Text:
        """The tokens ``first`` up to ``last`` of each span, spans rising; one that ends inside a document parts it there."""
        zero = np.zeros(1, np.int64)
        begins, edges, rows, owners, origins = [np.zeros(0, bool)], [zero], [zero], [zero[:0]], [zero[:0]]
        tokens = 0
        for first, last in spans:
            low, high = np.searchsorted(store.document_ends, [first + 1, last])
            ends = np.append(store.document_ends[low:high], last)
            sentences = store.sentence_ends_between(first, last)
            if not len(sentences) or sentences[-1] < last:
                sentences = np.append(sentences, last)
            begins.append(begins_word(store, continues, first, last))
            edges.append(sentences + (tokens - first))
            rows.append(ends + (tokens - first))
            owners.append(np.arange(low, high + 1))
            origins.append(np.concatenate([[first], ends[:-1]]))
            tokens += last - first
        return Text(
            begins=np.concatenate(begins),
            edges=np.concatenate(edges),
            document_edges=np.concatenate(rows),
            owner=np.concatenate(owners),
            origin=np.concatenate(origins),
            room=room,
        )

    def only(self, rows: Bools) -> Text:
        """The rows that are chosen (``[D]``), as a text of its own; its :attr:`origin` is a place in this one."""
        starts = self.document_edges[:-1][rows]
        flat, edges = ragged(starts, self.document_edges[1:][rows] - starts)
        last = self.edges[1:] - 1
        row = self.document(last)
        moved = np.zeros(self.documents, dtype=np.int64)
        moved[rows] = edges[:-1] - starts
        kept = rows[row]
        return Text(
            begins=self.begins[flat],
            edges=np.append(np.zeros(1, np.int64), (last + 1 + moved[row])[kept]),
            document_edges=edges,
            owner=self.owner[rows],
            origin=starts,
            room=self.room,
        )

    @property
    def documents(self) -> int:
        """D, the count of rows."""
        return len(self.owner)

    def begins_word(self, places: Ints) -> Bools:
        """Does the token at each place begin a word? Places below N."""
        return self.begins[places]

    def document(self, places: Ints) -> Ints:
        """The row of the token at each place."""
        return np.searchsorted(self.document_edges, places, side="right") - 1

    def traced(self, places: Ints) -> Ints:
        """The place of each token in what this text was taken from."""
        row = self.document(places)
        return self.origin[row] + places - self.document_edges[row]

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
        """``[D]`` how many sentences each row holds."""
        return np.diff(np.searchsorted(self.edges, self.document_edges))

    def usable(self) -> Bools:
        """``[D]`` rows of two words or more: one word alone cannot be parted into A and B."""
        usable = self.sentences_per_document() > 1
        alone = np.flatnonzero(~usable)
        starts = self.document_edges[alone]
        ends = np.minimum(self.document_edges[alone + 1], starts + 257)  # a word is at most 100 pieces long
        _, rows = self.inner_borders(starts, ends)
        usable[alone] = np.diff(rows) > 0
        return usable

    def taken(self, without: Ints | None) -> Bools:
        """``[D]`` every row but those of the documents ``without`` (indices)."""
        return np.ones(self.documents, dtype=bool) if without is None else ~np.isin(self.owner, without)

    @cached_property
    def unit_ends(self) -> Ints:
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
