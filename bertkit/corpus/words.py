"""Words of raw text, the same whatever the vocabulary: what two vocabularies can be compared by.

A word is a run of characters between white space; a punctuation mark and a Chinese character are words of their own. These
are the borders at which every BERT tokenizer parts text before it looks anything up, so its pieces lie within words. They
are read off the text as it stands, before any lowercasing or stripping of accents. What BERT's cleaning takes away (control
and format characters, U+FFFD) is no part of a word and parts none.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CODE_POINTS = 0x110000
_UNKNOWN, _NOTHING, _SPACE, _ALONE, _LETTER = range(5)
_ASCII_MARKS = frozenset(map(chr, [*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)]))
# BERT's own list of Chinese characters (google-research/bert, tokenization.py, _is_chinese_char).
_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawWords:
    """The words of a text of n characters; W of them.

    Attributes:
        owner: ``[n]`` the number of the word that each character is in, or stands behind; -1 before the first.
        sizes: ``[W]`` characters of each.
        codes: The characters of all words, as code points, in order.
    """

    owner: Ints
    sizes: Ints
    codes: NDArray[np.uint32]


def raw_words(text: str) -> RawWords:
    """The words of a text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _kinds(codes)
    seen = np.flatnonzero(kinds != _NOTHING)
    kind = kinds[seen]
    before = np.append(np.uint8(_SPACE), kind)[:-1]
    begins = np.zeros(len(codes), dtype=bool)
    begins[seen[(kind == _ALONE) | ((kind == _LETTER) & (before != _LETTER))]] = True
    owner = np.cumsum(begins) - 1
    own = kinds >= _ALONE
    return RawWords(owner=owner, sizes=np.bincount(owner[own], minlength=int(begins.sum())), codes=codes[own])


def _kinds(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    table = _table()
    found = table[codes]
    if len(new := np.unique(codes[found == _UNKNOWN])):
        table[new] = [_kind(chr(code)) for code in new.tolist()]
        found = table[codes]
    return found


@cache
def _table() -> NDArray[np.uint8]:
    """The kinds of code points, filled in as they come."""
    return np.full(CODE_POINTS, _UNKNOWN, dtype=np.uint8)


def _kind(character: str) -> int:
    category = unicodedata.category(character)
    if character in "\t\n\r" or category[0] == "Z":
        return _SPACE
    if category[0] == "C" or character == "\ufffd":
        return _NOTHING
    if category[0] == "P" or character in _ASCII_MARKS:
        return _ALONE
    return _ALONE if any(low <= ord(character) <= high for low, high in _CHINESE) else _LETTER
