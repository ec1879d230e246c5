"""``bertkit tokenizer train``: what its flags change, and what stays behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_tests import Call


def test_least_frequency(bertkit: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("cat cat cat dog dog\n")
    for least, words in (((), {"cat", "dog"}), (("--min-frequency", "3"), {"cat"}), (("--min-frequency", "4"), set())):
        done = bertkit("tokenizer", "train", "a.txt", "--vocab-size", "60", *least, "-o", "t", "--overwrite")
        assert done.code == 0
        vocabulary = (tmp_path / "t" / "vocab.txt").read_text().split()
        assert {"cat", "dog"} & set(vocabulary) == words
        assert done.report["vocab_size"] == len(vocabulary)
        assert done.warned("vocabulary-size")
    assert bertkit("tokenizer", "train", "a.txt", "--min-frequency", "0").code == 2
    assert bertkit("tokenizer", "train", "a.txt", "--vocab-size", "2000000").code == 2
    read = bertkit("pretrain", "--corpus", "a.txt", "--tokenizer", "t", "--set", "tokenizer.min_frequency=3")
    assert (read.code, "not trained" in read.report["error"]["message"]) == (2, True)


def test_counts_on_disk_leave_nothing_there(bertkit: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("\n".join(f"word{n} and word{n % 7}" for n in range(500)))
    for folder in ("plain", "spilled"):
        assert bertkit("tokenizer", "train", "a.txt", "--vocab-size", "100", "-o", folder).code == 0
        monkeypatch.setattr("bertkit.corpus.word_counts.WordCounts.__init__.__kwdefaults__", {"at_once": 10})
    names = ["bertkit.json", "settings.yaml", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert {path.name for path in (tmp_path / "spilled").iterdir()} >= set(names)
    assert sorted(p.name for p in (tmp_path / "spilled").iterdir()) == sorted(p.name for p in (tmp_path / "plain").iterdir())
    assert (tmp_path / "spilled/vocab.txt").read_bytes() == (tmp_path / "plain/vocab.txt").read_bytes()
