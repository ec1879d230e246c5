"""Rows that are read while they are used: a file of any length in the memory of one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

from bertkit.labelled.rows import RowReport
from bertkit.notices import say

if TYPE_CHECKING:
    from bertkit.tasks.kinds import Kind
    from bertkit.tasks.task import Task


@runtime_checkable
class TakesLines(Protocol):
    """A kind that predicts texts which are piped in."""

    def from_line(self, number: int, line: str, task: Task) -> Any:
        """The row of a line without its end; lines are numbered from 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRows(Sequence[Any]):
    """The rows of a file as a sequence. Whatever is asked of it reads the file anew, from its beginning.

    Attributes:
        kind: Whose rows they are.
        task: Says the columns.
        path: The file.
        strict: A malformed row is an error.
        most: Rows at most; None: all.
    """

    kind: Kind
    task: Task
    path: Path
    strict: bool = False
    most: int | None = None

    def __iter__(self) -> Iterator[Any]:
        report = RowReport()
        yield from islice(self.kind.stream(self.path, self.task, report, strict=self.strict), self.most)
        if (skipped := report.summary()) is not None:
            say("skipped-rows", skipped)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Any]: ...
    def __getitem__(self, which: int | slice) -> Any:
        if isinstance(which, slice) and not which.start and which.step is None and (which.stop or 0) > 0:
            return replace(self, most=which.stop if self.most is None else min(self.most, which.stop))
        return list(self)[which]


def windows(rows: Iterable[Any], *, first: int, most: int) -> Iterator[list[Any]]:
    """Lists of rows in their order, none read before it is asked for: ``first`` rows, then twice as many, up to ``most``.

    The first predictions come soon; later ones are sorted by length in windows that hold enough of each length.
    """
    left, size = iter(rows), min(first, most)
    while window := list(islice(left, size)):
        yield window
        size = min(2 * size, most)
