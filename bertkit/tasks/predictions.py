"""``predictions.jsonl``: one JSON object a row, in input order, of any kind of task."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.labelled import files
from bertkit.notices import say
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction

_OWN = ("id", "gold", "prediction", "score")
_SHOWN = 60  # characters of a fact that does not fit


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _are_shares(value: Any) -> bool:
    return isinstance(value, dict | list) and all(map(_is_number, value.values() if isinstance(value, dict) else value))


def _are_answers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and isinstance(each.get("text"), str) and _is_number(each.get("probability")) for each in value
    )


_READ: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "score": (_is_number, "a number"),
    "null_odds": (_is_number, "a number"),
    "best_text": (_is_text, "a text"),
    "nbest": (_are_answers, "a list of answers, each with text and probability"),
    "probabilities": (_are_shares, "numbers, by name or in a list"),
    "as_given": (_are_texts, "a list of a tag for each word"),
}
"""Facts of a line that scoring reads, by name: what they must be, null aside. Others are handed on as they stand."""


def prediction_records(predictions: Iterable[Prediction]) -> Iterator[dict[str, Any]]:
    """JSON objects: ``id``, ``gold``, ``prediction``, ``score``, then the kind's further facts by name."""
    for one in predictions:
        yield {"id": one.id, "gold": one.gold, "prediction": one.value, "score": one.score, **one.more}


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Writes them as UTF-8, under another name until they are whole."""
    write_records(path, prediction_records(predictions))


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSON object a line, under another name until they are whole.

    Raises:
        ValueError: A number that JSON has not (NaN).
    """
    with writing(path) as write:
        write(records)


@contextmanager
def writing(path: Path) -> Iterator[Callable[[Iterable[Mapping[str, Any]]], None]]:
    """Hands out a function that writes records as they come; the file gets its name when all of them are there."""
    with files.writing(path) as file:
        yield lambda records: file.writelines(f"{json.dumps(r, ensure_ascii=False, allow_nan=False)}\n" for r in records)


def read_predictions(path: Path) -> list[Prediction]:
    """What :func:`write_predictions` wrote.

    Raises:
        MissingError: It is not there (exit 4).
        DataError: A line is no such object (exit 3), with its number.
    """
    return list(each_prediction(path))


def tell_beyond(path: Path, predictions: int, rows: int) -> None:
    """Says where a file has predictions of more rows than are scored: official files of dev and test bear one name."""
    if predictions > rows:
        say(
            "more-predictions",
            f"{path} has {predictions:,} predictions, and {rows:,} rows are scored: is it the file of another part?",
        )


def each_prediction(path: Path) -> Iterator[Prediction]:
    """The same, one after the other."""
    for number, line in enumerate(files.read_lines(path), start=1):
        yield _prediction(line, f"{path}, line {number}")


def _prediction(line: str, where: str) -> Prediction:
    try:
        record = json.loads(line, parse_float=_finite, parse_constant=_finite, parse_int=_whole)
        known = {name: record.pop(name) for name in _OWN}
    except _NoNumber as error:
        raise DataError(f"The line holds {error}, which is no finite number.", where=where) from error
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError("The line is no prediction of bertkit's.", where=where) from error
    value = known["prediction"]
    listed = isinstance(value, list) and all(isinstance(each, str) for each in value)
    plain = value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))
    if not (plain or listed) or not isinstance(known["id"], str):
        raise DataError(
            "The line is no prediction of bertkit's: id is a text, prediction a text, a number or a list of texts.", where=where
        )
    _check_facts({"score": known["score"], **record}, value, where)
    for name in _READ.keys() & record.keys():
        if record[name] is None:  # as pandas writes a fact that other lines have
            del record[name]
    for text in (known["id"], *(value if listed else [value])):
        if isinstance(text, str) and (fault := files.no_character(text)) is not None:
            raise DataError(f"The prediction holds {fault}.", where=where)
    return Prediction(id=known["id"], value=value, score=known["score"], gold=known["gold"], more=record)


