"""What the commonest characters are to BERT: white space, a word of their own, or a letter of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.vocabulary import Flags

SPACES = " \t\n\r\u00a0\u3000"
"""White space; other white space is rare enough to be left to the tokenizers library."""

MARKS = "–—‘’“”…•·、。〈〉《》「」『』【】〔〕〖〗！％（），：；？"
"""Punctuation beside ASCII's: each is a word of its own, whatever stands beside it. Other punctuation is left to the library."""

HAN = range(0x4E00, 0xA000)
"""Chinese characters; those of other blocks are left to the library."""

SPACE, SOLO, PLAIN, OTHER = range(4)
"""Kinds of characters: white space; a word of its own; an ASCII letter or digit; any other, for the library to judge."""

PLANE = 1 << 16
"""Facts are told by code point up to here."""


class Characters:
    """Facts by code point, up to U+FFFF; whatever lies behind is as the last: ``OTHER``.

    Attributes:
        facts: ``[65536]`` uint16: the kind; for a ``PLAIN``, times 256 the letter in the case that the vocabulary has it in.
        ids: ``[65536]`` int32: the id of a ``SOLO``.
    """

    def __init__(self, ids: Mapping[str, int], unk_id: int, flags: Flags) -> None:
        self.facts = np.full(PLANE, OTHER, dtype=np.uint16)
        self.ids = np.full(PLANE, unk_id, dtype=np.int32)
        printable = [chr(code) for code in range(0x21, 0x7F)]
        letters = [c for c in printable if c.isalnum()]
        self.facts[_codes(letters)] = PLAIN + 256 * _codes(c.lower() if flags.lowercase else c for c in letters)
        self.facts[_codes(SPACES)] = SPACE
        alone = [c for c in printable if not c.isalnum()] + list(MARKS)
        if flags.tokenize_chinese_chars:
            alone += map(chr, HAN)
        self.facts[_codes(alone)] = SOLO
        self.ids[_codes(alone)] = [ids.get(c, unk_id) for c in alone]


def _codes(characters: Iterable[str]) -> NDArray[np.int64]:
    return np.array([ord(character) for character in characters])
