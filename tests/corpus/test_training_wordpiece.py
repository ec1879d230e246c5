from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.training import count_words, learn_pieces, most_frequent, train_wordpiece
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.word_counts import WordCounts
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError, SettingsError
from bertkit.notices import collecting
from bertkit.randomness import stream

WORDS = st.text(alphabet="aab", min_size=1, max_size=8) | st.text(alphabet="abcé中", min_size=1, max_size=6)
LINES = ["low lower lowest new newer newest wide wider widest"] * 2
TRAIN_TOPICS = """
import hashlib, pydoc_data.topics, sys
from bertkit.corpus.training import train_wordpiece
lines = "\\n".join(pydoc_data.topics.topics.values()).split("\\n")
trained = train_wordpiece([lines], size=5000, lowercase=True, min_frequency=1)
assert trained.size == 5000
print(hashlib.sha256("\\n".join(trained.vocabulary).encode()).hexdigest())
"""


def plainly(words: dict[str, int], room: int, least: int) -> list[str]:
    """Byte-pair encoding with everything counted anew at every step."""
    cut = {w: [w[0], *("##" + c for c in w[1:])] for w in words}
    pieces = sorted({p for parts in cut.values() for p in parts})
    while len(pieces) < room:
        counts: Counter[tuple[str, str]] = Counter()
        for word, parts in cut.items():
            for pair in pairwise(parts):
                counts[pair] += words[word]
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < least:
            break
        new = best[0] + best[1][2:]
        for parts in cut.values():
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [new]
                i += 1
        if new not in pieces:
            pieces.append(new)
    return pieces


@settings(deadline=None, max_examples=200)
@given(
    st.dictionaries(
        st.text(alphabet="aab", min_size=1, max_size=8) | st.text(alphabet="abcé中", min_size=1, max_size=6), st.integers(1, 9)
    ),
    st.integers(1, 3),
)
def test_merges_are_those_of_counting_anew(words: dict[str, int], least: int) -> None:
    with WordCounts() as counts:
        counts.add(words)
        kept, characters = most_frequent(counts, 1000)
    assert kept == words
    assert learn_pieces(kept, characters, 1000, least) == plainly(words, 1000, least)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.dictionaries(WORDS, st.integers(1, 9), max_size=5), max_size=12), st.integers(1, 8), st.integers(1, 20))
def test_counts_on_disk_are_exact_and_the_most_frequent_words_stay(added: list[dict[str, int]], at_once: int, most: int) -> None:
    expected: Counter[str] = Counter()
    with WordCounts(at_once=at_once) as counts:
        for words in added:
            counts.add(words, 3)
            expected.update({word: 3 * times for word, times in words.items()})
        assert sorted(counts.items()) == sorted(expected.items())  # each word once
        with collecting() as heard:
            kept, characters = most_frequent(counts, most)
    assert list(kept.items()) == sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:most]
    assert [notice.kind for notice in heard] == ["vocabulary-words"] * (len(expected) > most)
    pieces = Counter(dict.fromkeys(characters, 0))
    for word, times in expected.items():  # of all words, those left out too
        for place, character in enumerate(word):
            pieces["##" * (place > 0) + character] += times
    assert characters == pieces


def test_memory_does_not_grow_with_fresh_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_CHUNKS", 400), ("_SWEEP", 10_000), ("_BATCH", 5000)):
        monkeypatch.setattr(f"bertkit.corpus.training.{name}", value)
    flags = Flags(lowercase=True)
    peaks = []
    for lines in (1_000, 1_000, 8_000):  # the first time things are made that stay
        numbers = stream(1, "fresh words").integers(0, 2**60, size=lines).tolist()
        text = ([f"the word {number:x} 中{number:x}, " + "long" * 20 + f"{number:x}"] for number in numbers)
        tracemalloc.start()
        with WordCounts(at_once=400) as counts:
            count_words(text, flags, counts)
            words, _ = most_frequent(counts, 400)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (words["the"], words["word"], words["中"], len(words)) == (lines, lines, lines, 400)
    assert peaks[2] < 1.15 * peaks[1]


def test_a_vocabulary_does_not_depend_on_what_lay_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for text in topics.values() for line in text.split("\n")][:4000]
    plain = train_wordpiece([lines], size=500, lowercase=True)
    monkeypatch.setattr("bertkit.corpus.word_counts.WordCounts.__init__.__kwdefaults__", {"at_once": 100}, raising=True)
    for name in ("_CHUNKS", "_SWEEP"):
        monkeypatch.setattr(f"bertkit.corpus.training.{name}", 500)
    assert train_wordpiece([lines[::-1]], size=500, lowercase=True).vocabulary == plain.vocabulary
    with collecting() as heard:
        monkeypatch.setattr("bertkit.corpus.training.MOST_WORDS", 300)
        fewer = [train_wordpiece([order], size=500, lowercase=True).vocabulary for order in (lines, lines[::-1])]
    assert fewer[0] == fewer[1] != plain.vocabulary
    assert [notice.kind for notice in heard] == ["vocabulary-words"]
    assert "300 most frequent" in heard[0].message


