"""What went wrong with entities: taken for another type, with other borders, missed or invented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from bertkit.labelled.tags import Entity, entities

Fault = Literal["type", "borders", "type and borders", "missed", "invented"]


class EntityError(NamedTuple):
    """One sort of error: the fault, the gold type (empty where invented) and the predicted one (empty where missed)."""

    fault: Fault
    gold: str
    predicted: str


def entity_errors(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> Counter[EntityError]:
    """Counts the errors over sentences of tags; each entity that is not right is in exactly one of them.

    A wrong prediction answers at most one gold entity that no right one is: that with the same words, else one of its type
    that it shares words with, else any that it does, the most words first. What is left over is missed or invented.
    """
    counts: Counter[EntityError] = Counter()
    for ours, theirs in zip(gold, predicted, strict=True):
        counts.update(_of_sentence(entities(ours), entities(theirs)))
    return counts


def _of_sentence(gold: Sequence[Entity], found: Sequence[Entity]) -> Iterable[EntityError]:
    missed = {one: None for one in gold if one not in found}
    invented = {one: None for one in found if one not in gold}
    pairs = [(ours, theirs) for ours in missed for theirs in invented if _shared(ours, theirs) > 0]
    for ours, theirs in sorted(pairs, key=lambda pair: _order(*pair)):
        if ours in missed and theirs in invented:
            del missed[ours], invented[theirs]
            yield EntityError(_fault(ours, theirs), ours.type, theirs.type)
    yield from (EntityError("missed", one.type, "") for one in missed)
    yield from (EntityError("invented", "", one.type) for one in invented)


def _shared(one: Entity, other: Entity) -> int:
    return min(one.end, other.end) - max(one.start, other.start)


def _order(ours: Entity, theirs: Entity) -> tuple[bool, bool, int, Entity, Entity]:
    return ours[:2] != theirs[:2], ours.type != theirs.type, -_shared(ours, theirs), ours, theirs


def _fault(ours: Entity, theirs: Entity) -> Fault:
    if ours[:2] == theirs[:2]:
        return "type"
    return "borders" if ours.type == theirs.type else "type and borders"
