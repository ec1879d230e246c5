"""Which script a letter belongs to, by the first word of its Unicode name: Latin, Han, Cyrillic, Arabic …"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

CODE_POINTS = 0x110000
_CALLED = {"CJK": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana", "FULLWIDTH": "Latin", "HALFWIDTH": "Kana", "KANGXI": "Han"}


@lru_cache(maxsize=1 << 16)
def script_of(letter: str) -> str | None:
    """The script of a character; None where it is no letter, or a letter of none (``ª``, ``ʰ``)."""
    if not letter.isalpha():
        return None
    name = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    if name in ("", "MODIFIER", "FEMININE", "MASCULINE", "MICRO", "SCRIPT", "MATHEMATICAL", "DOUBLE"):
        return None
    return _CALLED.get(name, name.capitalize())


def script_of_text(text: str) -> str | None:
    """The script of a text's first letter; None where it has none."""
    return next((script for script in map(script_of, text) if script is not None), None)


def count_code_points(text: str) -> NDArray[np.int64]:
    """``[0x110000]`` how often each code point stands in the text."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    return np.bincount(points, minlength=CODE_POINTS)


def letters_of_scripts(counts: NDArray[np.int64]) -> dict[str, int]:
    """Letters of each script, given how often each code point stands; the commonest first."""
    found: dict[str, int] = {}
    for point in np.flatnonzero(counts).tolist():
        script = script_of(chr(point))
        if script is not None:
            found[script] = found.get(script, 0) + int(counts[point])
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def scripts_of_tokens(vocabulary: Sequence[str], without: Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Scripts by number, and the number of each token's, ``[V]``; 0 (named ``""``) for one without a letter or in ``without``."""
    numbers = {"": 0}
    left_out = set(without)
    found = np.zeros(len(vocabulary), dtype=np.int64)
    for index, token in enumerate(vocabulary):
        script = None if token in left_out else script_of_text(token.removeprefix("##"))
        if script is not None:
            found[index] = numbers.setdefault(script, len(numbers))
    return list(numbers), found
