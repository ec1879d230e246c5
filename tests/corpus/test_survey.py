"""The second look at a text: repeats with their texts, unknown words, scripts; compared with plain counting."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bertkit.corpus import survey, word_survey
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.frequent import FrequentTexts
from bertkit.corpus.repeats import RepeatCounter
from bertkit.corpus.scripts import script_of
from bertkit.corpus.survey import Group, Survey, survey_text
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.randomness import stream

WORDS = WordPiece([*SPECIALS, *"abcdefg", *("##" + c for c in "abcdefg"), "北", "京", ".", "д"], Flags(lowercase=True))
LINE = "a line that is long enough to be a sentence of its own"


def look(folder: Path, text: str, **kinds: str) -> Survey:
    path = folder / "text.txt"
    path.write_text(text, "utf-8")
    settings = CorpusSettings(**kinds)
    return survey_text(open_corpus([path], settings), settings, WORDS, folder / "work")


def test_repeats_are_counted_and_shown(tmp_path: Path) -> None:
    text = f"{LINE}\nad\n\nbed\nad\n\n  {LINE}\nad\n\n{LINE}\nad\nface\n"
    found = look(tmp_path, text)
    assert (found.long_lines.total, found.long_lines.distinct) == (3, 1)
    assert (found.short_lines.total, found.short_lines.distinct) == (6, 3)
    assert (found.documents.total, found.documents.distinct) == (4, 3)
    assert found.line_groups == (Group(text="ad", characters=2, count=4), Group(text=LINE, characters=len(LINE), count=3))
    assert found.document_groups == (Group(text=LINE, characters=0, count=2),)
    assert (found.reading.lines, found.characters) == (9, 3 * len(LINE) + 4 * 2 + 3 + 4)
    assert not list((tmp_path / "work").rglob("*.bin"))


def test_a_line_that_comes_once_is_in_no_group(tmp_path: Path) -> None:
    found = look(tmp_path, "bad\n\nface\n")
    assert (found.line_groups, found.document_groups, found.long_lines.repeated) == ((), (), 0)


def test_unknown_words_and_scripts(tmp_path: Path) -> None:
    found = look(tmp_path, "Bad хлеб д 北京 北上 xyz\nbed xyz .\n")
    assert found.unknown_words == (("xyz", 2), ("хлеб", 1), ("上", 1))
    assert not found.unknown_sampled
    kinds = {s.name: (s.letters, s.words, s.pieces, s.unknown) for s in found.scripts}
    assert kinds == {"Latin": (12, 2, 6, 2), "Cyrillic": (5, 1, 1, 1), "Han": (4, 3, 3, 1)}
    assert [s.name for s in found.scripts] == ["Latin", "Cyrillic", "Han"]
    assert (found.scripts[0].pieces_a_word, found.scripts[0].unknown_share) == (3, 0.5)


def test_memory_does_not_grow_with_a_document_nor_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "_AT_ONCE", 100)
    added: list[int] = []
    real = RepeatCounter.add
    monkeypatch.setattr(RepeatCounter, "add", lambda self, hashes: (added.append(len(hashes)), real(self, hashes))[1])
    found = look(tmp_path, "bad bed\n" * 1000 + "z" * 100_000 + "\n")
    assert found.short_lines.total == 1000
    assert max(added) == 100
    assert [(len(word), count) for word, count in found.unknown_words] == [(101, 1)]


@pytest.mark.parametrize("batch", [1, 30, 1_000_000])
def test_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    rng = stream(1, "test")
    lines = ["".join(rng.choice(list("abc xд京\n"), 20)) for _ in range(200)]
    monkeypatch.setattr(word_survey, "_BATCH", batch)
    found = look(tmp_path, "\n".join(lines))
    whole = [line.strip() for line in "\n".join(lines).split("\n") if line.strip()]
    words = [word for line in whole for word in line.replace("京", " ").split()]
    unknown = Counter(word for word in words if "x" in word or "д" in word[1:])
    assert dict(found.unknown_words).items() <= unknown.items()
    assert sum(s.unknown for s in found.scripts) == sum(unknown.values())
    assert found.short_lines.total + found.long_lines.total == len(whole)
    assert found.short_lines.distinct + found.long_lines.distinct == len(set(whole))


def test_of_very_many_unknown_words_a_part_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_survey, "_SAMPLE", 10)
    found = look(tmp_path, "xyz a\n" * 100)
    assert found.unknown_sampled
    assert found.unknown_words == (
        ("xyz", 43),
    )  # 20 of the first 20 lines, 10 of the next 20, 10 of the next 40, 3 of the last 20
    assert found.scripts[0].unknown == 100


def test_the_commonest_texts_survive_any_number_of_rare_ones() -> None:
    counter = FrequentTexts(limit=100)
    for number in range(5000):
        counter.add(f"rare {number}")
        if number % 10 == 0:
            counter.add("often")
    (text, count), *_ = counter.most(3)
    assert text == "often"
    assert 500 - counter.lost <= count <= 500
    assert len(counter.items()) <= 100
    exact = FrequentTexts()
    for word in ["b", "a", "c", "a", "b"]:
        exact.add(word)
    assert (exact.most(2), exact.lost) == ([("a", 2), ("b", 2)], 0)


@pytest.mark.parametrize(
    ("letter", "script"),
    [
        ("a", "Latin"),
        ("É", "Latin"),
        ("京", "Han"),
        ("カ", "Kana"),
        ("д", "Cyrillic"),
        ("한", "Hangul"),
        ("1", None),
        (".", None),
    ],
)
def test_scripts_of_letters(letter: str, script: str | None) -> None:
    assert script_of(letter) == script
