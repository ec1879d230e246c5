from __future__ import annotations

import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece, check_specials
from bertkit.errors import ModelError

FLAGS = [
    Flags(lowercase=lower, strip_accents=strip, tokenize_chinese_chars=chinese)
    for lower in (True, False)
    for strip in (None, True, False)
    for chinese in (True, False)
]
NASTY = list("abcXYZ019 \t\n\r\x00\x01\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad")
NASTY += list(".,!?-_'\"$^`~+=<>|[]()/\\#@，。、！？「」…–—“”·")
NASTY += list("\u0301\u0308\u0327\u0345\u200b\u200c\u200d\u200e\u2028\u2029\u202f\u3000\ufeff\ufffd\ufffe\ue000\u0600")
NASTY += list("éÉñİıßẞΣσςǅﬁÅ\u212b가각\u1100\u1161ა한漢字豈㐀𠀀あア々〇〡ｆ０😀🇨🇳\u0e33\u302e\u302f\U0001d165")
NASTY += [
    "[MASK]",
    "[SEP]",
    "[CLS]",
    "[PAD]",
    "[UNK]",
    "[unused1]",
    "##a",
    "##",
    "un",
    "wanted",
    "a" * 100,
    "é" * 101,
    "的",
    "中",
]
TEXTS = st.lists(st.sampled_from(NASTY), max_size=30).map("".join) | st.text(max_size=40)

SMALL = [*SPECIALS, *(c for c in "abcxyz019.,!?-[]()#masksepclunwted的中漢字éÉñΣσς가한あ，。XYZ")]
SMALL = [
    *dict.fromkeys([*SMALL, *("##" + c for c in SMALL if len(c) == 1), "un", "##want", "##ed", "mask", "sep", "wanted", "##"])
]


def theirs(tokens: list[str] | str, flags: Flags) -> Any:
    from transformers import BertTokenizerFast

    vocabulary: Any = tokens if isinstance(tokens, str) else {t: i for i, t in enumerate(tokens)}
    tokenizer = BertTokenizerFast(
        vocabulary,
        do_lower_case=flags.lowercase,
        strip_accents=flags.strip_accents,
        tokenize_chinese_chars=flags.tokenize_chinese_chars,
    )
    tokenizer.backend_tokenizer.encode_special_tokens = True  # special tokens are split like any word
    return tokenizer.backend_tokenizer


@pytest.fixture(scope="module")
def pairs() -> list[tuple[WordPiece, Any]]:
    return [(WordPiece(SMALL, flags), theirs(SMALL, flags)) for flags in FLAGS]


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_ids_are_transformers_for_any_text(pairs: list[tuple[WordPiece, Any]], texts: list[str]) -> None:
    for wordpiece, reference in pairs:
        expected = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
        assert [ids.tolist() for ids in wordpiece.encode(texts)] == expected
        assert [ids.tolist() for ids, _ in wordpiece.encode_with_offsets(texts)] == expected
        flat = wordpiece.encode_flat(texts)
        assert flat.ids.tolist() == [i for ids in expected for i in ids]
        assert flat.ends.tolist() == list(itertools.accumulate(map(len, expected)))
        assert (flat.ids.dtype, flat.ends.dtype, flat.chinese) == (np.int32, np.int64, None)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_each_chinese_character_has_one_marked_token(pairs: list[tuple[WordPiece, Any]], texts: list[str]) -> None:
    for wordpiece, reference in pairs:
        flat = wordpiece.encode_flat(texts, chinese=True)
        assert flat.chinese is not None
        assert flat.ids.tolist() == wordpiece.encode_flat(texts).ids.tolist()
        for text, ids, marked in zip(texts, wordpiece.encode(texts), np.split(flat.chinese, flat.ends[:-1]), strict=True):
            characters = [c for c in text if "\u4e00" <= c <= "\u9fff"] if wordpiece.tokenize_chinese_chars else []
            assert ids[marked].tolist() == [reference.token_to_id(c) or wordpiece.unk_id for c in characters]
            if characters:  # behind the first one there are as many tokens as what follows it has
                rest = text.partition(characters[0])[2]
                assert len(ids) - np.flatnonzero(marked)[0] - 1 == len(wordpiece.encode([rest])[0])


