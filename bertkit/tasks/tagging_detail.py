"""Predictions of tags -> each type's counts, the commonest errors and the sentences with a wrong tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertkit.labelled.rows import TaggedRow
from bertkit.labelled.tags import entities
from bertkit.metrics.classification import confusion
from bertkit.metrics.counts import count_classes
from bertkit.metrics.entities import count_entities
from bertkit.metrics.entity_errors import entity_errors
from bertkit.tasks.detail import Confusion, Detail, Wrong, surest_first
from bertkit.tasks.prediction import Prediction


def tagging_detail(
    predictions: Sequence[Prediction], rows: Sequence[TaggedRow], golds: Sequence[Sequence[str] | None], *, plain: bool
) -> Detail:
    """Of predictions, one a row; of tags that name no entities (``plain``) the classes are the tags themselves, word by word."""
    kept = [(gold, said.value) for gold, said in zip(golds, predictions, strict=True) if gold is not None]
    if plain:
        ours, theirs = ([frozenset((tag,)) for tags in side for tag in tags] for side in zip(*kept, strict=True))
        classes = count_classes(ours, theirs, sorted({tag for gold, _ in kept for tag in gold}))
        counts, names = confusion([tag for gold, _ in kept for tag in gold], [tag for _, said in kept for tag in said])
        taken = Confusion(labels=list(map(str, names)), counts=counts.tolist())
        return Detail(classes=classes, confusion=taken, wrong=surest_first(_wrong(predictions, rows, golds)))
    _, types = count_entities((set(entities(gold)) for gold, _ in kept), (set(entities(said)) for _, said in kept))
    classes = {name: counts for name, counts in types.items() if name}
    errors = entity_errors((gold for gold, _ in kept), (said for _, said in kept))
    return Detail(classes=classes, errors=dict(errors.most_common()), wrong=surest_first(_wrong(predictions, rows, golds)))


def _wrong(
    predictions: Sequence[Prediction], rows: Sequence[TaggedRow], golds: Sequence[Sequence[str] | None]
) -> Iterator[Wrong]:
    for one, row, gold in zip(predictions, rows, golds, strict=True):
        if gold is None or list(gold) == list(one.value):
            continue
        words = [
            f"{word} {right}, predicted {said}"
            for word, right, said in zip(row.words, gold, one.value, strict=True)
            if right != said
        ]
        yield Wrong(
            id=one.id, texts={"words": " ".join(row.words)}, gold=list(gold), prediction=list(one.value),
            said="; ".join(words), sure=one.score,
        )  # fmt: skip