def _check_facts(facts: Mapping[str, Any], value: Any, where: str) -> None:
    for name, (fits, form) in _READ.items():
        fact = facts.get(name)
        alike = name != "as_given" or (isinstance(value, list) and isinstance(fact, list) and len(fact) == len(value))
        if fact is not None and not (fits(fact) and alike):
            raise DataError(f"The prediction's {name} should be {form}, and is {_short(fact)}.", where=where)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class _NoNumber(Exception):
    """A number that cannot be scored, nor written again: NaN, infinity, or what no float holds. Its text is the number's."""


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NoNumber(text[:20])
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def is_predictions(path: Path) -> bool:
    """Is this a file of :func:`write_predictions` (or an empty one), by its first line?"""
    with path.open("rb") as file:
        first = file.readline(1 << 24)
    try:
        record = json.loads(first) if first else dict.fromkeys(_OWN)
    except ValueError:
        return False
    return isinstance(record, dict) and record.keys() >= set(_OWN)


def is_official(path: Path) -> bool:
    """Has this file the form of an official one, by its first line: GLUE's header, JSON, a token and its tag; or is it empty?"""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline(1 << 16).strip()
    except (OSError, UnicodeDecodeError):  # a folder, or bytes of something else
        return False
    if path.suffix == ".json":
        return first[:1] in ("", "{")
    cells = first.split()
    return not cells or (cells == ["index", "prediction"] if path.suffix == ".tsv" else len(cells) > 1)


def check_form(predictions: Sequence[Prediction], golds: Sequence[Any], labels: Labels, where: str) -> None:
    """Are predictions of any system what this task's gold is: texts, numbers or lists? Names that no label has are said.

    Args:
        predictions: One for each row.
        golds: Each row's gold.
        labels: Those of the task; spans and candidates have none, and a span's answer may be any text.
        where: The predictions' file.

    Raises:
        DataError: A prediction is of another form than the gold, or has not one tag a word (exit 3).
    """
    if not labels.names and not any(isinstance(gold, int) for gold in golds):  # a candidate's place is a number
        for one, gold in zip(predictions, golds, strict=True):
            if isinstance(one.value, list) and isinstance(gold, list):
                raise DataError(f"The prediction of {one.id!r} is {one.value!r}, where one text is asked for.", where=where)
        return
    strange: dict[str, None] = {}
    for one, gold in zip(predictions, golds, strict=True):
        if gold is None:  # nobody scores it
            continue
        many = isinstance(one.value, (list, tuple))
        alike = many == isinstance(gold, (list, tuple)) and isinstance(one.value, str) == isinstance(gold, str)
        if one.value is None or not alike or (many and not labels.problem and len(one.value) != len(gold)):
            raise DataError(f"The prediction of {one.id!r} is {one.value!r}, where {gold!r} would be right.", where=where)
        said = one.value if many else [one.value] if isinstance(one.value, str) else []
        strange |= {name: None for name in said if labels.problem and name not in labels.names}
    if strange:
        listed = ", ".join(repr(name) for name in list(strange)[:5])
        say("strange-labels", f"{where} predicts {listed}, which the data do not have: they count as wrong.")


def respelled(prediction: Prediction, labels: Labels) -> Prediction:
    """The prediction with its label names, and its gold's, in the spelling of ``labels``: names are matched without case."""
    if labels.problem not in ("single_label_classification", "multi_label_classification"):
        return prediction
    return replace(prediction, value=_spelled(prediction.value, labels), gold=_spelled(prediction.gold, labels))


def _spelled(value: Any, labels: Labels) -> Any:
    if isinstance(value, list):
        return sorted((_spelled(name, labels) for name in value), key=lambda name: labels.number(str(name)) or 0)
    number = labels.number(value) if isinstance(value, str) else None
    return value if number is None else labels.names[number]


def by_id(predictions: Sequence[Prediction], where: str | None = None) -> dict[str, Prediction]:
    """Predictions by their row's id; ``where`` is their file, for the error.

    Raises:
        DataError: An id comes twice (exit 3).
    """
    found = {one.id: one for one in predictions}
    if len(found) != len(predictions):
        raise DataError(f"{len(predictions) - len(found)} predictions share an id with another.", where=where)
    return found