def test_no_texts_give_no_ids() -> None:
    for chinese in (True, False):
        for texts in ([], [""], ["", " ", "\u200e"]):
            flat = WordPiece(SMALL, FLAGS[0]).encode_flat(texts, chinese=chinese)
            assert (flat.ids.tolist(), flat.ends.tolist()) == ([], [0] * len(texts))
            assert (flat.chinese is not None) == chinese


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("uncased", Flags(lowercase=True)),
        ("cased", Flags(lowercase=False)),
        ("chinese", Flags(lowercase=True)),
        ("multilingual-cased", Flags(lowercase=False)),
        ("uncased", Flags(lowercase=True, strip_accents=False)),
    ],
)
def test_ids_are_transformers_with_googles_vocabularies(real_data: Path, name: str, flags: Flags) -> None:
    path = real_data / f"data/vocab/bert-base-{name}-vocab.txt"
    wordpiece = WordPiece(path.read_bytes().decode().removesuffix("\n").split("\n"), flags)
    rng = random.Random(1)
    texts = ["".join(rng.choices(NASTY, k=20)) for _ in range(2000)]
    for corpus in ("enwiki-valid", "zhwiki-valid"):
        texts += (real_data / f"data/corpora/{corpus}.txt").read_text("utf-8")[:300_000].split("\n")
    expected = [e.ids for e in theirs(str(path), flags).encode_batch(texts, add_special_tokens=False)]
    assert sum(map(len, expected)) > 150_000
    for _ in range(2):  # the second time from the table
        assert [ids.tolist() for ids in wordpiece.encode(texts)] == expected


def tokens(wordpiece: WordPiece, text: str) -> list[str]:
    return [wordpiece.vocabulary[i] for i in wordpiece.encode([text])[0]]


def make(*words: str, lowercase: bool = False, **flags: Any) -> WordPiece:
    return WordPiece([*SPECIALS, *words], Flags(lowercase=lowercase, **flags))


def test_what_is_a_space() -> None:  # C03
    wordpiece = make("you", "nice", "younice")
    for space in "\t\u00a0\u3000":
        assert tokens(wordpiece, f"you{space}nice") == ["you", "nice"]
    assert tokens(wordpiece, "you\x0bnice") == ["younice"]


def test_dirt() -> None:  # C02, C04
    wordpiece = make("abcdef", "word")
    assert tokens(wordpiece, "abc\x00def") == ["abcdef"]
    for nothing in ("\u200d", "\u200e", "\u00ad", "\u0000", "\ufffd", "\ue000", "", "  \t "):
        assert tokens(wordpiece, nothing) == []


@pytest.mark.slow
def test_huge_words_and_lines() -> None:  # C04
    wordpiece = make("word")
    assert tokens(wordpiece, "a" * 5_000_000) == ["[UNK]"]
    assert len(wordpiece.encode(["word " * 4_000_000])[0]) == 4_000_000


def test_accents_and_casing() -> None:  # C05
    words = ("naive", "naïve")
    assert tokens(make(*words), "naïve") == ["naïve"]
    assert tokens(make(*words, lowercase=True), "naïve") == ["naive"]
    assert tokens(make(*words, lowercase=True, strip_accents=False), "naïve") == ["naïve"]


def test_combining_marks() -> None:  # C06
    words = ("á", "a", "##\u0301")
    assert tokens(make(*words), "\u00e1") == ["á"]
    assert tokens(make(*words), "a\u0301") == ["a", "##\u0301"]
    for text in ("\u00e1", "a\u0301"):
        assert tokens(make(*words, lowercase=True), text) == ["a"]


def test_long_words() -> None:  # C09
    wordpiece = make("a", "##a", "é", "##é")
    for letter in "aé":
        assert len(tokens(wordpiece, letter * 100)) == 100
        assert tokens(wordpiece, letter * 101) == ["[UNK]"]
    url = "http" + "a" * 296
    ids, offsets = wordpiece.encode_with_offsets([url])[0]
    assert ids.tolist() == [wordpiece.unk_id]
    assert offsets.tolist() == [[0, 300]]


