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

from bertkit.corpus.characters import HAN, PLAIN, PLANE, SOLO, Characters
from bertkit.corpus.letter_runs import BEHIND, LetterRuns, Window
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
    """Encodes many texts at once and remembers words (:class:`bertkit.corpus.letter_runs.LetterRuns`), in at most some 30 MB.

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
        self._runs = LetterRuns(tokenizer, ids, size, window)

    def encode(self, texts: Sequence[str], *, chinese: bool) -> Encoded:
        """The ids of ``texts``; see :class:`Encoded`."""
        text = " ".join(texts)
        borders = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + 1)  # the next text begins
        ends = np.zeros(len(texts), dtype=np.int64)
        parts: list[Ids] = []
        marks: list[NDArray[np.bool_]] = []
        tokens = done = 0
        for start, window in self._windows(text):
            begins, ids, token_ends = self._encode_window(window)
            parts.append(ids)
            if chinese:
                marks.append(self._chinese(window, begins, token_ends))
            last = int(np.searchsorted(borders, start + len(window.text), side="right"))
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

    def _windows(self, text: str) -> Iterator[tuple[int, Window]]:
        """Parts of the text, and where each begins. None ends within a run."""
        start, size = 0, self._window
        while start < len(text):
            window = self._judged(text[start : start + size])
            whole, huge = start + size >= len(text), size > self._window
            if huge or not whole:
                apart = window.kinds <= SOLO
                if not apart.any():
                    if not whole:  # a run of more than a window: it is taken alone
                        size *= 2
                        continue
                else:
                    cut = int(apart.argmax()) + 1 if huge else len(apart) - int(apart[::-1].argmax())
                    window = _cut(window, cut)
            yield start, window
            start, size = start + len(window.text), self._window

    def _judged(self, text: str) -> Window:
        codes: NDArray[np.integer]
        if text.isascii():
            codes = known = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
        else:
            codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.dtype("<u4"))
            known = np.minimum(codes, PLANE - 1)
        facts = self._characters.facts.take(known, mode="wrap")  # none has to wrap: it is the fastest mode
        letters = np.zeros(len(text) + BEHIND, dtype=np.uint8)
        letters[: len(text)] = facts >> 8
        return Window(text=text, codes=codes, kinds=facts.astype(np.uint8), letters=letters)

    def _encode_window(self, window: Window) -> tuple[NDArray[np.int64], Ids, NDArray[np.int64]]:
        """Where each run or character on its own begins, the ids of all of them, and the count of ids up to the end of each."""
        run = window.kinds >= PLAIN
        first, last = run.copy(), run.copy()
        first[1:] &= ~run[:-1]
        last[:-1] &= ~run[1:]
        begins = np.flatnonzero(first | (window.kinds == SOLO))
        runs = first[begins]
        places = np.empty(len(begins), dtype=np.int32)
        places[~runs] = 2 * self._characters.ids[window.codes[begins[~runs]]]
        places[runs], remembered = self._runs.find(window, begins[runs], np.flatnonzero(last) + 1)
        ids, counts = self._runs.take(places)
        self._runs.cut(remembered)
        return begins, ids, np.cumsum(counts, dtype=np.int64)

    def _chinese(self, window: Window, begins: NDArray[np.int64], token_ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        marks = np.zeros(int(token_ends[-1]) if len(token_ends) else 0, dtype=np.bool_)
        codes = window.codes[begins]
        marks[token_ends[(window.kinds[begins] == SOLO) & (codes >= HAN.start) & (codes < HAN.stop)] - 1] = True
        return marks


def _cut(window: Window, length: int) -> Window:
    letters = window.letters[: length + BEHIND].copy()
    letters[length:] = 0
    return Window(text=window.text[:length], codes=window.codes[:length], kinds=window.kinds[:length], letters=letters)
