"""Holding rows out where own data have no validation part: chosen by hash, equal texts on one side."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

from bertkit.errors import DataError

R = TypeVar("R")


def hold_out(
    rows: Sequence[R],
    text_of: Callable[[R], str],
    *,
    labels_of: Callable[[R], Sequence[str]] = lambda row: (),
    share: float = 0.1,
    where: str | None = None,
) -> tuple[list[R], list[R]]:
    """Parts rows into training and held-out ones, each in its order.

    Texts that differ in case and spaces alone count as equal, since an uncased model sees them so. Which are held out
    depends on the texts alone: neither on their order nor on a seed.

    Args:
        rows: All rows.
        text_of: What a row says.
        labels_of: The classes that a row is an example of: no row is held out that is the last one of its class.
        share: The share of rows to hold out: as many as fit into it without parting equal texts, at least one.
        where: The file, for errors.

    Raises:
        DataError: All texts are equal (or there are fewer than two rows): no side would be without them,
            or each holds the last row of a class (exit 3).
    """
    groups: dict[bytes, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups[hashlib.sha256(" ".join(text_of(row).casefold().split()).encode()).digest()].append(index)
    if len(groups) < 2:
        raise DataError(
            f"No part can be held out of {len(rows)} rows with {len(groups)} different texts.",
            where=where,
            hint="Give a validation part of its own with --validation-file.",
        )
    room = max(1, round(share * len(rows)))
    left = Counter(name for row in rows for name in labels_of(row))
    held: set[int] = set()

    def hold(group: list[int]) -> None:
        taken = Counter(name for index in group for name in labels_of(rows[index]))
        if all(left[name] > count for name, count in taken.items()):
            left.subtract(taken)
            held.update(group)

    for digest in sorted(groups):
        if len(held) + len(groups[digest]) <= room:
            hold(groups[digest])
    for group in sorted(groups.values(), key=len):
        if not held:
            hold(group)
    if not held:
        raise DataError(
            f"No part can be held out of {len(rows)} rows: a class would be left without an example to learn from.",
            where=where,
            hint="Give a validation part of its own with --validation-file.",
        )
    return [row for i, row in enumerate(rows) if i not in held], [row for i, row in enumerate(rows) if i in held]
