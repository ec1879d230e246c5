"""``predictions.jsonl``: one JSON object a row, in input order, of any kind of task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled.files import lines_of, read_utf8
from bertkit.tasks.kinds import Prediction

_OWN = ("id", "gold", "prediction", "score")


def prediction_records(predictions: Iterable[Prediction]) -> Iterator[dict[str, Any]]:
    """JSON objects: ``id``, ``gold``, ``prediction``, ``score``, then the kind's further facts by name."""
    for one in predictions:
        yield {"id": one.id, "gold": one.gold, "prediction": one.value, "score": one.score, **one.more}


def prediction_lines(predictions: Iterable[Prediction]) -> Iterator[str]:
    """The records as JSON texts without line ends.

    Raises:
        ValueError: A number that JSON has not (NaN).
    """
    for record in prediction_records(predictions):
        yield json.dumps(record, ensure_ascii=False, allow_nan=False)


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Writes them as UTF-8, under another name until they are whole."""
    unfinished = path.with_name(path.name + ".tmp")
    with unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in prediction_lines(predictions))
    unfinished.replace(path)


def read_predictions(path: Path) -> list[Prediction]:
    """What :func:`write_predictions` wrote.

    Raises:
        MissingError: It is not there (exit 4).
        DataError: A line is no such object (exit 3), with its number.
    """
    return [_prediction(line, f"{path}, line {number}") for number, line in enumerate(lines_of(read_utf8(path)), start=1)]


def _prediction(line: str, where: str) -> Prediction:
    try:
        record = json.loads(line)
        known = {name: record.pop(name) for name in _OWN}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError("The line is no prediction of bertkit's.", where=where) from error
    return Prediction(id=known["id"], value=known["prediction"], score=known["score"], gold=known["gold"], more=record)


def is_predictions(path: Path) -> bool:
    """Is this a file of :func:`write_predictions` (or an empty one), by its first line?"""
    with path.open("rb") as file:
        first = file.readline(1 << 24)
    try:
        record = json.loads(first) if first else dict.fromkeys(_OWN)
    except ValueError:
        return False
    return isinstance(record, dict) and record.keys() >= set(_OWN)


def by_id(predictions: Sequence[Prediction]) -> dict[str, Prediction]:
    """Predictions by their row's id.

    Raises:
        DataError: An id comes twice (exit 3).
    """
    found = {one.id: one for one in predictions}
    if len(found) != len(predictions):
        raise DataError(f"{len(predictions) - len(found)} predictions share an id with another.")
    return found
