"""Lines in batches, batches into ids, in any process: the part of a build that takes its time and looks at nothing else.

P = pieces of documents in a batch: those that end in it, and the one behind them that goes on (maybe with nothing yet)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.chinese import Segmenter
from bertkit.corpus.hashes import chains, line_hashes
from bertkit.corpus.sentences import split_sentences
from bertkit.corpus.store_files import id_type
from bertkit.corpus.wordpiece import WordPiece

BATCH = 1_000_000  # characters from which on a batch ends at the next document's end, at twice as many wherever it is
GROUP = 100_000  # characters from which on a group of documents, the unit of shards, ends at the next document's end

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some lines of a corpus.

    Attributes:
        lines: Lines that are not blank.
        ends: Of each document that ends here, how many of the lines stand before its end, rising.
        items: What the reading gave (lines and document ends) up to here, from the corpus' beginning.
        characters: Of the lines.
    """

    lines: list[str]
    ends: list[int]
    items: int
    characters: int


def cut_batches(
    reading: Iterable[str | None], *, shard: tuple[int, int] | None = None, size: int = BATCH, group: int = GROUP
) -> Iterator[Batch]:
    """Cuts a reading (lines, None behind each document) into batches; a function of the text alone.

    Args:
        reading: As :func:`bertkit.corpus.documents.read_lines` gives it.
        shard: ``(i, n)``, 1 to n: only the i-th of every n groups of whole documents.
        size: Characters of a batch.
        group: Characters of a group.
    """
    lines: list[str] = []
    ends: list[int] = []
    characters = items = groups = grouped = 0
    mine = shard is None or shard[0] == 1
    for items, item in enumerate(reading, 1):
        if item is None:
            if mine:
                ends.append(len(lines))
            if shard is not None and grouped >= group:
                groups, grouped = groups + 1, 0
                mine = groups % shard[1] == shard[0] - 1
            if characters < size:
                continue
        else:
            grouped += len(item)
            if mine:
                lines.append(item)
                characters += len(item)
            if characters < 2 * size:
                continue
        yield Batch(lines=lines, ends=ends, items=items, characters=characters)
        lines, ends, characters = [], [], 0
    if lines or ends:
        yield Batch(lines=lines, ends=ends, items=items, characters=characters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What became of a batch.

    Attributes:
        items: The batch's.
        characters: The batch's.
        ids: ``[n]`` uint16 or uint32, of every token, end to end.
        sentence_ends: ``[n]`` bool, a sentence ends behind the token.
        word_begins: ``[n]`` bool, a word begins with it; None without a segmenter.
        line_hashes: ``[lines]`` uint64.
        lines: ``[P]`` of each piece, and so for the others:
        chains: uint64, of the hashes of its lines.
        tokens: Tokens.
        sentences: Sentences that end in it.
        words: Words that begin in it.
        unknown: Tokens that are ``[UNK]``.
    """

    items: int
    characters: int
    ids: NDArray[Any]
    sentence_ends: Bools
    word_begins: Bools | None
    line_hashes: NDArray[np.uint64]
    lines: Ints
    chains: NDArray[np.uint64]
    tokens: Ints
    sentences: Ints
    words: Ints
    unknown: Ints


class Maker:
    """Makes ids of batches; picklable, so that any process can be one.

    Args:
        wordpiece: The tokenizer.
        segmenter: Finds Chinese words; None: no word boundaries are kept.
    """

    def __init__(self, wordpiece: WordPiece, segmenter: Segmenter | None = None) -> None:
        self._wordpiece = wordpiece
        self._segmenter = segmenter

    def __call__(self, batch: Batch) -> Made:
        """Cuts the lines into sentences, the sentences into ids."""
        cut = [split_sentences(line.strip()) for line in batch.lines]
        sentences = [sentence for some in cut for sentence in some]
        ids, ends, begins = self._encode(sentences)
        flags = np.zeros(len(ids), dtype=np.bool_)
        flags[ends[np.diff(ends, prepend=0) > 0] - 1] = True
        edges = np.array([0, *batch.ends, len(batch.lines)], dtype=np.int64)
        hashes = line_hashes(batch.lines)
        before = np.concatenate([[0], np.cumsum(np.fromiter(map(len, cut), dtype=np.int64, count=len(cut)))])
        places = np.concatenate([[0], ends])[before[edges]]  # in tokens, of the pieces' edges
        return Made(
            items=batch.items,
            characters=batch.characters,
            ids=ids.astype(id_type(self._wordpiece.size)),
            sentence_ends=flags,
            word_begins=None if self._segmenter is None else begins,
            line_hashes=hashes,
            lines=np.diff(edges),
            chains=chains(hashes, edges),
            tokens=np.diff(places),
            sentences=_counts(flags, places),
            words=_counts(begins, places),
            unknown=_counts(ids == self._wordpiece.unk_id, places),
        )

    def _encode(self, sentences: list[str]) -> tuple[NDArray[np.int32], Ints, Bools]:
        """Ids end to end, how many end with each sentence, and whether a word begins with each."""
        encoded = self._wordpiece.encode_flat(sentences, chinese=self._segmenter is not None)
        begins: Bools = ~self._wordpiece.continues[encoded.ids]
        if self._segmenter is not None and encoded.chinese is not None and encoded.chinese.any():
            begins[encoded.chinese] = self._segmenter.begins("\n".join(sentences))
        return encoded.ids, encoded.ends, begins


def _counts(flags: Bools, places: Ints) -> Ints:
    """How many are set from each place up to the next."""
    before = np.zeros(len(flags) + 1, dtype=np.int64)
    np.cumsum(flags, out=before[1:])
    return np.diff(before[places])
