"""A text in memory as ids, each of them knowing its word in the raw text: so that any vocabulary speaks of the same words.

It is a store of tokens for whoever makes examples (:class:`bertkit.batches.text.Store`), made afresh and kept nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.documents import CorpusSettings, Progress, ReadReport, read_lines
from bertkit.corpus.sentences import split_sentences
from bertkit.corpus.sources import Corpus
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.words import CODE_POINTS, Bools, Ints, raw_words

_BLOCK = 1 << 18  # characters tokenised together


@dataclass(frozen=True, slots=True, kw_only=True)
class WordedText:
    """N tokens, S sentences, D documents that have tokens, R documents of the raw text, W words.

    Attributes:
        ids: ``[N]`` int32.
        word: ``[N]`` the number of the raw word in which each token begins, never falling.
        sizes: ``[W]`` characters of each word, whether or not the vocabulary has a token for it.
        word_ends: ``[R]`` words up to the end of each document of the raw text.
        sentence_ends: ``[S]`` token offsets, rising.
        document_ends: ``[D]`` token offsets, rising.
        alphabet: Different characters in all words.
    """

    ids: NDArray[np.int32]
    word: Ints
    sizes: Ints
    word_ends: Ints
    sentence_ends: Ints
    document_ends: Ints
    alphabet: int
    fingerprint: str = ""  # it is kept nowhere, so nothing has to be told apart from it

    @property
    def counts(self) -> dict[str, int]:
        """Documents, sentences, tokens and words."""
        return {
            "documents": len(self.document_ends),
            "sentences": len(self.sentence_ends),
            "tokens": len(self.ids),
            "words": len(self.sizes),
        }

    def sentence_ends_between(self, first: int, last: int) -> Ints:
        """Token offsets of the sentence ends behind ``first`` and up to ``last``."""
        low, high = np.searchsorted(self.sentence_ends, [first, last], side="right")
        return self.sentence_ends[low:high]

    def word_begins(self, places: Ints) -> Bools:
        """Does a raw word begin at each place?"""
        begins: Bools = (places == 0) | (self.word[places] != self.word[places - 1])
        return begins


def read_worded(
    corpus: Corpus,
    settings: CorpusSettings,
    wordpiece: WordPiece,
    *,
    documents: int | None = None,
    progress: Progress | None = None,
) -> WordedText:
    """Reads and tokenises a text.

    Args:
        corpus: The files.
        settings: How they become documents.
        wordpiece: The vocabulary.
        documents: The first so many documents alone.
        progress: Told the bytes done and the bytes in all.

    Raises:
        DataError: A byte that is not UTF-8 (exit 3), with its place.
    """
    making = _Making(wordpiece)
    for sentence in _sentences(corpus, settings, documents, progress):
        making.add(sentence)
    return making.done()


def _sentences(
    corpus: Corpus, settings: CorpusSettings, documents: int | None, progress: Progress | None
) -> Iterator[str | None]:
    """Every sentence in order; None behind the last one of each document."""
    ended = 0
    for line in read_lines(corpus, settings, ReadReport(), progress):
        if line is not None:
            yield from split_sentences(line)
            continue
        yield None
        ended += 1
        if ended == documents:
            return


class _Making:
    """Sentences in, some of them tokenised at a time."""

    def __init__(self, wordpiece: WordPiece) -> None:
        self.wordpiece = wordpiece
        self.waiting: list[str] = []
        self.characters = self.tokens = self.words = 0
        self.ids: list[NDArray[np.int32]] = []
        self.word: list[Ints] = []
        self.sizes: list[Ints] = []
        self.sentence_ends: list[Ints] = []
        self.document_ends: list[int] = []
        self.word_ends: list[int] = []
        self.met = np.zeros(CODE_POINTS, dtype=bool)

    def add(self, sentence: str | None) -> None:
        if sentence is None:
            self._encode()
            self.word_ends.append(self.words)
            if self.tokens > (self.document_ends[-1] if self.document_ends else 0):
                self.document_ends.append(self.tokens)
            return
        self.waiting.append(sentence)
        self.characters += len(sentence)
        if self.characters >= _BLOCK:
            self._encode()

    def _encode(self) -> None:
        if not self.waiting:
            return
        text = "\n".join(self.waiting)
        words = raw_words(text)
        begins = np.cumsum([0, *(len(sentence) + 1 for sentence in self.waiting[:-1])])
        encoded = self.wordpiece.encode_with_offsets(self.waiting)
        counts = np.array([len(ids) for ids, _ in encoded])
        places = np.concatenate([offsets[:, 0] for _, offsets in encoded]) + np.repeat(begins, counts)
        self.ids.append(np.concatenate([ids for ids, _ in encoded]))
        self.word.append(words.owner[places] + self.words)
        self.sizes.append(words.sizes)
        self.sentence_ends.append(self.tokens + np.cumsum(counts)[counts > 0])
        self.met[words.codes] = True
        self.tokens += int(counts.sum())
        self.words += len(words.sizes)
        self.waiting, self.characters = [], 0

    def done(self) -> WordedText:
        none = np.zeros(0, dtype=np.int64)
        return WordedText(
            ids=np.concatenate([none.astype(np.int32), *self.ids]),
            word=np.concatenate([none, *self.word]),
            sizes=np.concatenate([none, *self.sizes]),
            word_ends=np.array(self.word_ends, dtype=np.int64),
            sentence_ends=np.concatenate([none, *self.sentence_ends]),
            document_ends=np.array(self.document_ends, dtype=np.int64),
            alphabet=int(self.met.sum()),
        )
