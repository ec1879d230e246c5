from __future__ import annotations

import random
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.bulk import BulkEncoder
from bertkit.corpus.characters import HAN, MARKS, SPACES
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from tests.corpus.test_wordpiece import FLAGS, SMALL, TEXTS, theirs

LETTERS = [*"abcdefghijklmnopqrstuvwxyz", *("##" + c for c in "abcdefghijklmnopqrstuvwxyz")]


def bulk(wordpiece: WordPiece, window: int) -> BulkEncoder:
    return BulkEncoder(wordpiece._tokenizer, wordpiece._ids, wordpiece.size, wordpiece.unk_id, wordpiece.flags, window=window)


def by_the_library(wordpiece: WordPiece, texts: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in wordpiece._tokenizer.encode_batch(texts, add_special_tokens=False)]


def parts(encoder: BulkEncoder, texts: list[str]) -> list[list[int]]:
    encoded = encoder.encode(texts, chinese=False)
    return [part.tolist() for part in np.split(encoded.ids, encoded.ends[:-1])]


class Encoders(list[tuple[WordPiece, BulkEncoder, Any]]):
    def __repr__(self) -> str:
        return "Encoders()"  # a failure shows the texts


@pytest.fixture(scope="module")
def small() -> Encoders:
    found = Encoders()
    for flags in FLAGS:
        for vocabulary in (SMALL, [token for token in SMALL if token != ","]):
            wordpiece = WordPiece(vocabulary, flags)
            found.append((wordpiece, bulk(wordpiece, 16), theirs(vocabulary, flags)))
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXTS | st.sampled_from(["a" * 17, "ab" * 60, "é" * 30, "x,y;z" * 20]), min_size=1, max_size=5))
def test_windows_of_sixteen_characters_and_tables_that_overflow(small: Encoders, texts: list[str]) -> None:
    for _, encoder, reference in small:
        expected = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
        assert parts(encoder, texts) == expected
        assert parts(encoder, texts) == expected  # what is remembered now


def test_marks_and_spaces_are_what_they_are_said_to_be() -> None:
    """Beside whatever character, cased or not: the table of characters and the tokenizers library agree."""
    beside = ["", "a", "é", "\u0301", "\u0345", "\u200d", "中", "\u1161", "\U0001d165", "\u0338"]
    characters = [*MARKS, *SPACES, *map(chr, range(128)), *map(chr, range(HAN.start, HAN.stop, 1000))]
    texts = [before + character + behind for character in characters for before in beside for behind in beside]
    for flags in FLAGS[:2] + FLAGS[-2:]:
        wordpiece = WordPiece([*SPECIALS, *LETTERS, *MARKS, "中", "##\u0301", "\u0301"], flags)
        assert parts(bulk(wordpiece, 1024), texts) == by_the_library(wordpiece, texts)


def test_a_vocabulary_without_a_word_or_without_anything_that_the_text_has() -> None:
    texts = ["a word", "中é,", "x" * 40, "ü" * 40]
    for more in ([], ["中"], ["##a"], ["a" * 17, "a" * 33]):
        wordpiece = WordPiece([*SPECIALS, *more], Flags(lowercase=False))
        assert parts(bulk(wordpiece, 16), texts) == by_the_library(wordpiece, texts)


def test_no_character_becomes_a_comma() -> None:
    """Runs are told apart by commas where the library is asked for many, so none may turn into one."""
    for code in range(0x80, sys.maxunicode + 1):
        assert "," not in unicodedata.normalize("NFD", chr(code)).lower()


@pytest.mark.slow
@pytest.mark.parametrize("flags", [Flags(lowercase=True), Flags(lowercase=False)])
def test_every_character_of_the_first_three_planes(flags: Flags) -> None:
    wordpiece = WordPiece([*SPECIALS, *LETTERS, *MARKS, *",;=", "中", "##\u0301"], flags)
    texts = [f"a{chr(code)}b" for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    assert parts(bulk(wordpiece, 1 << 17), texts) == by_the_library(wordpiece, texts)


def test_what_comes_again_is_remembered_through_endless_fresh_words() -> None:
    wordpiece = WordPiece([*SPECIALS, *LETTERS, "common"], Flags(lowercase=True))
    encoder = bulk(wordpiece, 256)
    asked: list[str] = []
    ask, tokenize = encoder._runs._ask_at_once, encoder._runs._model.tokenize

    class Model:
        def tokenize(self, word: str) -> Any:
            asked.append(word)
            return tokenize(word)

    encoder._runs._model = Model()  # type: ignore[assignment]
    encoder._runs._ask_at_once = lambda chunks: (asked.extend(chunks), ask(chunks))[1]  # type: ignore[func-returns-value,method-assign]
    rng = random.Random(1)
    for _ in range(300):
        fresh = ["".join(rng.choices("abcdefgh", k=12)) for _ in range(40)] + [f"ü{rng.random()}" for _ in range(10)]
        texts = [f"usual {word} naïve common" for word in fresh]
        assert parts(encoder, texts) == by_the_library(wordpiece, texts)
        assert [len(table) <= slots for table, slots in zip(encoder._runs._tables, (3 * 256, 96, 384), strict=True)] == [True] * 3
        assert len(encoder._runs._pieces) <= 2 * wordpiece.size + 6 * 256 + 50 * 40
    assert len(asked) > 12_000  # the fresh ones
    assert asked.count("common") == 0  # in the table from the vocabulary
    assert asked.count("usual") == asked.count("naïve") == 1


def anonymous_memory() -> float:
    """MB of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().split("\n") if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_an_encoder_that_only_ever_sees_fresh_words() -> None:
    wordpiece = WordPiece([*SPECIALS, *LETTERS], Flags(lowercase=True))
    rng = random.Random(1)
    wordpiece.encode(["word"])
    before, high = anonymous_memory(), []
    for _ in range(30):  # of both kinds there are more than the tables hold
        wordpiece.encode_flat([f"{rng.getrandbits(40):x} é{rng.getrandbits(24):x}" for _ in range(30_000)])
        high.append(anonymous_memory() - before)
    assert max(high) < 50
    assert max(high[20:]) < 1.1 * max(high[:20]) + 3


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "cased", "files"),
    [
        ("uncased", False, ["enwiki-train"]),
        ("cased", True, ["enwiki-train"]),
        ("chinese", False, ["zhwiki-train"]),
        ("multilingual-cased", True, ["zhwiki-train", "enwiki-train"]),
    ],
)
def test_ids_of_real_text_are_transformers(real_data: Path, name: str, cased: bool, files: list[str]) -> None:
    path = real_data / f"data/vocab/bert-base-{name}-vocab.txt"
    flags = Flags(lowercase=not cased)
    wordpiece = WordPiece(path.read_bytes().decode().removesuffix("\n").split("\n"), flags)
    slices = [(real_data / f"data/corpora/{file}.txt").read_bytes()[:2_000_000].decode(errors="replace") for file in files]
    texts = [line for lines in zip(*(text.split("\n") for text in slices), strict=False) for line in lines]
    expected = [e.ids for e in theirs(str(path), flags).encode_batch(texts, add_special_tokens=False)]
    encoded = wordpiece.encode_flat(texts, chinese=True)
    assert encoded.ids.tolist() == [i for ids in expected for i in ids]
    assert encoded.ends.tolist() == np.cumsum([len(ids) for ids in expected]).tolist()
    assert encoded.chinese is not None
    assert encoded.chinese.sum() == sum(ord(c) in HAN for text in texts for c in text)
