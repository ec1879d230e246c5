"""Many texts in, their ids out, end to end: BERT's WordPiece at many times the speed of encoding text by text.

No rule of BERT's looks across a space or a punctuation mark, nor across a Chinese character where those are words. So a
text is cut there into runs that stand alone; most runs have come before, and the tokenizers library is asked for the others
only. Cutting and looking up are array operations over some hundred thousand characters at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertkit.corpus.characters import HAN, PLAIN, SOLO, Characters
from bertkit.corpus.letter_runs import LetterRuns
from bertkit.corpus.pieces import Ids
from bertkit.corpus.vocabulary import Flags

_WINDOW = 1 << 17  # characters at once: their arrays stay in a core's own cache


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
    """Encodes many texts at once and remembers words (:class:`bertkit.corpus.letter_runs.LetterRuns`), in at most some 45 MB.

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
        self._characters = Characters(ids, unk_id, flags)
        self._runs = LetterRuns(tokenizer, ids, size, self._characters, window)

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
        run = kinds >= PLAIN
        first, last = run.copy(), run.copy()
        first[1:] &= ~run[:-1]
        last[:-1] &= ~run[1:]
        begins = np.flatnonzero(first | (kinds == SOLO))
        runs = first[begins]
        places = np.empty(len(begins), dtype=np.int32)
        places[~runs] = 2 * self._characters.ids[codes[begins[~runs]]]
        places[runs], remembered = self._runs.find(text, codes, kinds, begins[runs], np.flatnonzero(last) + 1)
        ids, counts = self._runs.take(places)
        self._runs.cut(remembered)
        return begins, ids, np.cumsum(counts, dtype=np.int64)

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
