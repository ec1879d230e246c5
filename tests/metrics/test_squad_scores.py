from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.labelled.squad import read_predictions, read_squad
from bertkit.metrics.squad import (
    best_threshold,
    exact_score,
    f1_score,
    normalise,
    question_scores,
    scores_by_question,
    squad_scores,
)

Golds = dict[str, list[str]]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  cat's\tHat!", "cats hat"),
        ("a an the", ""),
        ("another theory", "another theory"),
        ("U.S.A", "usa"),
        ("“quoted” — A", "“quoted” —"),
        ("A-the-B", "atheb"),
        ("\u00a0x\u3000y", "x y"),
        ("ÉCOLE", "école"),
    ],
)
def test_normalising(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_f1_counts_words_as_often_as_they_stand() -> None:
    # 2 words in common of 3 found and 4 gold: P 2/3, R 1/2
    assert f1_score("x x y z", "x x w") == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))
    assert f1_score("x", "y") == 0.0
    assert exact_score("The x.", "x") == 1.0


def test_no_words_on_a_side() -> None:
    assert f1_score("", "") == 1.0
    assert f1_score("x", "") == 0.0
    assert f1_score("the", "") == 1.0
    assert question_scores([], "", version=2) == (1.0, 1.0)
    assert question_scores([], "x", version=2) == (0.0, 0.0)
    # a gold of nothing but an article is none in 2.0, and gives exact but no F1 in 1.1
    assert question_scores(["the", "x"], "", version=2) == (0.0, 0.0)
    assert question_scores(["the"], "a", version=1) == (1.0, 0.0)


def test_the_best_over_the_golds_is_taken_for_each_score_apart() -> None:
    assert question_scores(["red house", "house"], "house", version=1) == (1.0, 1.0)
    exact, f1 = question_scores(["red big house", "red house now"], "red house", version=1)
    assert exact == 0.0
    assert f1 == pytest.approx(0.8)


def test_a_question_without_prediction_is_wrong() -> None:
    golds: Golds = {"1": ["x"], "2": ["y"]}
    assert scores_by_question(golds, {"1": "x"}, version=1) == {"1": (1.0, 1.0), "2": (0.0, 0.0)}
    assert squad_scores(golds, {"1": "x", "3": "z"}, version=1) == {"exact": 50.0, "f1": 50.0, "total": 2}


def test_no_question_is_an_error() -> None:
    with pytest.raises(ValueError, match="no question"):
        squad_scores({}, {}, version=1)


def test_has_answer_and_no_answer_parts() -> None:
    golds: Golds = {"a": ["x"], "b": [], "c": []}
    scores = squad_scores(golds, {"a": "x y", "b": "", "c": "z"}, version=2)
    assert scores["exact"] == pytest.approx(100 / 3)
    assert scores["HasAns_f1"] == pytest.approx(200 / 3)
    assert (scores["HasAns_total"], scores["NoAns_total"], scores["total"]) == (1, 2, 3)
    assert scores["NoAns_exact"] == 50.0
    assert "HasAns_exact" not in squad_scores({"b": []}, {"b": ""}, version=2)


def test_odds_above_the_threshold_take_the_answer_away() -> None:
    golds: Golds = {"a": ["x"], "b": []}
    texts = {"a": "x", "b": "wrong"}
    odds = {"a": -2.0, "b": 3.0}
    assert squad_scores(golds, texts, version=2, null_odds=odds, threshold=0.0)["exact"] == 100.0
    assert squad_scores(golds, texts, version=2, null_odds=odds, threshold=3.0)["exact"] == 50.0  # above, not at
    assert squad_scores(golds, texts, version=2, null_odds=odds, threshold=-3.0)["exact"] == 50.0


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.0, 0.5, 1.0]), st.booleans(), st.integers(-4, 4)), min_size=1, max_size=12
    )
)
def test_no_threshold_is_better_than_the_best(rows: list[tuple[bool, float, bool, int]]) -> None:
    answered = {str(i): row[0] for i, row in enumerate(rows)}
    # a prediction "" is right where there is no answer, and then no threshold changes it
    texts = {str(i): "t" if row[2] or row[0] else "" for i, row in enumerate(rows)}
    scores = {str(i): row[1] if row[0] else float(not texts[str(i)]) for i, row in enumerate(rows)}
    # the official search looks at a threshold behind each question, so that equal odds are split: keep them distinct for it
    odds = {str(i): row[3] + i / 100 for i, row in enumerate(rows)}
    equal = {str(i): float(row[3]) for i, row in enumerate(rows)}
    best, threshold, between = best_threshold(scores, texts, odds, answered)

    def average(cut: float, odds: dict[str, float] = odds) -> float:
        kept = [scores[key] if odds[key] <= cut else float(not answered[key]) for key in scores]
        return 100 * sum(kept) / len(kept)

    tried = [average(cut) for cut in [-1e9, *odds.values()]]
    assert best == pytest.approx(max(tried))
    if best > 100 * sum(not has for has in answered.values()) / len(rows):
        assert average(threshold) == pytest.approx(best)
    for noise in (-1e-3, 0.0, 1e-3):  # of odds computed in other batches, or in bf16
        assert average(between + noise) == pytest.approx(best)
    found = best_threshold(scores, texts, equal, answered)
    reached = max(average(cut, equal) for cut in [-1e9, *equal.values()])
    for noise in (-1e-3, 0.0, 1e-3):
        assert average(found.between + noise, equal) == pytest.approx(reached)


def test_of_questions_with_equal_odds_the_threshold_keeps_all_or_none() -> None:
    """evaluate-v2.0 parts them: its best keeps the first alone, which no threshold does."""
    odds = {"a": 7.5, "b": 7.5, "c": 7.5, "d": 9.0}
    answered = {"a": True, "b": False, "c": False, "d": True}
    found = best_threshold({"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}, dict.fromkeys(odds, "t"), odds, answered)
    assert (found.score, found.at) == (75.0, 7.5)
    assert found.between < 7.5  # none of them: two of four are right, and with all three one


def test_where_no_answer_at_all_is_best_the_threshold_takes_all_away() -> None:
    """evaluate-v2.0 then reports 0, above which none of these odds is."""
    odds = {"a": -5.0, "b": -3.0, "c": -4.0}
    answered = {"a": False, "b": False, "c": True}
    found = best_threshold({"a": 0.0, "b": 0.0, "c": 0.5}, dict.fromkeys(odds, "t"), odds, answered)
    assert (found.score, found.at) == (pytest.approx(200 / 3), 0.0)
    assert found.between < -5.0
    assert best_threshold({"c": 1.0}, {"c": "t"}, odds, answered).between == -3.0  # the one question of these scores


@pytest.mark.data
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_the_official_evaluators_figures_to_the_last_digit(real_data: Path, version: str) -> None:
    folder = real_data / "data/squad"
    expected = json.loads((folder / "reference/expected-scores.json").read_text())[version]
    rows, _ = read_squad(folder / expected["dataset"])
    golds = {row.id: [answer.text for answer in row.answers] for row in rows}
    assert len(expected["scores"]) == 2
    for name, official in expected["scores"].items():
        scores = squad_scores(golds, read_predictions(folder / "reference" / name), version=int(version[0]))
        official = {"exact" if key == "exact_match" else key: value for key, value in official.items()}
        assert {key: scores[key] for key in official} == official
