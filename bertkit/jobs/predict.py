"""``bertkit predict``: rows without gold (or with) in, one JSON line a row out, in input order."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from bertkit.errors import DataError, FolderError, MissingError, UsageError
from bertkit.foreign_bytes import looks_like
from bertkit.jobs.as_trained import data_as_trained
from bertkit.jobs.console import Console
from bertkit.jobs.evaluate import chosen_model, chosen_parts, predict_part, scorer_of
from bertkit.jobs.lost import watching
from bertkit.jobs.material import task_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.labelled.rows import Place, RowReport, TextRow
from bertkit.settings.commands import PredictSettings
from bertkit.tasks.data import TaskPart
from bertkit.tasks.kinds import Prediction
from bertkit.tasks.predictions import is_predictions, prediction_records, write_predictions
from bertkit.tasks.task import Task


def predict(settings: PredictSettings, console: Console, stdin: TextIO | None = None) -> Outcome:
    """Predicts the test part, the files that are named, or the lines of stdin; writes the official files beside ``--output``.

    Raises:
        FolderError: The output is a folder, or a file that is no predictions' (exit 2); nothing is predicted.
        ModelError: The model has no trained head for the task (exit 3).
        MissingError: No model or data (exit 4).
    """
    machine = Machine.of(settings.device)
    task, kind = task_of(settings.task, settings.data)
    places: dict[str, Path] = {}
    found = predicted(settings, console, machine, stdin, before=lambda names: places.update(_places(settings, task, names)))
    if not machine.peers.main:
        return Outcome()
    for name, (part, said) in found.items():
        if name not in places:
            for record in prediction_records(said):
                console.data(record)
            continue
        where = places[name]
        where.parent.mkdir(parents=True, exist_ok=True)
        write_predictions(where, said)
        kind.write_official(where.parent, said, part.rows, task, name)
        console.say(f"Written to {where}")
    output = None if settings.output is None else Path(settings.output)
    return Outcome(output=output, metrics={"examples": sum(len(said) for _, said in found.values())})


def predicted(
    settings: PredictSettings,
    console: Console,
    machine: Machine,
    stdin: TextIO | None = None,
    *,
    before: Callable[[list[str]], object] = lambda names: None,
) -> dict[str, tuple[TaskPart, list[Prediction]]]:
    """Each part's rows and their predictions, which the first process alone gets.

    Args:
        settings: What to predict, and with which model.
        console: For progress.
        machine: Where.
        stdin: Texts, one a line, where the settings name no data.
        before: Told the parts' names before any work with the model.
    """
    peers = machine.peers
    with watching(peers, console):
        folder = peers.main_only(lambda: chosen_model(settings))
        settings = data_as_trained(settings, folder, places=False)
        data = settings.data
        task, kind = task_of(settings.task, data)
        if data.folder is None and data.test_file is None and data.validation_file is None and settings.part is None:
            parts = {"stdin": peers.main_only(lambda: _lines(kind.name, stdin or sys.stdin, console))}
        else:
            parts = peers.main_only(lambda: chosen_parts(task, settings, ("test",)))
        before(list(parts))
        found = {}
        for name, part in parts.items():
            scorer = scorer_of(folder, settings, task, kind, part, machine)
            found[name] = part, predict_part(scorer, part, folder, settings, console)
        return found


def _places(settings: PredictSettings, task: Task, names: list[str]) -> dict[str, Path]:
    """The file of each part; none where the records go to stdout.

    Raises:
        FolderError: It is a folder, or a file of someone's (exit 2).
        UsageError: It would be the official file, or the one that is read (exit 2).
    """
    if settings.output is None:
        return {}
    output = Path(settings.output)
    if output.is_dir():
        raise FolderError(
            "The predictions go to a file, and this is a folder.", where=str(output), hint=f"--output {output}/predictions.jsonl"
        )
    if (below := next(place for place in output.absolute().parents if place.exists())).is_file():
        raise FolderError("The predictions would lie below a file.", where=str(below), hint="Choose another --output.")
    places = {name: output if len(names) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}") for name in names}
    written = {output.with_name(name) for name in task.official.values()}
    read = settings.data.test_file
    if output in written or (read is not None and Path(read).resolve() in {p.resolve() for p in (*written, *places.values())}):
        raise UsageError(
            f"Beside the predictions there is the official file {', '.join(sorted(p.name for p in written)) or 'of the task'}: "
            "neither may be the other, nor the file that is read.",
            where=str(output),
            hint=f"--output {output.with_name('predictions.jsonl')}",
        )
    for place in places.values():
        if place.exists() and not settings.overwrite and not is_predictions(place):
            raise FolderError(
                "This file is there already, and holds no predictions.",
                where=str(place),
                hint="Choose another --output, or replace it with --overwrite.",
            )
    return places


def _lines(kind: str, stdin: TextIO, console: Console) -> TaskPart:
    """A text a line, or two parted by a TAB."""
    if kind != "classification":
        raise MissingError(
            "There is nothing to predict: stdin is read for tasks that classify alone.",
            where="--data, --test-file",
            hint="Name a file with --test-file.",
        )
    console.reading(stdin)
    rows = []
    for number, line in enumerate(_utf8(stdin), 1):
        text, tab, pair = line.rstrip("\r\n").partition("\t")
        rows.append(TextRow(id=str(number - 1), text=text, pair=pair if tab else None, place=Place("stdin", number)))
    if not rows:
        raise MissingError(
            "There is nothing on stdin to predict.", where="stdin", hint="Name a file with --test-file, or pipe texts in."
        )
    return TaskPart(name="stdin", rows=rows, report=RowReport(rows=len(rows)), source="stdin")


def _utf8(stdin: TextIO) -> Iterator[str]:
    """The lines of stdin, which are UTF-8 whatever the locale says.

    Raises:
        DataError: A byte is not UTF-8 (exit 3), with its line.
    """
    raw = getattr(stdin, "buffer", None)
    if raw is None:  # a text stream of Python's, in a notebook say
        yield from stdin
        return
    for number, line in enumerate(raw, 1):
        try:
            yield (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"Byte 0x{line[error.start]:02X} is not UTF-8.",
                where=f"stdin, line {number}",
                hint=looks_like(line) or "Convert the text first, say with `iconv -f ISO-8859-1 -t UTF-8`.",
            ) from error
