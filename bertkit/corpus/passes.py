"""The one pass over the text: lines cut into sentences, sentences into ids, ids appended to a store, all counted."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.documents import CorpusSettings, Progress, ReadReport, read_lines
from bertkit.corpus.sentences import split_sentences
from bertkit.corpus.sources import Corpus
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.writer import StoreWriter

_BATCH = 1_000_000  # characters tokenized at once


@dataclass(slots=True, kw_only=True)
class Pass:
    """What the pass counted.

    Attributes:
        documents: Documents kept, each with a token.
        dropped_documents: Documents without one.
        one_sentence_documents: Documents kept of one sentence.
        duplicate_documents: Documents kept whose text stood before.
        duplicate_lines: Lines that stood before.
        sentences: Sentences kept.
        tokens: Tokens.
        unknown_tokens: Tokens that are ``[UNK]``.
        document_hashes: ``[documents]`` uint64 of the text of each document kept.
    """

    documents: int = 0
    dropped_documents: int = 0
    one_sentence_documents: int = 0
    duplicate_documents: int = 0
    duplicate_lines: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    document_hashes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))


def encode_corpus(
    corpus: Corpus,
    wordpiece: WordPiece,
    settings: CorpusSettings,
    writer: StoreWriter,
    reading: ReadReport,
    progress: Progress | None = None,
) -> Pass:
    """Reads, cuts and encodes ``corpus`` into ``writer``; memory holds a batch of lines and eight bytes a line and document.

    Raises:
        DataError: A byte that is not UTF-8 under ``strict``.
    """
    encoder = _Encoder(wordpiece, writer)
    for line in read_lines(corpus, settings, reading, progress):
        if line is None:
            encoder.end_document()
        else:
            encoder.add_line(line)
    return encoder.finish()


class _Encoder:
    def __init__(self, wordpiece: WordPiece, writer: StoreWriter) -> None:
        self._wordpiece = wordpiece
        self._writer = writer
        self._result = Pass()
        self._sentences: list[str] = []
        self._ends: list[tuple[int, int]] = []  # of documents: sentences waiting so far, hash of the text
        self._characters = 0
        self._open_sentences = 0  # with a token, of the document whose end has not come yet
        self._line_hashes = array("Q")
        self._document_hashes = array("Q")
        self._document = hashlib.blake2b(digest_size=8)

    def add_line(self, line: str) -> None:
        text = line.strip()
        data = text.encode()
        self._document.update(data + b"\n")
        self._line_hashes.append(int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little"))
        self._sentences += split_sentences(text)
        self._characters += len(text)
        if self._characters > _BATCH:
            self._flush()

    def end_document(self) -> None:
        self._ends.append((len(self._sentences), int.from_bytes(self._document.digest(), "little")))
        self._document = hashlib.blake2b(digest_size=8)

    def _flush(self) -> None:
        encoded = self._wordpiece.encode(self._sentences)
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        ids = np.concatenate(encoded) if encoded else np.zeros(0, dtype=np.int32)
        offsets = np.cumsum(lengths) + self._result.tokens
        written = self._end_documents(lengths, offsets)
        sentence_ends = offsets[lengths > 0]
        self._writer.add(ids, sentence_ends, np.array(written, dtype=np.int64))
        self._result.tokens += len(ids)
        self._result.sentences += len(sentence_ends)
        self._result.unknown_tokens += int((ids == self._wordpiece.unk_id).sum())
        self._sentences, self._ends, self._characters = [], [], 0

    def _end_documents(self, lengths: NDArray[np.int64], offsets: NDArray[np.int64]) -> list[int]:
        """The ends of the documents that end in this batch and have a token."""
        result, written, start = self._result, [], 0
        with_token = np.concatenate([[0], np.cumsum(lengths > 0)])
        for end, text in self._ends:
            sentences = self._open_sentences + int(with_token[end] - with_token[start])
            if sentences:
                written.append(int(offsets[end - 1]) if end else result.tokens)
                self._document_hashes.append(text)
                result.documents += 1
                result.one_sentence_documents += sentences == 1
            else:
                result.dropped_documents += 1
            start, self._open_sentences = end, 0
        self._open_sentences += int(with_token[-1] - with_token[start])
        return written

    def finish(self) -> Pass:
        self._flush()
        result = self._result
        result.document_hashes = np.frombuffer(self._document_hashes, dtype=np.uint64).copy()
        lines = np.frombuffer(self._line_hashes, dtype=np.uint64)
        result.duplicate_lines = len(lines) - len(np.unique(lines))
        result.duplicate_documents = result.documents - len(np.unique(result.document_hashes))
        return result