def test_same_bytes_every_time() -> None:  # C13
    first = train_wordpiece([LINES], size=40, lowercase=True)
    assert first.vocabulary[:5] == SPECIALS
    assert {train_wordpiece([[line] for line in LINES], size=40, lowercase=True).vocabulary for _ in range(40)} == {
        first.vocabulary
    }
    assert train_wordpiece(lambda: [LINES], size=40, lowercase=True).vocabulary == first.vocabulary


@pytest.mark.slow
def test_same_bytes_in_every_process_and_for_any_threads() -> None:  # C13
    seen = set()
    for n in range(10):
        env = {**os.environ, "PYTHONHASHSEED": str(n), "RAYON_NUM_THREADS": str(n % 4 + 1), "TOKENIZERS_PARALLELISM": "true"}
        done = subprocess.run([sys.executable, "-c", TRAIN_TOPICS], env=env, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    files = []
    for n, text in enumerate(["one two three four\n\ntwo three four", "three four five six", "six seven 中文 字"]):
        (tmp_path / f"{n}.txt").write_text(text * 3, "utf-8")
        files.append(tmp_path / f"{n}.txt")

    def digest(order: list[Path]) -> str:
        trained = train_wordpiece(read_documents(open_corpus(order), CorpusSettings(), ReadReport()), size=60, lowercase=True)
        return hashlib.sha256("\n".join(trained.vocabulary).encode()).hexdigest()

    assert digest(files) == digest(files[::-1]) == digest(files[1:] + files[:1])


def test_words_are_the_tokenizers_own(monkeypatch: pytest.MonkeyPatch) -> None:  # C03
    flags = Flags(lowercase=True)
    lines = ["how are you\tnice\u00a0to\u3000meet", "you\x0bnice, abc\x00def CAFÉ [SEP]", "中文 and中字"]
    expected = Counter(
        "how are you nice to meet younice , abcdef cafe [ sep ] 中 文 and 中 字".split()  # noqa: SIM905
    )
    lines.append("x" * 101)  # BERT knows no word of more than 100 characters

    def counted(documents: list[list[str]]) -> dict[str, int]:
        with WordCounts() as counts:
            count_words(documents, flags, counts)
            return dict(counts.items())

    assert counted([lines]) == expected
    for name, value in (("_LONG", 2), ("_SWEEP", 1), ("_CHUNKS", 3), ("_BATCH", 4), ("_PART", 5)):  # every limit reached
        monkeypatch.setattr(f"bertkit.corpus.training.{name}", value)
        assert counted([[line] for line in lines]) == expected


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.text(alphabet="abZ9_-^`~.Σİé\u0301\u0327中国\u3400\u20000 ,。\t\u200d\u00a0#", max_size=12), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_words_of_any_mixture_are_the_tokenizers_own(lines: list[str], lowercase: bool, chinese: bool) -> None:
    flags = Flags(lowercase=lowercase, tokenize_chinese_chars=chinese)
    expected = Counter(word for line in lines for word in WordPiece(SPECIALS, flags).words_of(line))
    with WordCounts() as counts:
        count_words([lines], flags, counts)
        assert dict(counts.items()) == expected


def test_size_and_least_frequency() -> None:
    text = [["the cat sat on the mat with the other cats"] * 5 + ["once"]]
    exact = train_wordpiece(text, size=30, lowercase=True)
    assert exact.size == 30
    with collecting() as heard:
        small = train_wordpiece(text, size=500, lowercase=True)
    assert small.size < 500
    assert [n.kind for n in heard] == ["vocabulary-size"]
    assert "cats" in small.vocabulary
    assert "once" not in small.vocabulary
    assert "once" in train_wordpiece(text, size=500, lowercase=True, min_frequency=1).vocabulary


def test_characters_give_way_only_where_they_are_rare() -> None:
    many = [["".join(chr(0x4E00 + i) * (3 - i % 3) for i in range(300))]]
    trained = train_wordpiece(many, size=105, lowercase=True)
    assert trained.size == 105  # no merges in Chinese, so characters fill what is left, the commonest first
    assert sum((ord(t) - 0x4E00) % 3 == 0 for t in trained.vocabulary[5:]) == 100


@pytest.mark.slow
def test_dirt_and_huge_words() -> None:  # C04
    started = time.process_time()
    trained = train_wordpiece([["abc\x00def abcdef " * 3, "a" * 5_000_000, "word " * 4_000_000]], size=60, lowercase=True)
    assert {"abcdef", "word"} <= set(trained.vocabulary)
    assert not any("\x00" in t or len(t) > 100 for t in trained.vocabulary)
    assert time.process_time() - started < 20


def test_nothing_to_train_on() -> None:
    with pytest.raises(DataError):
        train_wordpiece([["\u200d", " "]], size=40, lowercase=True)
    with pytest.raises(SettingsError):
        train_wordpiece([["a"]], size=5, lowercase=True)


@pytest.mark.data
def test_the_vocabulary_covers_real_text(real_data: Path) -> None:
    files = [real_data / "data/corpora/enwiki-valid.txt"]
    trained = train_wordpiece(read_documents(open_corpus(files), CorpusSettings(), ReadReport()), size=4000, lowercase=True)
    assert trained.size == 4000
    text = files[0].read_text("utf-8").split("\n")
    ids = [i for sentence in trained.encode(text) for i in sentence.tolist()]
    assert ids.count(trained.unk_id) / len(ids) < 0.0005
