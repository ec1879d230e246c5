"""CLUE's prediction files: a JSON object a line, ``{"id": 0, "label": "1"}``, by the ids of the test file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled.tables import open_table
from bertkit.tasks.predictions import tell_beyond
from bertkit.tasks.task import Task


def clue_id(one: str) -> int | str:
    """A row's id as CLUE's files have it: a number where that is the same id when it is read again (``007`` is a text)."""
    return int(one) if one.isascii() and one.isdecimal() and (one == "0" or one[0] != "0") else one


def write_answers(path: Path, answers: Iterable[tuple[str, Any]], task: Task) -> None:
    """The file of a part's predictions, ids and values in order; labels are CLUE's own codes."""
    codes = {name: code for code, name in task.columns.aliases.items()} if task.columns else {}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for one, value in answers:
            record = {"id": clue_id(one), "label": codes.get(value, value)}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_answers(path: Path, ids: Sequence[str]) -> list[tuple[str, str]]:
    """The label of each row as it is spelled, with its place in the file.

    Raises:
        MissingError: There is no such file (exit 4).
        DataError: A line has no id or label, an id comes twice, or a row has no prediction (exit 3).
    """
    found: dict[str, tuple[str, str]] = {}
    for place, record in open_table(path)[1]:
        identity, label = record.get("id"), record.get("label")
        if identity is None or label is None:
            raise DataError(
                "The line has no id or no label.", where=str(place), hint='CLUE\'s lines are {"id": 0, "label": "1"}.'
            )
        if str(identity) in found:
            raise DataError(f"The id {identity} comes twice.", where=str(place))
        found[str(identity)] = (str(label), str(place))
    missing = [one for one in ids if one not in found]
    if missing:
        raise DataError(f"{len(missing)} of {len(ids)} rows have no prediction, the first is id {missing[0]}.", where=str(path))
    tell_beyond(path, len(found), len(ids))
    return [found[one] for one in ids]
