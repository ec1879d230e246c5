"""Tags of entities: how IOB1, IOB2, IOBES (BILOU, BMES) are read, recognised and turned into one another.

In go tags, one a word; out come entities or tags. All reading follows conlleval, which gives an entity to every tag that is
not ``O``, whatever stands before it; :func:`strict_entities` alone insists on lawful IOB2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Scheme = Literal["IOB1", "IOB2", "IOBES", "BILOU", "BMES", "plain"]
"""``plain``: tags that name no entities (parts of speech, say); they are labels as they stand."""

CONVERTED = frozenset({"IOB1", "IOBES", "BILOU", "BMES"})
"""Schemes of entities that are turned into IOB2."""

# One scheme in three spellings: the last word of an entity, its only word, and what lies within.
_SPELLINGS: dict[Scheme, frozenset[str]] = {
    "IOBES": frozenset("OBIES"),
    "BILOU": frozenset("OBILU"),
    "BMES": frozenset("OBMESW"),  # with W for S it is called BMEWO
}
_SAME = {"L": "E", "U": "S", "M": "I", "W": "S"}


class Entity(NamedTuple):
    """One entity: its first word, the word after its last, and its type."""

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """``"B-PER.NOM"`` → ``("B", "PER.NOM")``, parted at the first hyphen; ``"O"`` → ``("O", "")``."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def _parts(before: tuple[str, str], after: tuple[str, str]) -> bool:
    """Whether an entity that ``after`` belongs to begins there, ``before`` being the word in front (``O`` at the edge)."""
    if before[0] == "O" or before[1] != after[1]:
        return True
    # Within one type: B and S begin, and what ended with E or S is over.
    return after[0] in ("B", "S") or before[0] in ("E", "S")


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence as conlleval reads them, in order; any scheme, lawful or not.

    >>> entities(["I-LOC", "B-LOC", "O", "I-PER"])
    [Entity(start=0, end=1, type='LOC'), Entity(start=1, end=2, type='LOC'), Entity(start=3, end=4, type='PER')]
    """
    found: list[Entity] = []
    start = -1
    before = ("O", "")
    for place, tag in enumerate(tags):
        prefix, kind = split_tag(tag) if tag != "O" else ("O", "")
        here = (_SAME.get(prefix, prefix), kind)
        begins = here[0] != "O" and _parts(before, here)
        if start >= 0 and (begins or here[0] == "O"):
            found.append(Entity(start, place, before[1]))
            start = -1
        if begins:
            start = place
        before = here
    if start >= 0:
        found.append(Entity(start, len(tags), before[1]))
    return found


def strict_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence that are lawful IOB2: ``B-X`` and each ``I-X`` right behind; a stray ``I-`` is none."""
    found: list[Entity] = []
    start, kind = -1, ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, here = split_tag(tag)
        if start >= 0 and not (prefix == "I" and here == kind):
            found.append(Entity(start, place, kind))
            start = -1
        if prefix == "B":
            start, kind = place, here
    return found


def iob2_names(kind: str) -> tuple[str, str]:
    """The two IOB2 tags of a type: ``B-LOC`` and ``I-LOC``; of the nameless type, ``B`` and ``I``."""
    return (f"B-{kind}", f"I-{kind}") if kind else ("B", "I")


def iob2(found: Iterable[Entity], words: int) -> list[str]:
    """Writes entities as IOB2 tags of a sentence of ``words`` words."""
    tags = ["O"] * words
    for start, end, kind in found:
        tags[start], inside = iob2_names(kind)
        tags[start + 1 : end] = [inside] * (end - start - 1)
    return tags


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Turns one sentence's tags of any scheme into IOB2, keeping the entities that conlleval reads in them."""
    return iob2(entities(tags), len(tags))


def recognise(sentences: Iterable[Sequence[str]]) -> tuple[Scheme, int]:
    """Recognises the scheme of a whole file; a sentence alone rarely tells.

    Returns:
        The scheme, and how many entities begin as it does not allow (``I-`` without ``B-`` in a file of IOB2, a needless
        ``B-`` in one of IOB1; 0 for others).

    IOB1 begins an entity with ``B-`` only behind another of its type, IOB2 begins all of them so. What most entities do
    decides: CoNLL-2003's training file, IOB1, has one needless ``B-`` among 23 428, and others' IOB2 some stray ``I-``.
    ``E-`` or ``S-`` makes it IOBES, ``L-`` or ``U-`` BILOU, ``M-`` or ``W-`` BMES; a tag that is neither ``O`` nor begins so, or
    prefixes that no scheme has together, make it plain. A type may be nameless (tags ``B``, ``I``); ``L``, ``U``, ``M`` and ``W``
    without a type are more likely classes, and so only where there is a ``B``.
    """
    prefixes: set[str] = set()
    nameless: set[str] = set()
    begun_by_i = begun_by_b = 0
    for tags in sentences:
        before = ("O", "")
        for tag in tags:
            here = split_tag(tag)
            prefixes.add(here[0])
            if tag == here[0]:
                nameless.add(tag)
            if here[0] != "O" and (before[0] == "O" or before[1] != here[1]):
                begun_by_i += here[0] == "I"
                begun_by_b += here[0] == "B"
            before = here
    if nameless & _SAME.keys() and "B" not in prefixes:
        return "plain", 0
    if prefixes <= {"O", "B", "I"}:
        return ("IOB1", begun_by_b) if begun_by_i > begun_by_b else ("IOB2", begun_by_i)
    return next((scheme for scheme, known in _SPELLINGS.items() if prefixes <= known), "plain"), 0


def stray_tags(sentences: Iterable[Sequence[str]]) -> list[str]:
    """The tags that keep a file from being one of entities, where others (``B-LOC``) look like it; empty where none does."""
    tags = dict.fromkeys(tag for sentence in sentences for tag in sentence)
    seen = {split_tag(tag)[0] for tag in tags}
    known = max(_SPELLINGS.values(), key=lambda spelling: len(spelling & seen))
    lawful = {tag for tag in tags if split_tag(tag)[0] in known}
    return [tag for tag in tags if tag not in lawful] if any("-" in tag for tag in lawful) else []
