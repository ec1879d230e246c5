"""Runs of letters in, their ids out: looked up where they have come before, else asked of the tokenizers library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertkit.corpus.characters import OTHER, PLANE
from bertkit.corpus.pieces import WORD, Ids, Pieces, Words, WordTable

_SHORT, _LONG, _WIDE = 16, 32, 32  # bytes of a run: ASCII, ASCII, UTF-16; longer ones seldom come again
BEHIND = 32  # characters behind the last of a window, so that a word's room lies within
_ENCODED_AT_ONCE = 2048  # runs
_KEPT_AT_ONCE = 1 << 14  # words


def _masks(room: int, size: int) -> Words:
    """By characters of ``size`` bytes in a word: all bits of its bytes."""
    inside = np.arange(room) < size * np.arange(room // size + 1)[:, None]
    return (inside * 255).astype(np.uint8).view(WORD)


_MASKS = {(room, size): _masks(room, size) for room, size in ((_SHORT, 1), (_LONG, 1), (_WIDE, 2))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some characters.

    Attributes:
        text: The characters.
        codes: ``[n]``: their code points.
        kinds: ``[n]`` uint8: their kinds (:mod:`bertkit.corpus.characters`).
        letters: ``[n + BEHIND]`` uint8: the letters of a ``PLAIN``, zeros at the end.
    """

    text: str
    codes: NDArray[np.integer]
    kinds: NDArray[np.uint8]
    letters: NDArray[np.uint8]


