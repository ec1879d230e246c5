"""Figures by answer length and question word."""

from __future__ import annotations

import pytest

from bertkit.labelled.rows import Answer, QuestionRow
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import kind_of, task_named
from bertkit.tasks.span_groups import answer_length, question_word


def asked(question: str, *texts: str, identity: str = "q") -> QuestionRow:
    answers = tuple(Answer(text, 0) for text in texts)
    return QuestionRow(id=identity, question=question, context="", answers=answers, impossible=not texts)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("In what year was it?", "what"),
        ("How many are there?", "how many"),
        ("how MUCH", "how many"),
        ("How is it done, and why?", "how"),
        ("With whom?", "who"),
        ("Whose is it?", "who"),
        ("Name it.", "other"),
        ("Somewhat whoever", "other"),
        ("他为什么走？", "为什么"),
        ("他是什麼人？", "什么"),
        ("何時出生？", "什么时候"),
        ("在哪裡？", "哪里"),
        ("哪一年？", "哪"),
        ("有几个？", "多少"),
        ("如何做？", "怎么"),
        ("誰？", "谁"),
    ],
)
def test_the_first_word_that_asks(question: str, word: str) -> None:
    assert question_word(asked(question)) == word


@pytest.mark.parametrize(
    ("texts", "length"),
    [
        ((), "no answer"),
        (("the house",), "1"),  # an article is no word to the scorer
        (("a b c d e f", "x y"), "2"),  # the shortest gold
        (("one two three four",), "4-5"),
        (("北京大学",), "4-5"),
        (("1998年5月",), "4-5"),
        (("x " * 11,), "11 or more"),
    ],
)
def test_lengths_of_answers(texts: tuple[str, ...], length: str) -> None:
    assert answer_length(asked("?", *texts)) == length


def test_figures_of_the_groups_are_those_of_their_questions() -> None:
    rows = [
        asked("Who is it?", "red house", identity="a"),
        asked("Who was it?", "house", identity="b"),
        asked("Why?", "x y z", identity="c"),
        asked("Why not?", identity="d"),
        QuestionRow(id="e", question="Who?", context="", labelled=False),
    ]
    said = [Prediction(id=row.id, value=value) for row, value in zip(rows, ["house", "house", "w", "", "?"], strict=True)]
    task = task_named("squad")
    facts = kind_of(task).detail(said, rows, Labels(names=(), problem="")).facts()
    words = facts["groups"]["question word"]
    assert list(words) == ["who", "why"]
    assert words["who"] == {"examples": 2, "exact": 50.0, "f1": pytest.approx(100 * (2 / 3 + 1) / 2)}
    assert words["why"] == {"examples": 2, "exact": 50.0, "f1": 50.0}
    lengths = facts["groups"]["answer length"]
    assert {name: each["exact"] for name, each in lengths.items()} == {"1": 100.0, "2": 0.0, "3": 0.0, "no answer": 100.0}
