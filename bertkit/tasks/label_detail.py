"""Predictions of labels, sets of labels and numbers -> each class's figures, the confusion matrix and the wrong answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bertkit.labelled.rows import TextRow
from bertkit.metrics.counts import count_classes
from bertkit.tasks.detail import Confusion, Detail, Wrong, surest_first
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction


def label_detail(predictions: Sequence[Prediction], rows: Sequence[TextRow], labels: Labels) -> Detail:
    """Of predictions with gold, one a row."""
    if labels.problem == "regression":
        return Detail(wrong=surest_first(_wrong(predictions, rows)), measure="error")
    several = labels.problem == "multi_label_classification"
    golds, said = (
        [frozenset(value) if several else frozenset((value,)) for value in side]
        for side in ([one.gold for one in predictions], [one.value for one in predictions])
    )
    classes = count_classes(golds, said, labels.names)
    confusion = None if several else _confusion(predictions, list(classes))
    return Detail(classes=classes, confusion=confusion, wrong=surest_first(_wrong(predictions, rows)))


def _confusion(predictions: Sequence[Prediction], names: list[str]) -> Confusion:
    numbers = {name: number for number, name in enumerate(names)}
    counts = [[0] * len(names) for _ in names]
    for one in predictions:
        counts[numbers[one.gold]][numbers[one.value]] += 1
    return Confusion(labels=names, counts=counts)


def _wrong(predictions: Sequence[Prediction], rows: Sequence[TextRow]) -> Iterator[Wrong]:
    for one, row in zip(predictions, rows, strict=True):
        if one.value == one.gold:
            continue
        texts = {"text": row.text} | ({} if row.pair is None else {"pair": row.pair})
        said = f"{_shown(one.gold)}, predicted {_shown(one.value)}"
        yield Wrong(id=one.id, texts=texts, gold=one.gold, prediction=one.value, said=said, sure=_sure(one))


def _sure(one: Prediction) -> float | None:
    """How sure of the wrong answer; of several labels, of the surest wrong decision; of numbers, how far off."""
    if isinstance(one.gold, (int, float)):
        return abs(float(one.value) - float(one.gold))
    if isinstance(one.gold, str):
        return one.score
    said = one.more.get("probabilities")
    shares = said if isinstance(said, Mapping) else {}
    decided = [
        share if name in one.value else 1 - share for name, share in shares.items() if (name in one.value) != (name in one.gold)
    ]
    return max(decided, default=None)


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " + ".join(map(str, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