def test_one_unknown_piece_makes_the_word_unknown() -> None:  # C10
    assert tokens(make("un", "##want", "##ed"), "unwantedX") == ["[UNK]"]
    assert tokens(make("un", "##want", "##ed"), "unwanted") == ["un", "##want", "##ed"]


def test_special_tokens_in_text_are_text() -> None:  # C12
    wordpiece = make("[", "]", "mask", "this", ".", lowercase=True)
    assert tokens(wordpiece, "this [MASK] .") == ["this", "[", "mask", "]", "."]
    masked = wordpiece.encode_masked("this [MASK] . [mask]")
    assert [wordpiece.vocabulary[i] for i in masked] == ["this", "[MASK]", ".", "[", "mask", "]"]
    for token in SPECIALS:
        assert not set(wordpiece.encode([token])[0].tolist()) & {0, 2, 3, 4}


def test_words_on_their_own() -> None:  # C40
    words = make("hello", "a", "na", lowercase=True).encode_words(["hello", "\u200e", "a", "\ufffd", "na"])
    assert [w.tolist() for w in words] == [[5], [], [6], [], [7]]
    assert {w.dtype for w in words} == {np.dtype(np.int32)}


def test_offsets_are_characters_of_the_raw_text() -> None:  # C39
    wordpiece = make("paris", "key", "##s", "价", "价格", "[", "]", lowercase=True)
    text = "  Pâris\r\n价格 keys"
    ids, offsets = wordpiece.encode_with_offsets([text])[0]
    assert [wordpiece.vocabulary[i] for i in ids] == ["paris", "价", "[UNK]", "key", "##s"]
    assert [text[a:b] for a, b in offsets.tolist()] == ["Pâris", "价", "格", "key", "s"]
    assert wordpiece.encode_with_offsets([""])[0][1].shape == (0, 2)


def test_facts_of_the_vocabulary() -> None:
    wordpiece = WordPiece([*SPECIALS, "[unused0]", "a", "##b", "", "a", "[unused]"], Flags(lowercase=True))
    assert wordpiece.continues.tolist() == [False] * 7 + [True] + [False] * 3
    assert wordpiece.special.tolist() == [True] * 5 + [False] * 6
    assert wordpiece.replaceable.tolist() == [7, 9, 10]
    assert (wordpiece.pad_id, wordpiece.unk_id, wordpiece.cls_id, wordpiece.sep_id, wordpiece.mask_id) == (0, 1, 2, 3, 4)


def test_pickled_and_fingerprint() -> None:
    wordpiece = make("a", "b")
    again = pickle.loads(pickle.dumps(wordpiece))
    assert again == wordpiece
    assert again.encode(["a b"])[0].tolist() == [5, 6]
    others = [make("b", "a"), make("a", "b", lowercase=True), make("a", "b", strip_accents=True)]
    assert len({w.fingerprint for w in [wordpiece, *others]}) == 4


def test_decoding() -> None:
    wordpiece = make("un", "##want", "##ed", ".", "he")
    assert wordpiece.decode(wordpiece.encode(["he unwanted."])[0]) == "he unwanted."
    assert wordpiece.decode([]) == ""


def test_missing_special_tokens() -> None:  # C08
    with pytest.raises(ModelError, match=r"\[UNK\].*<unk>"):
        WordPiece(["[PAD]", "<unk>", "[CLS]", "[SEP]"], Flags(lowercase=True))
    without = WordPiece([*SPECIALS[:4], "a"], Flags(lowercase=True))
    with pytest.raises(ModelError, match=r"no \[MASK\]"):
        check_specials(without)
    elsewhere = WordPiece(["a", *SPECIALS], Flags(lowercase=True))
    with pytest.raises(ModelError, match=r"\[PAD\] has id 1 .*pad_token_id 0"):
        check_specials(elsewhere, pad_token_id=0)
    check_specials(elsewhere, pad_token_id=1)
