"""``bertkit predict``: rows without gold (or with) in, one JSON line a row out, in input order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from bertkit.errors import FolderError, MissingError
from bertkit.jobs.console import Console
from bertkit.jobs.evaluate import chosen_model, chosen_parts, predict_part, scorer_of
from bertkit.jobs.finetune import task_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.labelled.rows import Place, RowReport, TextRow
from bertkit.settings.commands import PredictSettings
from bertkit.tasks.data import TaskPart
from bertkit.tasks.predictions import prediction_records, write_predictions


def predict(settings: PredictSettings, console: Console, stdin: TextIO | None = None) -> Outcome:
    """Predicts the test part, the files that are named, or the lines of stdin; writes the official files beside ``--output``.

    Raises:
        ModelError: The model has no trained head for the task (exit 3).
        MissingError: No model or data (exit 4).
    """
    machine = Machine.of(settings.device)
    task, kind = task_of(settings.task, settings.data)
    output = None if settings.output is None else Path(settings.output)
    if output is not None and output.is_dir():
        raise FolderError(
            "The predictions go to a file, and this is a folder.", where=str(output), hint=f"--output {output}/predictions.jsonl"
        )
    folder = machine.peers.main_only(lambda: chosen_model(settings))
    data = settings.data
    from_stdin = data.folder is None and data.test_file is None and data.validation_file is None and settings.part is None
    if from_stdin:
        parts = {"stdin": machine.peers.main_only(lambda: _lines(kind.name, stdin or sys.stdin))}
    else:
        parts = machine.peers.main_only(lambda: chosen_parts(task, settings, ("test",)))
    count = 0
    for name, part in parts.items():
        scorer = scorer_of(folder, settings, task, kind, part, machine)
        found = predict_part(scorer, part, folder, settings, console)
        if not machine.peers.main:
            continue
        count += len(found)
        if output is None:
            for record in prediction_records(found):
                console.data(record)
        else:
            where = output if len(parts) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}")
            where.parent.mkdir(parents=True, exist_ok=True)
            write_predictions(where, found)
            kind.write_official(where.parent, found, part.rows, task, name)
    return Outcome(output=output, metrics={"examples": count})


def _lines(kind: str, stdin: TextIO) -> TaskPart:
    """A text a line, or two parted by a TAB."""
    if kind != "classification":
        raise MissingError("There is nothing to predict.", where="--data, --test-file", hint="Name a file with --test-file.")
    rows = []
    for number, line in enumerate(stdin, 1):
        text, tab, pair = line.rstrip("\r\n").partition("\t")
        rows.append(TextRow(id=str(number - 1), text=text, pair=pair if tab else None, place=Place("stdin", number)))
    if not rows:
        raise MissingError(
            "There is nothing on stdin to predict.", where="stdin", hint="Name a file with --test-file, or pipe texts in."
        )
    return TaskPart(name="stdin", rows=rows, report=RowReport(rows=len(rows)), source="stdin")
