from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.new_words import read_new_words
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError, MissingError

LETTERS = "abcdefghijklmnopqrstuvwxyzé中国"
TOKENS = ["[PAD]", "[unused0]", "[unused1]", *SPECIALS[1:], *LETTERS, *(f"##{c}" for c in LETTERS), "the", "ki", "##nase"]


def vocabulary(**flags: bool) -> WordPiece:
    return WordPiece(TOKENS, Flags(**{"lowercase": True, **flags}))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_words_take_unused_rows_then_new_ones(tmp_path: Path) -> None:
    before = vocabulary()
    text = "\ufeffKinase\r\n\n  ligand \nCAFÉ\nthe\nkinase\nφ\n"
    found = read_new_words(written(tmp_path, text), before)
    size = before.size
    assert found.ids == (1, 2, size, size + 1)
    assert [found.wordpiece.vocabulary[i] for i in found.ids] == ["kinase", "ligand", "cafe", "φ"]  # as the tokenizer has them
    assert (found.unused, found.known, found.repeated, found.unknown) == (2, 1, 1, 1)
    assert [before.decode(pieces) for pieces in found.pieces] == ["kinase", "ligand", "cafe", "[UNK]"]
    assert found.pieces[0].tolist() == [before.token_id("ki"), before.token_id("##nase")]
    kept = [i for i in range(size) if i not in found.ids]
    assert [found.wordpiece.vocabulary[i] for i in kept] == [before.vocabulary[i] for i in kept]
    assert found.wordpiece.encode(["The Kinase, kinases and a café"])[0].tolist() == [
        found.wordpiece.token_id(t)
        for t in "the kinase [UNK] kinase ##s a ##n ##d a cafe".split()  # noqa: SIM905
    ]


def test_case_is_kept_where_the_vocabulary_keeps_it(tmp_path: Path) -> None:
    found = read_new_words(written(tmp_path, "Kinase\nkinase\nCAFÉ\n"), vocabulary(lowercase=False))
    assert [found.wordpiece.vocabulary[i] for i in found.ids] == ["Kinase", "kinase", "CAFÉ"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kinase\nnon-small\n", "line 2, 'non-small', is 3: non - small"),
        ("two words\n", "line 1, 'two words', is 2: two words"),
        ("中国\n", "line 1, '中国', is 2: 中 国"),
        ("[MASK]\n", "is 3: [ mask ]"),
        ("##s\n", "is 3: # # s"),
        ("a\n\u200d\n", "line 2"),
        ("x" * 101, "101 characters, more than 100"),
        ("a b\nc d\ne f\ng h\ni j\n", "and 2 more"),
    ],
)
def test_what_is_no_word_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_new_words(written(tmp_path, text), vocabulary())
    assert message in caught.value.message
    assert "words.txt, line " in str(caught.value.where)


def test_chinese_words_where_characters_are_no_words(tmp_path: Path) -> None:
    found = read_new_words(written(tmp_path, "中国\n"), vocabulary(tokenize_chinese_chars=False))
    assert found.wordpiece.encode(["中国"])[0].tolist() == list(found.ids)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"kinase\ncaf\xe9\n")
    with pytest.raises(DataError, match="UTF-8") as caught:
        read_new_words(tmp_path / "latin.txt", vocabulary())
    assert "line 2, byte offset 10, byte 0xE9" in str(caught.value.where)
    with pytest.raises(DataError, match="no word"):
        read_new_words(written(tmp_path, " \n\n"), vocabulary())
    with pytest.raises(MissingError):
        read_new_words(tmp_path / "none.txt", vocabulary())
    assert read_new_words(written(tmp_path, "the\n"), vocabulary()).ids == ()  # known: nothing to do, and no error


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.text(alphabet="abcABÉé", min_size=1, max_size=6), min_size=1, max_size=12),
    st.booleans(),
    st.text(alphabet="abcABÉé ,", max_size=30),
)
def test_each_word_is_one_token_and_other_text_is_as_before(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], lowercase: bool, text: str
) -> None:
    before = vocabulary(lowercase=lowercase)
    found = read_new_words(written(tmp_path_factory.getbasetemp(), "\n".join(words)), before)
    assert all(len(ids) == 1 for ids in found.wordpiece.encode(words))
    assert len(found.ids) + found.known + found.repeated == len(words)
    new = {found.wordpiece.vocabulary[i] for i in found.ids}
    others = " ".join(w for w in before.words_of(text) if not any(w.startswith(n) for n in new))
    assert np.array_equal(found.wordpiece.encode([others])[0], before.encode([others])[0])
