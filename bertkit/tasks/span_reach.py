"""Which gold answers the windows and the length limit let a model give at all, and the score that a perfect one could get.

In come a question's gold answers, its context's token offsets and its windows; out goes a count and a ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bertkit.batches.windows import Window
from bertkit.labelled.rows import Answer, QuestionRow
from bertkit.labelled.squad import shown
from bertkit.metrics.squad import QuestionScores
from bertkit.tasks.coverage import Coverage

Ints = npt.NDArray[np.int32]


def span_of(offsets: Ints, start: int, end: int) -> tuple[int, int] | None:
    """First and last token that stand for any of the characters ``start … end - 1``; None where no token does."""
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


class Reach:
    """Counts the gold answers that no output can give, and what a perfect model could still score.

    Args:
        longest: Tokens of an answer at most.
        nulls: Whether "no answer" is among the answers.
        version_2: Whether 2.0's arithmetic scores the rows.
        scorer: Scores one question.
    """

    def __init__(self, longest: int, *, nulls: bool, version_2: bool, scorer: QuestionScores) -> None:
        self.scorer = scorer
        self.longest = longest
        self.nulls = nulls
        self.version = 2 if version_2 else 1
        self.exact: list[float] = []
        self.f1: list[float] = []

    def add(self, row: QuestionRow, offsets: Ints, cuts: Sequence[Window], owner: npt.NDArray[np.int64]) -> None:
        """Counts one row: its context's token offsets ``[C, 2]``, its windows, and each token's trusted one ``[C]``."""
        if not row.labelled:
            return
        exact, f1 = self._best(row, offsets, cuts, owner)
        self.exact.append(exact)
        self.f1.append(f1)

    def tell(self, coverage: Coverage) -> None:
        """Writes the count, and the ceilings where they are below 100."""
        coverage.unreachable = sum(score < 1 for score in self.exact)
        if coverage.unreachable:
            coverage.ceilings = {
                name: 100.0 * sum(scores) / len(scores) for name, scores in (("exact", self.exact), ("f1", self.f1))
            }

    def _best(self, row: QuestionRow, offsets: Ints, cuts: Sequence[Window], owner: npt.NDArray[np.int64]) -> tuple[float, float]:
        golds = [answer.text for answer in row.answers]
        texts = [""] if self.nulls or not len(owner) else []
        for start, end in _occurrences(row):
            span = span_of(offsets, start, end)
            if span is None:
                continue
            for first, last in self._legal(*span, cuts, owner):
                text = row.context[offsets[first, 0] : offsets[last, 1]]
                if text in golds:
                    return 1.0, 1.0
                texts.append(text)
        scores = [self.scorer(golds, text, version=self.version) for text in dict.fromkeys(texts)]
        return max((exact for exact, _ in scores), default=0.0), max((f1 for _, f1 in scores), default=0.0)

    def _legal(self, first: int, last: int, cuts: Sequence[Window], owner: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """The span itself where it can be given, else from each of its tokens the longest part that can."""
        for start in range(first, last + 1):
            left, size = cuts[int(owner[start])]
            end = min(last, left + size - 1, start + self.longest - 1)
            yield start, end
            if end == last:  # what begins later is shorter and ends no further
                return


def _occurrences(row: QuestionRow, limit: int = 32) -> Iterator[tuple[int, int]]:
    """Where gold texts stand: first where the file says, then anywhere else."""
    distinct: dict[Answer, None] = dict.fromkeys(row.answers)
    for answer in distinct:
        if shown(row.context, answer):
            yield answer.start, answer.start + len(answer.text)
    for text in dict.fromkeys(answer.text for answer in distinct if answer.text):
        start = row.context.find(text)
        for _ in range(limit):
            if start < 0:
                break
            yield start, start + len(text)
            start = row.context.find(text, start + 1)
