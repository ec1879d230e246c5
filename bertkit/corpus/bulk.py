"""Many texts in, their ids out, end to end: BERT's WordPiece at many times the speed of encoding text by text.

No rule of BERT's looks across a space or a punctuation mark, nor across a Chinese character where those are words. So a
text is cut there into runs that stand alone; most runs have come before, and the tokenizers library is asked for the others
only. Cutting and looking up are array operations over some hundred thousand characters at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertkit.corpus.characters import HAN, OTHER, PLAIN, SOLO, Characters
from bertkit.corpus.pieces import WORD, WORD_BYTES, ChunkTable, Ids, Pieces, Words, WordTable
from bertkit.corpus.vocabulary import Flags

_WINDOW = 1 << 17  # characters at once: their arrays stay in a core's own cache
_REMEMBERED_LENGTH = 24  # characters; longer chunks seldom come again
_ENCODED_AT_ONCE = 2048  # chunks
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=WORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """The ids of several texts.

    Attributes:
        ids: ``[n]`` int32, all texts end to end.
        ends: ``[texts]`` int64: the first ``ends[0]`` ids are the first text's, those up to ``ends[1]`` the second's.
        chinese: ``[n]`` bool, or None where it was not asked for: the token is one Chinese character (U+4E00–U+9FFF), which
            is a word of its own. Each such character of the texts has exactly one such token, in order; none has one where
            the tokenizer does not part Chinese characters (``tokenize_chinese_chars``).
    """

    ids: Ids
    ends: NDArray[np.int64]
    chinese: NDArray[np.bool_] | None = None


class BulkEncoder:
    """Encodes many texts at once and remembers words, in at most some 70 MB.

    Args:
        tokenizer: BERT's normalizer, pre-tokenizer and WordPiece, without special tokens.
        ids: The vocabulary by token; a text's single character that it lacks is ``unk_id``.
        size: V.
        unk_id: The id of ``[UNK]``.
        flags: As ``tokenizer``'s.
        window: Characters at once, a power of two; what is remembered is bounded by multiples of it.
    """

    def __init__(
        self, tokenizer: Tokenizer, ids: Mapping[str, int], size: int, unk_id: int, flags: Flags, *, window: int = _WINDOW
    ) -> None:
        self._window = window
        self._tokenizer = tokenizer
        self._model = tokenizer.model
        self._comma = ids.get(",")
        self._characters = Characters(ids, unk_id, flags)
        self._size = size
        self._pieces = Pieces(size)
        self._words = WordTable(8 * window)  # 22 MB; half of it, and what one window adds, is never all of it
        self._chunks = ChunkTable(window)  # some 25 MB
        whole = [word for word in ids if len(word) <= WORD_BYTES and word.isascii() and word.isalnum()][: 2 * window]
        self._words.add(_packed([word.encode() for word in whole]), np.array([ids[word] for word in whole], dtype=np.int32))

    def encode(self, texts: Sequence[str], *, chinese: bool) -> Encoded:
        """The ids of ``texts``; see :class:`Encoded`."""
        text = " ".join(texts)
        borders = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + 1)  # the next text begins
        ends = np.zeros(len(texts), dtype=np.int64)
        parts: list[Ids] = []
        marks: list[NDArray[np.bool_]] = []
        tokens = done = 0
        for start, codes, kinds in self._windows(text):
            window = text[start : start + len(codes)]
            begins, ids, token_ends = self._encode_window(window, codes, kinds)
            parts.append(ids)
            if chinese:
                marks.append(self._chinese(codes, kinds, begins, token_ends))
            last = int(np.searchsorted(borders, start + len(codes), side="right"))
            before = np.searchsorted(begins, borders[done:last] - start)
            ends[done:last] = tokens + np.concatenate([[0], token_ends])[before]
            tokens, done = tokens + len(ids), last
        ends[done:] = tokens
        none = np.zeros(0, dtype=np.int32)
        return Encoded(
            ids=np.concatenate([none, *parts]),
            ends=ends,
            chinese=np.concatenate([none.astype(np.bool_), *marks]) if chinese else None,
        )

    def _windows(self, text: str) -> Iterator[tuple[int, NDArray[np.integer], NDArray[np.uint8]]]:
        """Parts of the text: where each begins, its code points and their kinds. None ends within a run."""
        start, size = 0, self._window
        while start < len(text):
            some = text[start : start + size]
            codes: NDArray[np.integer] = (
                np.frombuffer(some.encode("ascii"), dtype=np.uint8)
                if some.isascii()
                else np.frombuffer(some.encode("utf-32-le", "surrogatepass"), dtype=np.dtype("<u4"))
            )
            kinds = self._characters.kinds.take(codes, mode="clip")
            whole, huge = start + size >= len(text), size > self._window
            if huge or not whole:
                apart = np.flatnonzero(kinds <= SOLO)
                if not len(apart) and not whole:  # a run of more than a window: it is taken alone
                    size *= 2
                    continue
                if len(apart):
                    cut = int(apart[0 if huge else -1]) + 1
                    codes, kinds = codes[:cut], kinds[:cut]
            yield start, codes, kinds
            start, size = start + len(codes), self._window

    def _encode_window(
        self, text: str, codes: NDArray[np.integer], kinds: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], Ids, NDArray[np.int64]]:
        """Where each run or character on its own begins, the ids of all of them, and the count of ids up to the end of each."""
        if self._words.full or self._chunks.full or len(self._pieces) > self._size + 24 * self._window:
            self._forget()
        run = kinds >= PLAIN
        first, last = run.copy(), run.copy()
        first[1:] &= ~run[:-1]
        last[:-1] &= ~run[1:]
        begins = np.flatnonzero(first | (kinds == SOLO))
        runs = first[begins]
        places = np.empty(len(begins), dtype=np.int32)
        places[~runs] = self._characters.ids[codes[begins[~runs]]]
        places[runs], remembered = self._runs(text, codes, kinds, begins[runs], np.flatnonzero(last) + 1)
        ids, counts = self._pieces.take(places)
        self._pieces.cut(remembered)
        return begins, ids, np.cumsum(counts, dtype=np.int64)

    def _runs(
        self,
        text: str,
        codes: NDArray[np.integer],
        kinds: NDArray[np.uint8],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> tuple[Ids, int]:
        """The places of the runs ``text[first:last]``, and the count of pieces that are worth keeping."""
        lengths = last - first
        other = lengths > WORD_BYTES
        other[np.searchsorted(first, np.flatnonzero(kinds == OTHER), side="right") - 1] = True
        places = np.empty(len(first), dtype=np.int32)
        places[~other] = self._find_words(codes, first[~other], lengths[~other])
        chunks = [text[start:end] for start, end in zip(first[other].tolist(), last[other].tolist(), strict=True)]
        places[other], remembered = self._find_chunks(chunks)
        return places, remembered

    def _find_words(self, codes: NDArray[np.integer], first: NDArray[np.int64], lengths: NDArray[np.int64]) -> Ids:
        letters = np.zeros(len(codes) + WORD_BYTES, dtype=np.uint8)
        self._characters.folded.take(codes, mode="clip", out=letters[: len(codes)])
        halves = np.ndarray((len(codes) + 9,), dtype=WORD, buffer=letters, strides=(1,))  # the eight bytes from each byte on
        words = np.empty((len(first), 2), dtype=WORD)
        words[:, 0] = halves[first] & _MASKS[np.minimum(lengths, 8)]
        words[:, 1] = halves[first + 8] & _MASKS[np.maximum(lengths, 8) - 8]
        places = self._words.find(words)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            asked: list[bytes] = words[missing].view(f"S{WORD_BYTES}").ravel().tolist()
            fresh = list(dict.fromkeys(asked))
            found = self._keep([[token.id for token in self._model.tokenize(word.decode())] for word in fresh])
            self._words.add(_packed(fresh), found)
            known = dict(zip(fresh, found.tolist(), strict=True))
            places[missing] = [known[word] for word in asked]
        return places

    def _find_chunks(self, chunks: list[str]) -> tuple[Ids, int]:
        places = self._chunks.find(chunks)
        missing = np.flatnonzero(places < 0)
        asked = [chunks[i] for i in missing.tolist()]
        fresh = sorted(dict.fromkeys(asked), key=len)
        short = sum(len(chunk) <= _REMEMBERED_LENGTH for chunk in fresh)
        found = self._pieces.add(*self._ask(fresh[:short]))
        self._chunks.add(fresh[:short], found)
        remembered = len(self._pieces)
        found = np.concatenate([found, self._pieces.add(*self._ask(fresh[short:]))])
        known = dict(zip(fresh, found.tolist(), strict=True))
        places[missing] = [known[chunk] for chunk in asked]
        return places, remembered

    def _keep(self, found: list[list[int]]) -> Ids:
        return self._pieces.add(*_flat(found))

    def _ask(self, chunks: list[str]) -> tuple[Ids, Ids]:
        """What the tokenizers library says of each chunk: the ids of all, end to end, and how many each has."""
        ids, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)]
        for start in range(0, len(chunks), _ENCODED_AT_ONCE):
            some, counted = self._ask_at_once(chunks[start : start + _ENCODED_AT_ONCE])
            ids.append(some)
            counts.append(counted)
        return np.concatenate(ids), np.concatenate(counts)

    def _ask_at_once(self, chunks: list[str]) -> tuple[Ids, Ids]:
        # One text of all chunks is two to three times as fast as a batch of them. No chunk has a comma, nor becomes one.
        if self._comma is not None:
            ids = np.array(self._tokenizer.encode(" , ".join(chunks), add_special_tokens=False).ids, dtype=np.int32)
            commas = np.flatnonzero(ids == self._comma)
            if len(commas) == len(chunks) - 1:
                return ids[ids != self._comma], np.diff(commas, prepend=-1, append=len(ids)).astype(np.int32) - 1
        return _flat([encoding.ids for encoding in self._tokenizer.encode_batch_fast(chunks, add_special_tokens=False)])

    def _forget(self) -> None:
        """Only what came again since the last time stays."""
        words, word_places = self._words.drain()
        chunks, chunk_places = self._chunks.drain()
        old, self._pieces = self._pieces, Pieces(self._size)
        self._words.add(words, self._pieces.add(*old.take(word_places)))
        self._chunks.add(chunks, self._pieces.add(*old.take(chunk_places)))

    def _chinese(
        self,
        codes: NDArray[np.integer],
        kinds: NDArray[np.uint8],
        begins: NDArray[np.int64],
        token_ends: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        marks = np.zeros(int(token_ends[-1]) if len(token_ends) else 0, dtype=np.bool_)
        at = codes[begins]
        marks[token_ends[(kinds[begins] == SOLO) & (at >= HAN.start) & (at < HAN.stop)] - 1] = True
        return marks


def _flat(found: list[list[int]]) -> tuple[Ids, Ids]:
    counts = np.fromiter(map(len, found), dtype=np.int32, count=len(found))
    return np.fromiter(chain.from_iterable(found), dtype=np.int32, count=int(counts.sum())), counts


def _packed(words: Sequence[bytes]) -> Words:
    return np.array(words, dtype=f"S{WORD_BYTES}").view(WORD).reshape(-1, 2)
