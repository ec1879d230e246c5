"""GLUE's prediction files: ``index<TAB>prediction`` under a header, a row a line, as its server takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled.files import lines_of, read_utf8
from bertkit.tasks.predictions import tell_beyond
from bertkit.tasks.task import Task

_HEADS = ("prediction", "label")


def read_answers(path: Path, ids: Sequence[str]) -> list[tuple[str, str]]:
    """The prediction of each row as it is spelled, with its place in the file.

    An index is the row's number from 0, as the server has it, or the row's own id, where all of them are such.

    Args:
        path: The file.
        ids: The rows' ids, in their order.

    Raises:
        MissingError: There is no such file (exit 4).
        DataError: It has another form, names an index twice, or lacks a row (exit 3), with the line.
    """
    lines = lines_of(read_utf8(path))
    if not lines or lines[0].split("\t")[-1].strip().casefold() not in _HEADS:
        raise DataError(
            "The file is no prediction file of GLUE's.",
            where=f"{path}, line 1",
            hint="It begins with the line index<TAB>prediction; bertkit's own predictions end in .jsonl.",
        )
    found: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}, line {number}"
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2:
            raise DataError(f"The line has {len(cells)} columns: index and prediction are needed.", where=where)
        if cells[0] in found:
            raise DataError(f"The index {cells[0]} comes twice.", where=where)
        found[cells[0]] = (cells[1], where)
    numbers = [str(number) for number in range(len(ids))]
    keys = list(ids) if len(set(ids)) == len(ids) and all(key in found for key in ids) else numbers
    missing = [key for key in keys if key not in found]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(ids)} rows have no prediction, the first is index {missing[0]}.", where=str(path)
        )
    tell_beyond(path, len(found), len(ids))
    return [found[key] for key in keys]


def write_answers(path: Path, values: Iterable[Any], task: Task) -> None:
    """The file of a part's predictions, rows from 0.

    Classes are numbers where the task's files write them so (CoLA, SST-2, MRPC, QQP, WNLI), names elsewhere, and numbers
    (STS-B) are kept to the task's bounds: so the server takes them.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("index\tprediction\n")
        file.writelines(f"{row}\t{_spelled(value, task)}\n" for row, value in enumerate(values))


def _spelled(value: Any, task: Task) -> str:
    if task.bounds is not None:
        low, high = task.bounds
        return repr(min(max(float(value), low), high))
    folded = str(value).casefold()  # a model's id2label may spell the names in other case
    if task.columns and folded in (names := [name.casefold() for name in task.columns.names]):
        return str(names.index(folded))
    return next((name for name in task.labels if name.casefold() == folded), str(value))
