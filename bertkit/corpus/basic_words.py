"""BERT's basic splitting of a raw text: its words by their places, whatever the vocabulary and the casing."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _splitter() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    # A model of one entry: each word is one token, whose offsets are those of the raw text.
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def basic_words(text: str) -> list[tuple[int, int]]:
    """The characters of each word, (first, behind the last).

    Words are parted at white space; punctuation marks and Chinese characters are words of their own, and characters that
    BERT's cleaning takes away are in none (but within a word).

    >>> basic_words("Mr. O'Hara, 北京")
    [(0, 2), (2, 3), (4, 5), (5, 6), (6, 10), (10, 11), (12, 13), (13, 14)]
    """
    return [(int(start), int(end)) for start, end in _splitter().encode(text, add_special_tokens=False).offsets]
