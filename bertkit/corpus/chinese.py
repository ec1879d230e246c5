"""Where Chinese words begin: by a list of words, or by jieba or rjieba where one of them is installed.

BERT's vocabularies make each Chinese character a token, so pieces do not tell words apart; what is told here is stored
beside the ids when a text is built, and whole words are masked by it.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.word_list import FIRST, LAST, WordList
from bertkit.errors import MissingError

LIBRARIES = ("jieba", "rjieba")
"""Segmenters that are used if they are installed."""

Bools = NDArray[np.bool_]

_OTHERS = re.compile(f"[^{chr(FIRST)}-{chr(LAST)}]+")


class Segmenter(Protocol):
    """Parts runs of Chinese characters into words; picklable, so that every process of a build has it."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text might be parted otherwise."""

    def begins(self, text: str) -> Bools:
        """For each character of U+4E00–U+9FFF in ``text``, in order: does a word begin there?

        The first of a run always does. Texts joined by a line end are parted as one by one, and sooner.
        """


class LibrarySegmenter:
    """The words of jieba or rjieba, new ones that they guess included.

    Args:
        name: ``jieba`` or ``rjieba``.

    Raises:
        MissingError: It is not installed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            self.fingerprint = f"{name} {version(name)} {_dictionary(name)}"
            self._cut: Callable[[str], Iterable[str]] = importlib.import_module(name).cut
        except ImportError:
            raise MissingError(
                f"{name} is not installed, so it cannot tell Chinese words apart.",
                where=f"--words {name}",
                hint=f"pip install {name}, or give a file of `word<TAB>frequency` lines.",
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return (LibrarySegmenter, (self.name,))

    def begins(self, text: str) -> Bools:
        """As :class:`Segmenter` says."""
        runs = _OTHERS.sub("\n", text).strip("\n")  # both part lines on their own; Latin letters would join a word
        begins = np.zeros(len(runs), dtype=bool)
        ends = list(itertools.accumulate(map(len, self._cut(runs)), initial=0))
        begins[ends[:-1]] = True
        chinese: Bools = np.frombuffer(runs.encode("utf-32-le"), dtype="<u4") != ord("\n")
        return begins[chinese]


def segmenter_of(words: str | None) -> Segmenter | None:
    """The segmenter that the setting ``corpus.words`` names: ``jieba``, ``rjieba`` or a file of words; None for None.

    Raises:
        MissingError: The library is not installed, or the file cannot be read.
        DataError: The file is no list of words.
    """
    if words is None:
        return None
    return LibrarySegmenter(words) if words in LIBRARIES else WordList.load(Path(words))


def _dictionary(name: str) -> str:
    """A digest of jieba's dictionary, which people replace; rjieba's is part of its library."""
    module = importlib.import_module(name)
    if name != "jieba":
        return ""
    module.setLogLevel("WARNING")  # it tells of its dictionary at each start
    with module.dt.get_dict_file() as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
