"""``--masking`` and ``--words`` of a pretraining: what is said, what the card shows, and what is refused before any work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import call, done, flags

SENTENCES = ("我喜欢北京大学。", "北京大学很大，我喜欢学习。", "大学的学习很好。", "BERT模型unwanted。")


@pytest.fixture
def chinese(tmp_path: Path) -> Path:
    path = tmp_path / "chinese.txt"
    texts = ["\n".join(SENTENCES[place:] + SENTENCES[:place]) for place in range(4)] * 10
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


def told_of_characters(told: Any) -> int:
    return [warning["kind"] for warning in told["warnings"]].count("chinese-by-character")


@pytest.mark.slow
def test_chinese_without_words_is_masked_by_character_and_that_is_said_once(chinese: Path, tmp_path: Path) -> None:
    told = done(*flags(chinese, tmp_path / "run", "--steps 2 --masking word", "--json")).object
    assert told_of_characters(told) == 1
    told = done(*flags(chinese, tmp_path / "tokens", "--steps 2 --masking token", "--json")).object
    assert told_of_characters(told) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["word", "span"])
def test_chinese_with_words(chinese: Path, tmp_path: Path, kind: str) -> None:
    words = tmp_path / "words.txt"
    words.write_text("喜欢\t9\n北京\t9\n大学\t9\n学习\t9\n模型\t9\n", encoding="utf-8")
    told = done(*flags(chinese, tmp_path / "run", f"--steps 2 --masking {kind} --words {words}", "--json"))
    assert told_of_characters(told.object) == 0
    assert f"masking by {kind}" in told.err
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert f"| masking.kind | {kind} |" in card
    again = call(*flags(chinese, tmp_path / "run", f"--steps 2 --masking {kind} --words {words}", "--json"))
    assert again.object["state"] == "already finished"
    words.write_text("喜欢\t9\n北京大学\t9\n", encoding="utf-8")
    changed = call(*flags(chinese, tmp_path / "run", f"--steps 2 --masking {kind} --words {words}", "--json"))
    assert changed.code == 2
    assert str(words) in changed.object["error"]["message"]


@pytest.mark.slow
def test_words_without_masking_by_word_are_told(chinese: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("北京\n", encoding="utf-8")
    told = done(*flags(chinese, tmp_path / "run", f"--steps 1 --words {words}", "--json")).object
    assert "words-not-masked" in [warning["kind"] for warning in told["warnings"]]


@pytest.mark.parametrize(
    ("content", "code", "message"), [(None, 4, "cannot be read"), ("喜欢 9\n北京\n", 3, "Line 2 of the word list")]
)
def test_a_list_that_is_none_is_told_before_any_work(
    chinese: Path, tmp_path: Path, content: str | None, code: int, message: str
) -> None:
    words = tmp_path / "words.txt"
    if content is not None:
        words.write_text(content, encoding="utf-8")
    refused = call(*flags(chinese, tmp_path / "run", f"--steps 2 --words {words}", "--json"))
    assert refused.code == code
    assert message in refused.object["error"]["message"]
    assert not list(tmp_path.glob("run/*.txt")), "a vocabulary was trained first"


def test_a_segmenter_that_is_not_installed(chinese: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    refused = call(*flags(chinese, tmp_path / "run", "--steps 2 --words rjieba", "--json"))
    assert refused.code == 4
    assert "pip install rjieba" in refused.object["error"]["hint"]


def test_a_kind_that_there_is_not(chinese: Path, tmp_path: Path) -> None:
    refused = call(*flags(chinese, tmp_path / "run", "--steps 2 --masking sentence", "--json"))
    assert refused.code == 2
    assert "word" in refused.object["error"]["message"]
