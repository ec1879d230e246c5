"""Chinese words: the most probable parts of a text, list files as people have them, and libraries that part words."""

from __future__ import annotations

import itertools
import math
import pickle
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.corpus import chinese, lattice, word_list
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.word_list import WordList
from bertkit.errors import DataError, MissingError

LIST = {"喜欢": 100, "北京": 300, "大学": 200, "模型": 50}


def words_of(segmenter, text):
    """The words of the Chinese characters of a text, as the segmenter's borders part them."""
    han = [character for character in text if "一" <= character <= "鿿"]
    begins = segmenter.begins(text)
    assert begins.dtype == bool
    assert len(begins) == len(han)
    starts = [*np.flatnonzero(begins).tolist(), len(han)]
    return ["".join(han[a:b]) for a, b in itertools.pairwise(starts)]


def test_the_words_of_a_list_are_found():
    assert words_of(WordList(LIST), "我喜欢北京大学") == ["我", "喜欢", "北京", "大学"]
    assert words_of(WordList(LIST), "BERT模型unwanted北京 大学，学大") == ["模型", "北京", "大学", "学", "大"]
    assert words_of(WordList(LIST), "北 京 大,学") == ["北", "京", "大", "学"], "a word across what is not Chinese"
    assert words_of(WordList({**LIST, "北京大学": 200}), "我喜欢北京大学") == ["我", "喜欢", "北京大学"]
    for nothing in ("", "abc", "𠀀 é\n", "\ud800"):
        assert words_of(WordList(LIST), nothing) == []


def test_the_more_frequent_of_two_overlapping_words_wins():
    assert words_of(WordList({"甲乙": 10, "乙丙": 9}), "甲乙丙") == ["甲乙", "丙"]
    assert words_of(WordList({"甲乙": 9, "乙丙": 10}), "甲乙丙") == ["甲", "乙丙"]
    assert words_of(WordList({"甲乙": 5, "乙丙": 5}), "甲乙丙") == ["甲乙", "丙"], "a tie goes to the longer word on the left"
    # A character's own frequency weighs too: 甲 and 丙 as words are worth more than 甲乙 and a 丙 never met.
    assert words_of(WordList({"甲乙": 5, "甲": 1000, "乙丙": 5}), "甲乙丙") == ["甲", "乙丙"]


def likeliest(frequencies, run):
    """Every way to part a run: the most probable one in exact arithmetic, the longer first word where two are."""
    total = sum(frequencies.values())
    best = None
    for cuts in itertools.product([False, True], repeat=len(run) - 1):
        starts = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(run)]
        words = [run[a:b] for a, b in itertools.pairwise(starts)]
        if all(len(word) == 1 or frequencies.get(word, 0) for word in words):
            probability = math.prod(Fraction(frequencies.get(word) or 1, total) for word in words)
            candidate = (probability, [len(word) for word in words], words)
            best = candidate if best is None or candidate > best else best
    return best[2]


@given(
    frequencies=st.dictionaries(st.text("甲乙丙", min_size=1, max_size=5), st.sampled_from([0, 1, 2, 4, 8, 64]), min_size=1),
    runs=st.lists(st.text("甲乙丙丁", min_size=1, max_size=9), min_size=1, max_size=4),
)
def test_the_parts_are_the_most_probable_ones(frequencies, runs):
    # Frequencies are powers of two: costs are then exact, but for the common term of the total, and so are ties.
    frequencies["丁丁"] = 1
    segmenter = WordList(frequencies)
    expected = []
    for run in runs:
        expected += likeliest(frequencies, run)
    assert words_of(segmenter, ",".join(runs)) == expected
    assert words_of(segmenter, "\n".join(runs)) == [word for run in runs for word in words_of(segmenter, run)]


@given(text=st.text("甲乙丙丁 ", max_size=300), seed=st.integers(0, 5))
def test_a_text_is_parted_alike_in_blocks_of_any_size(text, seed):
    rng = np.random.default_rng(seed)
    drawn = {"".join(rng.choice(list("甲乙丙丁"), size=rng.integers(2, 6))): int(rng.integers(1, 50)) for _ in range(12)}
    segmenter = WordList(drawn)
    whole = segmenter.begins(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "GROUP", 8)
        longest = segmenter.begins(text)
        for block in (8, 16, 64):
            patch.setattr(word_list, "_BLOCK", block)
            assert (segmenter.begins(text) == longest).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_list, "_BLOCK", 512)
        assert (segmenter.begins(text) == whole).all()


def test_words_that_overlap_without_end_are_cut_somewhere():
    begins = WordList({"哈哈": 5, "哈哈哈": 1}).begins("哈" * 200_001)
    assert begins[0]
    assert np.diff(np.flatnonzero(begins)).max() <= 3
    assert 0.49 < begins.mean() < 0.51


