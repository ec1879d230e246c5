"""CMRC 2018's scorer: hand counts, and a second writing of its steps on random texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.metrics import squad
from bertkit.metrics.cmrc import PUNCTUATION, bare, exact_score, f1_score, longest_common, question_scores, segments
from bertkit.metrics.squad import squad_scores


def test_a_longer_answer_shares_what_squad_does_not_see() -> None:
    assert question_scores(["《北京大学》"], "北京大学图书馆", version=1) == (0.0, pytest.approx(8 / 11))  # 72.7
    assert squad.question_scores(["《北京大学》"], "北京大学图书馆", version=1) == (0.0, 0.0)
    assert question_scores(["《北京大学》"], "北京大学", version=1) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京大学", ["北", "京", "大", "学"]),
        ("1998年5月", ["1998", "年", "5", "月"]),
        ("iPhone 6s手机", ["iphone", "6s", "手", "机"]),
        (" 「New York」市。", ["new", "york", "市"]),
        ("2010-2011年", ["20102011", "年"]),  # the hyphen goes before words are told apart
        ("约3.5%，1,000人", ["约", "3.5", "%", "1,000", "人"]),
        ("Mr. Smith's dog.", ["mr.", "smith", "'s", "dog", "."]),
        ("东京……大阪", ["东", "京", "……", "大", "阪"]),  # the published list has it as one sign, which no character is
        ('1974–75 ("A.")', ["1974", "–", "75", "(", "``", "a", ".", "''", ")"]),
        ("カナ", ["カナ"]),  # no Chinese character: a word
        ("：，。", []),
        ("", []),
    ],
)
def test_segments(text: str, expected: list[str]) -> None:
    assert list(segments(text)) == expected


def test_f1_counts_one_run_in_its_order() -> None:
    assert f1_score("一二三四", "三四一二") == pytest.approx(0.5)  # one run of two, not four characters
    assert f1_score("一二三四", "一二五三四") == pytest.approx(2 * 2 / 9)
    assert f1_score("一二", "三四") == 0.0
    assert f1_score("", "") == 0.0
    assert exact_score("“《红楼梦》”", "红楼梦 ") == 1.0
    assert exact_score("(甲)", "甲") == 0.0  # of brackets the Chinese ones alone go


def test_the_best_over_golds_and_questions_without_answer() -> None:
    assert question_scores(["甲乙丙", "乙"], "乙丙", version=1) == (0.0, pytest.approx(0.8))
    assert question_scores([], "", version=2) == (1.0, 1.0)
    assert question_scores([], "甲", version=2) == (0.0, 0.0)
    assert question_scores(["。"], "", version=1) == (1.0, 0.0)
    assert question_scores(["。", "甲"], "", version=2) == (0.0, 0.0)
    found = squad_scores({"a": ["甲乙"], "b": []}, {"a": "甲", "b": ""}, version=2, scorer=question_scores)
    assert found["f1"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert found["HasAns_f1"] == pytest.approx(200 / 3)


def _f1_step_by_step(gold: str, predicted: str) -> float:
    """The published steps, one by one: characters into a buffer, every run of the one looked for in the other."""

    def parted(text: str) -> list[str]:
        out, word = [], ""
        for character in text.lower().strip():
            if character in PUNCTUATION:
                continue
            if re.match("[\u4e00-\u9fa5]", character):
                out += [*word.split(), character]
                word = ""
            else:
                word += character
        return out + word.split()

    a, b = parted(gold), parted(predicted)
    runs = {tuple(b[i:j]) for i in range(len(b)) for j in range(i + 1, len(b) + 1)}
    common = max((j - i for i in range(len(a)) for j in range(i + 1, len(a) + 1) if tuple(a[i:j]) in runs), default=0)
    if common == 0:
        return 0.0
    precision, recall = common / len(b), common / len(a)
    return 2 * precision * recall / (precision + recall)


_TEXTS = st.text("一二三。《 ab1-，X", max_size=9)


@given(_TEXTS, _TEXTS)
def test_f1_is_that_of_the_published_steps(gold: str, predicted: str) -> None:
    assert f1_score(gold, predicted) == pytest.approx(_f1_step_by_step(gold, predicted))
    assert exact_score(gold, predicted) == float(bare(gold) == bare(predicted))
    assert longest_common(segments(gold), segments(predicted)) == longest_common(segments(predicted), segments(gold))