class LetterRuns:
    """Finds the ids of runs and remembers them, in at most some 30 MB.

    Args:
        tokenizer: BERT's normalizer, pre-tokenizer and WordPiece, without special tokens.
        ids: The vocabulary by token.
        size: V.
        window: The most characters of a text with several runs, a power of two; multiples of it bound what is remembered.
    """

    def __init__(self, tokenizer: Tokenizer, ids: Mapping[str, int], size: int, window: int) -> None:
        self._tokenizer = tokenizer
        self._model = tokenizer.model
        self._comma = ids.get(",")
        self._size = size
        self._window = window
        self._most = 6 * window  # pieces beside the vocabulary: 3 MB
        self._pieces = Pieces(size, self._most + window)
        # Half of each, and what one window adds, is never all of it.
        self._short = WordTable(4 * window, _SHORT // 8)  # 11 MB
        self._long = WordTable(window // 2, _LONG // 8)  # 2 MB
        self._wide = WordTable(2 * window, _WIDE // 8)  # 10 MB
        self._tables = (self._short, self._long, self._wide)
        whole = [word for word in ids if len(word) <= _SHORT and word.isascii() and word.isalnum()][:window]
        self._short.add(
            _words([word.encode() for word in whole], _SHORT), np.array([2 * ids[word] for word in whole], dtype=np.int32)
        )

    def find(self, window: Window, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[Ids, int]:
        """The place of each run of the window, and the count of pieces that are worth keeping (:meth:`cut`).

        Args:
            window: At most ``window`` characters, or a single run.
            first: ``[runs]``: where each begins; it has letters and others alone.
            last: ``[runs]``: the end of each.
        """
        if len(self._pieces) > 2 * self._size + self._most or any(table.full for table in self._tables):
            self._forget()
        codes, kinds = window.codes, window.kinds
        lengths = last - first
        other = _holding(first, kinds == OTHER)
        far = lengths > np.where(other, _WIDE // 2, _LONG)
        if other.any():  # two bytes hold no character behind U+FFFF, and U+0000 means the end of a word
            far |= _holding(first, (codes >= PLANE) | (codes == 0))
        short = ~other & (lengths <= _SHORT)
        places = np.empty(len(first), dtype=np.int32)
        places[short] = self._known(self._short, _packed(window.letters, first[short], lengths[short], _SHORT), self._spell)
        rest = np.flatnonzero(~(short | far | other))
        if len(rest):
            places[rest] = self._known(self._long, _packed(window.letters, first[rest], lengths[rest], _LONG), self._spell)
        rest = np.flatnonzero(other & ~far)
        if len(rest):
            units = np.zeros(len(codes) + BEHIND, dtype=np.dtype("<u2"))
            units[: len(codes)] = codes
            places[rest] = self._known(self._wide, _packed(units, first[rest], lengths[rest], _WIDE), self._ask_wide)
        remembered = len(self._pieces)
        rest = np.flatnonzero(far)
        if len(rest):
            asked = [window.text[start:end] for start, end in zip(first[rest].tolist(), last[rest].tolist(), strict=True)]
            fresh = list(dict.fromkeys(asked))
            known = dict(zip(fresh, self._pieces.add(*self._ask(fresh)).tolist(), strict=True))
            places[rest] = [known[run] for run in asked]
        return places, remembered

    def take(self, places: Ids) -> tuple[Ids, Ids]:
        """The ids at ``places``, end to end, and how many each has (both int32)."""
        return self._pieces.take(places)

    def cut(self, remembered: int) -> None:
        """Forgets what is not worth keeping, once its ids are taken."""
        self._pieces.cut(remembered)

    def _known(self, table: WordTable, words: Words, ask: Callable[[list[bytes]], tuple[Ids, Ids]]) -> Ids:
        places = table.find(words)
        missing = np.flatnonzero(places < 0)
        if len(missing):
            room = words.itemsize * words.shape[1]
            asked: list[bytes] = words[missing].view(f"S{room}").ravel().tolist()
            fresh = list(dict.fromkeys(asked))
            found = self._pieces.add(*ask(fresh))
            table.add(_words(fresh, room), found)
            known = dict(zip(fresh, found.tolist(), strict=True))
            places[missing] = [known[word] for word in asked]
        return places

    def _spell(self, words: list[bytes]) -> tuple[Ids, Ids]:
        """ASCII letters and digits need no more than the longest match first."""
        return _flat([[token.id for token in self._model.tokenize(word.decode())] for word in words])

    def _ask_wide(self, words: list[bytes]) -> tuple[Ids, Ids]:
        return self._ask([(word + b"\0" * (len(word) % 2)).decode("utf-16-le", "surrogatepass") for word in words])

    def _ask(self, runs: list[str]) -> tuple[Ids, Ids]:
        """What the tokenizers library says of each run: the ids of all, end to end, and how many each has."""
        ids, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)]
        for start in range(0, len(runs), _ENCODED_AT_ONCE):
            some, counted = self._ask_at_once(runs[start : start + _ENCODED_AT_ONCE])
            ids.append(some)
            counts.append(counted)
        return np.concatenate(ids), np.concatenate(counts)

    def _ask_at_once(self, runs: list[str]) -> tuple[Ids, Ids]:
        # One text of all runs is two to three times as fast as a batch of them. No run has a comma, nor becomes one.
        if self._comma is not None:
            ids = np.array(self._tokenizer.encode(" , ".join(runs), add_special_tokens=False).ids, dtype=np.int32)
            commas = np.flatnonzero(ids == self._comma)
            if len(commas) == len(runs) - 1:
                return ids[ids != self._comma], np.diff(commas, prepend=-1, append=len(ids)).astype(np.int32) - 1
        return _flat([encoding.ids for encoding in self._tokenizer.encode_batch_fast(runs, add_special_tokens=False)])

    def _forget(self) -> None:
        """Only what came again since the last time stays."""
        old, self._pieces = self._pieces, Pieces(self._size, self._most + self._window)
        for table in self._tables:
            words, places = table.drain()
            for start in range(0, len(words), _KEPT_AT_ONCE):
                some = slice(start, start + _KEPT_AT_ONCE)
                table.add(words[some], self._pieces.add(*old.take(places[some])))
        self._most = max(self._most, 2 * (len(self._pieces) - 2 * self._size))  # words of very many pieces each


def _flat(found: list[list[int]]) -> tuple[Ids, Ids]:
    counts = np.fromiter(map(len, found), dtype=np.int32, count=len(found))
    return np.fromiter(chain.from_iterable(found), dtype=np.int32, count=int(counts.sum())), counts


def _words(listed: list[bytes], room: int) -> Words:
    return np.array(listed, dtype=f"S{room}").view(WORD).reshape(len(listed), room // WORD.itemsize)


def _packed(characters: NDArray[np.integer], first: NDArray[np.int64], lengths: NDArray[np.int64], room: int) -> Words:
    """The words that begin at ``first``, in ``room`` bytes each."""
    size = characters.itemsize
    places = len(characters) - room // size + 1
    rooms = np.ndarray((places,), dtype=f"V{room}", buffer=characters, strides=(size,))[first]
    words = rooms.view(WORD).reshape(len(first), room // WORD.itemsize)
    words &= _MASKS[room, size].take(lengths, axis=0)
    return words


def _holding(first: NDArray[np.int64], marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[runs]`` bool: a run, by where it begins, holds a marked character; every marked character is in a run."""
    holding = np.zeros(len(first), dtype=np.bool_)
    holding[np.searchsorted(first, np.flatnonzero(marked), side="right") - 1] = True
    return holding
