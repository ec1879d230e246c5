"""Which labels no model can give: of texts that are one sequence of ids to it (cut, emptied, or simply equal) but have others.

In come the examples that a model reads and their golds; out goes a count and the best score that any answer by sequence gets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from bertkit.labelled.rows import TextRow
from bertkit.tasks.examples import Encoded
from bertkit.tasks.labels import Labels


def tell_reach(encoded: Encoded, rows: Sequence[TextRow], labels: Labels) -> None:
    """Writes the count and, where it is not 0, the ceiling of accuracy (labels) or of Pearson's r (numbers) into the coverage.

    The best that a function of the sequence can do is the commonest label of each, and of numbers their mean: then accuracy
    is the share of the commonest ones, and r the root of the part of the golds' variance that lies between the sequences.
    """
    golds = _by_sequence(encoded, rows)
    total = sum(map(len, golds))
    if not total:
        return
    coverage = encoded.coverage
    if labels.problem == "regression":
        coverage.unreachable = sum(len(group) for group in golds if len(set(group)) > 1)
        best = _pearson([[float(str(gold)) for gold in group] for group in golds])
        if coverage.unreachable and best is not None:
            coverage.ceilings = {"pearson": best}
    else:
        coverage.unreachable = total - sum(max(Counter(group).values()) for group in golds)
        if coverage.unreachable:
            coverage.ceilings = {"accuracy": 1 - coverage.unreachable / total}
    if coverage.unreachable:
        coverage.notes.append("Those texts look to the model like others with another label.")


def _by_sequence(encoded: Encoded, rows: Sequence[TextRow]) -> list[list[object]]:
    """The golds of the rows by what a model sees of them: the ids and segments of all their sequences."""
    seen: dict[int, list[bytes]] = defaultdict(list)
    for example in encoded.examples:
        seen[example.row] += [example.ids.tobytes(), example.types.tobytes()]
    groups: dict[tuple[bytes, ...], list[object]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row.label is not None:
            gold = frozenset(name.casefold() for name in row.label) if isinstance(row.label, tuple) else row.label
            groups[tuple(seen[number])].append(gold.casefold() if isinstance(gold, str) else gold)
    return list(groups.values())


def _pearson(groups: Sequence[Sequence[float]]) -> float | None:
    """The correlation of the golds with the means of their groups; None where the golds never vary."""
    golds = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    means = np.concatenate([np.full(len(group), np.mean(group)) for group in groups])
    spread = float(((golds - golds.mean()) ** 2).sum())
    return float(np.sqrt(((means - golds.mean()) ** 2).sum() / spread)) if spread > 0 else None
