"""Predictions that somebody gives as a file, for the rows of a part: to be scored, or to be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.errors import DataError, MissingError, UsageError
from bertkit.jobs.places import read_figures
from bertkit.labelled.rows import texts_fingerprint
from bertkit.notices import say
from bertkit.tasks.data import TaskPart
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.predictions import by_id, check_form, read_predictions, respelled, tell_beyond
from bertkit.tasks.task import Task

FILE = "predictions.jsonl"


def given_predictions(kind: Kind, path: Path, part: TaskPart, task: Task, labels: Labels) -> list[Prediction]:
    """Predictions of any system, one a row: bertkit's own JSON lines, or the official scorer's format.

    Raises:
        DataError: The file has no prediction for a row, or is of no known form (exit 3).
    """
    if path.suffix != ".jsonl":
        return kind.read_official(path, part.rows, task, labels)
    return _by_row(kind, path, _own(path, labels), part, labels)


def counterparts(kind: Kind, where: str, part: TaskPart, task: Task, labels: Labels, *, alone: bool) -> list[Prediction]:
    """The predictions to compare with, one a row: exactly the part's examples, with the part's gold.

    Args:
        kind: The task's kind.
        where: A run folder, an evals folder, a folder of one evaluation, or a file as :func:`given_predictions` takes it.
        part: The rows.
        task: The task.
        labels: Its labels, in the spelling of the predictions that are compared.
        alone: Whether this is the only part that is scored: else one file cannot be all of them.

    Raises:
        MissingError: There are no predictions for this part (exit 4).
        DataError: They are of other examples, or have other golds (exit 3); the first ones are named.
        UsageError: One file is named, and several parts are scored (exit 2).
    """
    name = f"{task.name}-{part.name}"
    path = file_of(where, name, hint=f"`bertkit eval {task.name} --part {part.name} --model {where}` leaves them in a run.")
    if not alone and name != path.parent.name:
        raise UsageError(
            "These are the predictions of one part, and several are scored.", where=where, hint="--part names the one to score."
        )
    if path.suffix != ".jsonl":
        return kind.read_official(path, part.rows, task, labels)
    found = _own(path, labels)
    refuse_others(found, [row.id for row in part.rows], path, part.name)
    theirs = _by_row(kind, path, found, part, labels)
    _same_golds({one.id: one.gold for one in found}, theirs, path, part)
    tell_other_texts(path, part.rows, part.source)
    return theirs


def _own(path: Path, labels: Labels) -> list[Prediction]:
    return [respelled(one, labels) for one in read_predictions(path)]


def _by_row(kind: Kind, path: Path, found: Sequence[Prediction], part: TaskPart, labels: Labels) -> list[Prediction]:
    ordered = in_order(found, [row.id for row in part.rows], path)
    tell_beyond(path, len(found), len(ordered))
    # The gold is the data's: the file may stem from a part that had none.
    golds = kind.golds(part.rows, labels)
    predictions = [replace(one, gold=gold) for one, gold in zip(ordered, golds, strict=True)]
    check_form(predictions, golds, labels, str(path))
    return predictions


def in_order(found: Sequence[Prediction], ids: Sequence[str], path: Path) -> list[Prediction]:
    """The predictions of the rows of these ids, in their order.

    Raises:
        DataError: A row has none, or two share an id (exit 3).
    """
    known = by_id(found, str(path))
    missing = [each for each in ids if each not in known]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(ids)} rows have no prediction, the first is {missing[0]!r}.",
            where=str(path),
            hint="The predictions must be of the same data, part and --max-eval-samples.",
        )
    return [known[each] for each in ids]


def refuse_others(found: Sequence[Prediction], ids: Sequence[str], path: Path, part: str) -> None:
    """Refuses predictions of more rows than those of a part: what is compared must be of the same ones.

    Raises:
        DataError: There are such; the first are named (exit 3).
    """
    here = set(ids)
    beyond = [one.id for one in found if one.id not in here]
    if beyond:
        raise DataError(
            f"{_listed(beyond)} there, but {'is' if len(beyond) == 1 else 'are'} not among the {len(ids)} of {part}.",
            where=str(path),
            hint="Both must be of the same examples: the same data, part and --max-eval-samples.",
        )


def _same_golds(said: dict[str, Any], theirs: Sequence[Prediction], path: Path, part: TaskPart) -> None:
    others = [one.id for one in theirs if said[one.id] is not None and said[one.id] != one.gold]
    if others:
        raise DataError(
            f"{_listed(others)} there, with another gold than in {part.source}.",
            where=str(path),
            hint="Both must be of the same data.",
        )


def tell_other_texts(path: Path, rows: Sequence[object], source: str) -> None:
    """Says where the evaluation that left the predictions read other texts: ids that count lines know nothing of an edited one.

    Args:
        path: The predictions; the evaluation's ``metrics.json`` lies beside them, or says nothing.
        rows: Those that they are compared on.
        source: Their file.
    """
    read = read_figures(path.parent).get("texts")
    if read not in (None, texts_fingerprint(rows)):
        say("other-texts", f"{path}: the evaluation that left them read other texts than {source} has, under the same ids.")


def file_of(named: str, name: str, *, hint: str) -> Path:
    """The predictions of the evaluation ``name``: of a run (the one in it), of a folder of evaluations, of one; or a file itself.

    Raises:
        MissingError: There are none; ``hint`` says what leaves them (exit 4).
    """
    where = Path(named)
    if where.is_file():
        return where
    found = [folder / FILE for folder in (where / "evals" / name, where / name, where) if (folder / FILE).is_file()]
    if found:
        return found[0]
    if not where.exists():
        raise MissingError("There is no such run, folder or file.", where=named)
    raise MissingError(f"There are no predictions of {name} in it.", where=named, hint=hint)


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(each) for each in ids[:5]) + (", …" if len(ids) > 5 else "")
    return f"1 example ({shown}) is" if len(ids) == 1 else f"{len(ids)} examples ({shown}) are"
