from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.training import count_words, learn_pieces, train_wordpiece
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.errors import DataError, SettingsError
from bertkit.notices import collecting

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
    assert learn_pieces(words, 1000, least) == plainly(words, 1000, least)


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
    assert count_words([lines], flags) == expected
    for name, value in (("_LONG", 2), ("_SWEEP", 1), ("_CHUNKS", 3), ("_BATCH", 4)):  # every limit reached: the same words
        monkeypatch.setattr(f"bertkit.corpus.training.{name}", value)
        assert count_words([[line] for line in lines], flags) == expected


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
