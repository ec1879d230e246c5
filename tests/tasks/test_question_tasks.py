"""Tasks of questions by name: whose arithmetic they are scored by, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.labelled.rows import Answer, QuestionRow
from bertkit.tasks.data import load_parts
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import kind_of, task_named

LABELS = Labels(names=(), problem="")
ROW = QuestionRow(id="q", question="哪所大学？", context="他在《北京大学》图书馆", answers=(Answer("《北京大学》", 2),))


@pytest.mark.parametrize("name", ["drcd", "cmrc2018"])
def test_chinese_tasks_are_scored_as_cmrc_is_with_squads_figures_beside(name: str) -> None:
    task = task_named(name)
    kind = kind_of(task)
    said = [Prediction(id="q", value="北京大学图书馆")]
    scores = kind.score(said, [ROW], task, LABELS)
    assert scores.primary == "f1"
    assert scores.values == {"exact": 0.0, "f1": pytest.approx(800 / 11), "squad_f1": 0.0, "squad_exact": 0.0}
    assert scores.interval == (pytest.approx(800 / 11), pytest.approx(800 / 11))  # the primary figure's own arithmetic
    assert set(task.metrics) == set(scores.values)
    assert [one.id for one in kind.detail(said, [ROW], LABELS).wrong] == ["q"]
    assert not kind.detail([Prediction(id="q", value="北京大学")], [ROW], LABELS).wrong
    squad = task_named("squad")
    assert kind_of(squad).score([Prediction(id="q", value="北京大学")], [ROW], squad, LABELS).values == {"exact": 0.0, "f1": 0.0}


def test_squad_v2_may_have_no_answer_whatever_the_file_says() -> None:
    task = task_named("squad_v2")
    assert task.settings["null_answers"] is True
    assert task.hub is not None
    assert task.hub.id == "rajpurkar/squad_v2"


@pytest.mark.data
def test_the_published_files_are_found_in_their_folders(real_data: Path) -> None:
    for name, roles, counts in (
        ("drcd", ("validation", "test"), (3524, 3493)),
        ("cmrc2018", ("train", "validation"), (1002, 3219)),
    ):
        parts = load_parts(task_named(name), roles, folder=str(real_data / f"data/zh/{name}"))
        assert tuple(len(parts[role].rows) for role in roles) == counts
