"""Predictions of answers -> figures by group of questions, and the questions whose answer is none of the gold ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bertkit.labelled.rows import QuestionRow
from bertkit.metrics.squad import QuestionScores
from bertkit.tasks.detail import Detail, Wrong, surest_first
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.span_groups import groups

_Scores = Mapping[str, tuple[float, float]]


def span_detail(
    predictions: Sequence[Prediction], rows: Sequence[QuestionRow], *, version: int, scorer: QuestionScores
) -> Detail:
    """Of predictions, one a row; how sure an answer is says the n-best list, where there is one."""
    asked = [(row, said) for row, said in zip(rows, predictions, strict=True) if row.labelled]
    scores: dict[str, tuple[float, float]] = {}
    for row, said in asked:
        golds = [answer.text for answer in row.answers]
        scores[row.id] = (0.0, 0.0) if said.value is None else scorer(golds, str(said.value), version=version)
    return Detail(groups=groups([row for row, _ in asked], scores), wrong=surest_first(_wrong(asked, scores)))


def _wrong(asked: Sequence[tuple[QuestionRow, Prediction]], scores: _Scores) -> Iterator[Wrong]:
    for row, one in asked:
        if scores[row.id][0] == 1.0:
            continue
        golds = [answer.text for answer in row.answers]
        text = "" if one.value is None else str(one.value)
        said = f"{' | '.join(dict.fromkeys(golds)) or 'no answer'}, predicted {text or 'no answer'}"
        texts = {"question": row.question}
        yield Wrong(id=one.id, texts=texts, gold=golds, prediction=one.value, said=said, sure=_probability(one, text))


def _probability(one: Prediction, text: str) -> float | None:
    return next((each["probability"] for each in one.more.get("nbest", ()) if each["text"] == text), None)
