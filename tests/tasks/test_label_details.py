"""Beside a task's figures: resampled figures, classes, confusions, the wrong answers, and what no model can give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as reference

from bertkit.labelled.rows import TextRow
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.examples import Encoded, Example
from bertkit.tasks.label_detail import label_detail
from bertkit.tasks.label_reach import tell_reach
from bertkit.tasks.label_resampling import resampled_labels
from bertkit.tasks.label_scores import score_labels
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import task_named

NAMES = ("a", "b", "c", "d")


def drawn(problem: str, rows: int = 300, names: tuple[str, ...] = NAMES[:3], seed: int = 0) -> list[Prediction]:
    random = np.random.default_rng(seed)
    if problem == "regression":
        gold = random.integers(0, 6, rows).astype(float)
        return [
            Prediction(id=str(n), gold=g, value=g + e)
            for n, (g, e) in enumerate(zip(gold, random.normal(size=rows), strict=True))
        ]
    if problem == "multi_label_classification":
        sides = random.random((2, rows, len(names))) < 0.4
        chosen = [[[name for name, on in zip(names, row, strict=True) if on] for row in side] for side in sides]
        return [Prediction(id=str(n), gold=g, value=p) for n, (g, p) in enumerate(zip(*chosen, strict=True))]
    gold, other, kept = random.choice(names, rows), random.choice(names, rows), random.random(rows) < 0.6
    return [
        Prediction(id=str(n), gold=str(g), value=str(g if keep else o), score=float(s))
        for n, (g, o, keep, s) in enumerate(zip(gold, other, kept, random.random(rows), strict=True))
    ]


def text_rows(predictions: list[Prediction]) -> list[TextRow]:
    return [
        TextRow(id=p.id, text=f"text {p.id}", label=tuple(p.gold) if isinstance(p.gold, list) else p.gold) for p in predictions
    ]


@pytest.mark.parametrize(
    ("problem", "primary"),
    [
        *[("single_label_classification", name) for name in ("accuracy", "f1", "f1_macro", "f1_micro", "matthews")],
        *[("multi_label_classification", name) for name in ("accuracy", "f1_macro", "f1_micro")],
        *[("regression", name) for name in ("pearson", "spearman")],
    ],
)
def test_of_all_rows_once_a_resampled_figure_is_the_figure(problem: str, primary: str) -> None:
    predictions = drawn(problem)
    labels = Labels(names=NAMES if problem != "regression" else ("score",), problem=problem, positive="b")
    task = replace(task_named("stsb" if problem == "regression" else "classification"), metrics=(primary,), problem=problem)
    scores = score_labels(predictions, text_rows(predictions), task, labels)
    score = resampled_labels(predictions, primary, labels)
    assert score.value == pytest.approx(scores.best, abs=1e-12)
    # Rows drawn twice or never: as the figure of a list that has them so.
    times = np.random.default_rng(1).integers(0, 3, len(predictions))
    again = [p for p, count in zip(predictions, times, strict=True) for _ in range(count)]
    expected = score_labels(again, text_rows(again), task, labels).best
    assert score.score(score.rows, times[None].astype(float))[0] == pytest.approx(expected, abs=1e-12)
    assert scores.interval is not None
    assert scores.interval[0] < scores.best < scores.interval[1]


@pytest.mark.parametrize("names", [NAMES[:2], NAMES])
def test_classes_and_confusions_are_those_of_scikit_learn(names: tuple[str, ...]) -> None:
    predictions = drawn("", names=names)
    detail = label_detail(predictions, text_rows(predictions), Labels(names=names))
    gold, said = [p.gold for p in predictions], [p.value for p in predictions]
    assert detail.confusion is not None
    assert detail.confusion.labels == list(names)
    assert detail.confusion.counts == reference.confusion_matrix(gold, said, labels=list(names)).tolist()
    expected = reference.precision_recall_fscore_support(gold, said, labels=list(names))
    for place, name in enumerate(names):
        figures = detail.classes[name].figures()
        ours = [figures[key] for key in ("precision", "recall", "f1", "support")]
        assert ours == pytest.approx([column[place] for column in expected])


def test_of_several_labels_a_row_each_class_is_counted_for_itself() -> None:
    predictions = drawn("multi_label_classification")
    detail = label_detail(predictions, text_rows(predictions), Labels(names=NAMES, problem="multi_label_classification"))
    assert detail.confusion is None
    binary = [
        [[name in chosen for name in NAMES] for chosen in side]
        for side in zip(*((p.gold, p.value) for p in predictions), strict=True)
    ]
    expected = reference.precision_recall_fscore_support(*binary, zero_division=0)
    for place, name in enumerate(NAMES[:3]):
        figures = detail.classes[name].figures()
        ours = [figures[key] for key in ("precision", "recall", "f1", "support")]
        assert ours == pytest.approx([column[place] for column in expected])
    assert detail.classes["d"].f1 is None  # nobody has it: there is nothing to score


def test_a_label_that_the_head_does_not_have_is_a_column_of_its_own() -> None:
    predictions = [Prediction(id="0", gold="a", value="x"), Prediction(id="1", gold="b", value="b")]
    detail = label_detail(predictions, text_rows(predictions), Labels(names=("a", "b")))
    assert detail.confusion is not None
    assert detail.confusion.labels == ["a", "b", "x"]
    assert detail.confusion.counts == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert detail.confusion.taken_for("a") == [("x", 1)]
    assert detail.facts()["classes"]["x"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}


def test_the_surest_wrong_answers_come_first() -> None:
    predictions = [
        Prediction(id="0", gold="a", value="b", score=0.6),
        Prediction(id="1", gold="a", value="a", score=0.99),
        Prediction(id="2", gold="b", value="a", score=0.9),
        Prediction(id="3", gold="b", value="a"),
    ]
    detail = label_detail(predictions, text_rows(predictions), Labels(names=("a", "b")))
    assert list(detail.records()) == [
        {"id": "2", "gold": "b", "prediction": "a", "probability": 0.9, "text": "text 2"},
        {"id": "0", "gold": "a", "prediction": "b", "probability": 0.6, "text": "text 0"},
        {"id": "3", "gold": "b", "prediction": "a", "probability": None, "text": "text 3"},
    ]
    several = [
        Prediction(id="0", gold=["a"], value=["a", "b"], more={"probabilities": {"a": 0.99, "b": 0.7, "c": 0.1}}),
        Prediction(id="1", gold=["c"], value=[], more={"probabilities": {"a": 0.2, "b": 0.2, "c": 0.1}}),
    ]
    found = label_detail(several, text_rows(several), Labels(names=NAMES[:3], problem="multi_label_classification"))
    assert [(one.id, one.sure, one.said) for one in found.wrong] == [
        ("1", 0.9, "c, predicted none"),
        ("0", 0.7, "a, predicted a + b"),
    ]
    numbers = [Prediction(id=str(n), gold=2.0, value=value) for n, value in enumerate((2.5, 2.0, 0.5))]
    far = label_detail(numbers, text_rows(numbers), Labels(names=("score",), problem="regression"))
    assert [(one.id, one.sure) for one in far.wrong] == [("2", 1.5), ("0", 0.5)]
    assert [set(record) for record in far.records()] == [{"id", "gold", "prediction", "error", "text"}] * 2


def reach(sequences: list[list[int]], golds: list[Any], problem: str = "single_label_classification") -> Coverage:
    rows = [TextRow(id=str(n), text="", label=gold) for n, gold in enumerate(golds)]
    arrays = [np.array(ids, dtype=np.int32) for ids in sequences]
    examples = [Example(row=n, ids=ids, types=np.zeros_like(ids)) for n, ids in enumerate(arrays)]
    encoded = Encoded(examples, Coverage(rows=len(rows), examples=len(rows)))
    tell_reach(encoded, rows, Labels(names=("a", "b"), problem=problem))
    return encoded.coverage


def test_no_model_tells_apart_what_looks_alike() -> None:
    told = reach([[2, 3], [2, 3], [2, 3], [2, 9, 3], [2, 9, 3]], ["a", "a", "b", "b", "B"])
    assert (told.unreachable, told.ceilings) == (1, {"accuracy": pytest.approx(4 / 5)})
    assert "1 gold labels are out of reach; a perfect model could get accuracy 80.00." in told.lines()
    assert reach([[2, 3], [2, 4, 3]], ["a", "b"]).lines() == []
    assert reach([[2, 3], [2, 3]], [None, None]).lines() == []


def test_the_best_correlation_of_what_looks_alike_is_found_by_no_other_answer() -> None:
    sequences, golds = [[1], [1], [2], [3], [3], [4]], [0.0, 2.0, 5.0, 3.0, 4.0, 1.0]
    told = reach(sequences, golds, "regression")
    assert told.unreachable == 4
    random, keys = np.random.default_rng(0), [ids[0] for ids in sequences]
    best = told.ceilings["pearson"]
    tried = [np.corrcoef(golds, [answer[key] for key in keys])[0, 1] for answer in random.random((3000, 5))]
    assert max(tried) <= best + 1e-12
    assert max(tried) > best - 0.02  # and it is no loose bound: 3 000 guesses come near it