def written(tmp_path, content):
    path = tmp_path / "words.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "喜欢\t100\n北京\t300\n大学\t200\n",
        "\ufeff喜欢\t100\r\n\r\n北京\t300\r\n  \r\n大学\t200",
        "喜欢 100 v\n北京 300 ns\n大学 200 n\n",
        "北京\t300\n大学\t200\n喜欢\t100\n喜欢\t3\n北京大学\t0\nT恤\t9\n",
    ],
    ids=["tabs", "mark-blanks-crlf", "jieba's three columns", "repeated, none, not Chinese"],
)
def test_lists_as_people_have_them(tmp_path, content):
    segmenter = WordList.load(written(tmp_path, content))
    assert segmenter.words == 3
    assert words_of(segmenter, "我喜欢北京大学") == ["我", "喜欢", "北京", "大学"]
    assert segmenter.fingerprint == WordList({"大学": 200, "喜欢": 100, "北京": 300}).fingerprint


def test_words_alone_part_into_as_few_as_can_be(tmp_path):
    segmenter = WordList.load(written(tmp_path, "北京\n京大\n大学\n北京大\n"))
    assert words_of(segmenter, "北京大学") == ["北京大", "学"]  # as is 北京 大学: two words, the longer first


@pytest.mark.parametrize(
    ("content", "message", "where"),
    [
        ("喜欢\t100\n北京\n", "'北京', not a word and its frequency", "line 2"),
        ("喜欢\n北京\t3\n", "not a word alone", "line 2"),
        ("喜欢\t100\n\n北京\tmany\n", "not a word and its frequency", "line 3"),
        ("喜欢\t-1\n", "not a word and its frequency", "line 1"),
        ("喜欢\t1.5\n", "not a word and its frequency", "line 1"),
        ("喜欢\t" + "9" * 5000, "not a word and its frequency", "line 1"),
        ("喜欢\t1\tv\tx\n", "not a word and its frequency", "line 1"),
        ("喜\t5\nabc\t7\n喜欢\t0\n", "no word of two Chinese characters", "words.txt"),
        ("", "no word of two Chinese characters", "words.txt"),
        ("喜欢\t1\n".encode("gb18030"), "not UTF-8", "line 1, byte offset 2, byte 0xBB"),
    ],
)
def test_a_list_that_is_none_is_told_by_line(tmp_path, content, message, where):
    with pytest.raises(DataError, match=message) as caught:
        WordList.load(written(tmp_path, content))
    assert where in str(caught.value.where)


def test_a_list_that_is_not_there(tmp_path):
    with pytest.raises(MissingError, match="cannot be read"):
        segmenter_of(str(tmp_path / "none.txt"))
    with pytest.raises(MissingError, match="cannot be read"):
        segmenter_of(str(tmp_path))


def test_the_fingerprint_is_the_words_and_their_weights():
    same = WordList(dict(reversed(LIST.items()))).fingerprint
    assert WordList(LIST).fingerprint == same
    assert WordList({**LIST, "abc": 3}).fingerprint == same
    assert WordList({**LIST, "大学": 201}).fingerprint != same
    assert WordList({**LIST, "大": 1}).fingerprint != same


def test_a_list_crosses_process_borders():
    again = pickle.loads(pickle.dumps(WordList(LIST)))
    assert again.fingerprint == WordList(LIST).fingerprint
    assert words_of(again, "我喜欢北京大学") == ["我", "喜欢", "北京", "大学"]


def test_nothing_named_is_no_segmenter():
    assert segmenter_of(None) is None


def test_a_library_that_is_not_installed_is_told_with_its_command(monkeypatch):
    for name in ("jieba", "rjieba"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingError, match=f"pip install {name}"):
            segmenter_of(name)


def test_a_library_gives_its_words_within_runs(monkeypatch):
    heard = []

    def cut(text):
        heard.append(text)
        return ["我", "喜欢", "北京大学", "\n", "模型", "\n", "北", "\n", "京"]

    monkeypatch.setitem(sys.modules, "rjieba", SimpleNamespace(cut=cut))
    monkeypatch.setattr(chinese, "version", lambda name: "9.9")
    segmenter = segmenter_of("rjieba")
    assert words_of(segmenter, "我喜欢北京大学BERT模型, 北 京。") == ["我", "喜欢", "北京大学", "模型", "北", "京"]
    assert heard == ["我喜欢北京大学\n模型\n北\n京"]
    assert segmenter.fingerprint.startswith("rjieba 9.9")
    assert pickle.loads(pickle.dumps(segmenter)).fingerprint == segmenter.fingerprint


@pytest.mark.parametrize("name", ["jieba", "rjieba"])
def test_the_real_library(name):
    pytest.importorskip(name)
    segmenter = segmenter_of(name)
    assert words_of(segmenter, "BERT我喜欢北京大学。T恤") == ["我", "喜欢", "北京大学", "恤"]
    assert words_of(segmenter, "") == []


@pytest.mark.data
def test_the_words_of_real_text(real_data: Path):
    segmenter = segmenter_of(str(real_data / "data/vocab/zh-words-jieba-top60k.txt"))
    with (real_data / "data/corpora/zhwiki-valid.txt").open(encoding="utf-8") as file:
        text = file.read(200_000)
    words = words_of(segmenter, text)
    assert 1.5 < len("".join(words)) / len(words) < 1.85  # jieba, with its whole list and guesses, makes words of 1.85
    assert words_of(segmenter, "他毕业于北京大学，后来成为著名的历史学家。")[:4] == ["他", "毕业", "于", "北京大学"]
