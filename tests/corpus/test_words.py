"""Words of raw text: the borders that every BERT tokenizer parts text at, read off the text itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.worded import WordedText, read_worded
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.words import raw_words
from bertkit.randomness import stream

LETTERS = WordPiece(
    [*SPECIALS, *"abcdefghijklmnopqrstuvwxyz.,!", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")], Flags(lowercase=True)
)
ODD = "aB1é\u0301İß .,-'…“¿$€→\t\r\n\u00a0\u2003\u2028\u3000\u200b\u200d\ufeff\u00ad\x00\x07\ufffd北京\U00020000\uf900かナ한😀[]"


def spelt(text: str) -> list[str]:
    words = raw_words(text)
    characters = [chr(code) for code in words.codes]
    return (
        ["".join(part) for part in np.split(np.array(characters, dtype=object), np.cumsum(words.sizes)[:-1])]
        if characters
        else []
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't  stop…now", ["Don", "'", "t", "stop", "…", "now"]),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", ["softhyphen", "zerowidth", "mark"]),
        ("我x喜欢1 €5", ["我", "x", "喜", "欢", "1", "€5"]),
        ("e\u0301te\u0301 \u0301", ["e\u0301te\u0301", "\u0301"]),
        (" \t\n\u2028 \u200d", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert spelt(text) == words


def test_they_are_the_words_that_a_cased_tokenizer_looks_up() -> None:
    wordpiece = WordPiece([*SPECIALS, "a"], Flags(lowercase=False, strip_accents=False))
    rng = stream(1, "odd texts")
    for _ in range(400):
        text = "".join(ODD[i] for i in rng.integers(0, len(ODD), size=rng.integers(1, 30)))
        assert spelt(text) == wordpiece.words_of(text), repr(text)


def worded(path: Path, text: str | bytes, wordpiece: WordPiece, **more: int) -> WordedText:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_worded(open_corpus([path]), CorpusSettings(), wordpiece, **more)


def test_every_piece_knows_its_word(tmp_path: Path) -> None:
    text = "One word. Two Wörds, \u0301 here!\n北京 is\n\nAnother\u200b document\n\n\u200d\n\nThe last\n"
    found = worded(tmp_path / "a.txt", text, LETTERS)
    assert found.word_ends.tolist() == [12, 14, 14, 16]  # the third has no word, and no token
    assert len(found.document_ends) == 3
    assert found.sizes.tolist() == [3, 4, 1, 3, 5, 1, 1, 4, 1, 1, 1, 2, 7, 8, 3, 4]
    begins = found.word_begins(np.arange(len(found.ids)))
    assert (begins == ~LETTERS.continues[found.ids]).all()
    lost = set(range(len(found.sizes))) - set(found.word.tolist())
    assert lost == {6}  # the accent alone, which an uncased tokenizer deletes
    assert worded(tmp_path / "b.txt", text, LETTERS, documents=2).word_ends.tolist() == [12, 14]


def test_line_ends_and_byte_order_marks_change_nothing(tmp_path: Path) -> None:
    text = "One word. Two words\nmore\n\nAnother\n"
    plain = worded(tmp_path / "a.txt", text, LETTERS)
    for name, other in (("crlf", text.replace("\n", "\r\n")), ("cr", text.replace("\n", "\r")), ("bom", "\ufeff" + text)):
        found = worded(tmp_path / f"{name}.txt", other, LETTERS)
        assert (found.ids.tolist(), found.word.tolist()) == (plain.ids.tolist(), plain.word.tolist())
        assert (found.sentence_ends.tolist(), found.document_ends.tolist()) == (
            plain.sentence_ends.tolist(),
            plain.document_ends.tolist(),
        )
