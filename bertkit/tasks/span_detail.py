"""Predictions of answers -> the questions whose answer is none of the gold ones, by the official reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertkit.labelled.rows import QuestionRow
from bertkit.metrics.squad import QuestionScores
from bertkit.tasks.detail import Detail, Wrong, surest_first
from bertkit.tasks.kinds import Prediction


def span_detail(
    predictions: Sequence[Prediction], rows: Sequence[QuestionRow], *, version: int, scorer: QuestionScores
) -> Detail:
    """Of predictions, one a row; how sure an answer is says the n-best list, where there is one."""
    return Detail(wrong=surest_first(_wrong(predictions, rows, version, scorer)))


def _wrong(
    predictions: Sequence[Prediction], rows: Sequence[QuestionRow], version: int, scorer: QuestionScores
) -> Iterator[Wrong]:
    for one, row in zip(predictions, rows, strict=True):
        golds = [answer.text for answer in row.answers]
        text = "" if one.value is None else str(one.value)
        if not row.labelled or (one.value is not None and scorer(golds, text, version=version)[0] == 1.0):
            continue
        said = f"{' | '.join(dict.fromkeys(golds)) or 'no answer'}, predicted {text or 'no answer'}"
        texts = {"question": row.question}
        yield Wrong(id=one.id, texts=texts, gold=golds, prediction=one.value, said=said, sure=_probability(one, text))


def _probability(one: Prediction, text: str) -> float | None:
    return next((each["probability"] for each in one.more.get("nbest", ()) if each["text"] == text), None)
