"""The span kind for Chinese: scored as CMRC 2018 is, with SQuAD's figures beside, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from bertkit.labelled.rows import QuestionRow
from bertkit.metrics import cmrc
from bertkit.metrics.squad import QuestionScores, squad_scores
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.span import Span, judged
from bertkit.tasks.task import Task


class ChineseSpan(Span):
    """Answers as spans of a Chinese context: ``f1`` and ``exact`` are CMRC 2018's, ``squad_f1`` and ``squad_exact`` SQuAD's."""

    name: ClassVar[str] = "span_chinese"
    scorer: ClassVar[QuestionScores] = staticmethod(cmrc.question_scores)

    def score(
        self, predictions: Sequence[Prediction], rows: Sequence[QuestionRow], task: Task, labels: Labels, *, seed: int = 0
    ) -> Scores:
        """The figures of both scorers on a scale of 0–100; errors as :meth:`bertkit.tasks.span.Span.score`."""
        own = super().score(predictions, rows, task, labels, seed=seed)
        golds, texts, version = judged([(row, said) for row, said in zip(rows, predictions, strict=True) if row.labelled])
        beside = squad_scores(golds, texts, version=version)
        return replace(own, values={**own.values, "squad_f1": beside["f1"], "squad_exact": beside["exact"]})
