"""``bertkit predict glue``: the newest run of each of GLUE's tasks and the benchmark's test parts in, the server's zip out.

The archive holds the eleven files of the benchmark's own names, each ``index<TAB>prediction``. All that is needed is looked for
before anything is predicted, and what is missing is told at once; the archive is written last, whole or not at all.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import DataError, FolderError, MissingError
from bertkit.jobs.console import Console
from bertkit.jobs.evaluate import predict_part, scorer_of
from bertkit.jobs.folder import newest_run
from bertkit.jobs.lost import watching
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import read_state
from bertkit.jobs.start import Machine
from bertkit.notices import say
from bertkit.settings.commands import predict_settings
from bertkit.settings.submission import SubmissionSettings
from bertkit.tasks.data import TaskPart, load_parts
from bertkit.tasks.glue import GLUE
from bertkit.tasks.registry import kind_of
from bertkit.tasks.task import Task

FOLDERS = {
    "cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "qqp": "QQP", "stsb": "STS-B",
    "mnli": "MNLI", "qnli": "QNLI", "rte": "RTE", "wnli": "WNLI", "ax": "AX",
}  # fmt: skip
"""What the published archives call each task's folder."""

ROWS = {
    "CoLA.tsv": 1_063, "SST-2.tsv": 1_821, "MRPC.tsv": 1_725, "QQP.tsv": 390_965, "STS-B.tsv": 1_379, "MNLI-m.tsv": 9_796,
    "MNLI-mm.tsv": 9_847, "QNLI.tsv": 5_463, "RTE.tsv": 3_000, "WNLI.tsv": 146, "AX.tsv": 1_104,
}  # fmt: skip
"""The rows of each published test part, which the server counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """One file of the archive: which part of which task is predicted by which run."""

    file: str
    task: Task
    part: TaskPart
    run: Path


def submit(settings: SubmissionSettings, console: Console) -> Outcome:
    """Predicts every test part of GLUE and writes the archive.

    Raises:
        FolderError: The archive would replace a folder or somebody's file (exit 2).
        MissingError: Runs or test parts are not there; all of them are named (exit 4), and nothing is written.
        DataError: A test part's index is not 0, 1, 2, … (exit 3).
    """
    archive = Path(settings.submission)
    machine = Machine.of(settings.device)
    with watching(machine.peers, console):
        answers = machine.peers.main_only(lambda: _ready(archive, settings, console))
        files = {}
        for answer in answers:
            console.say(f"{answer.file}: {len(answer.part.rows):,} rows of {answer.part.source}, by {answer.run}")
            files[answer.file] = _predicted(answer, settings, console, machine)
        machine.peers.main_only(lambda: _write(archive, files))
    rows = {answer.file: len(answer.part.rows) for answer in answers}
    console.say(f"Written to {archive}: https://gluebenchmark.com takes it.")
    return Outcome(
        output=archive,
        metrics={"examples": sum(rows.values())},
        extra={"files": rows, "models": {answer.file: str(answer.run) for answer in answers}},
    )


def _ready(archive: Path, settings: SubmissionSettings, console: Console) -> list[_Answer]:
    """Every file's run and rows, in the order of the tasks."""
    _check_place(archive, settings.overwrite)
    answers: list[_Answer] = []
    missing: list[str] = []
    with console.progress("Reading", len(GLUE)) as update:
        for number, task in enumerate(GLUE, start=1):
            try:
                run = newest_run("finetune", task=task.trained_as, root=Path(settings.runs), hint="")
            except MissingError:
                run = None
                missing.append(
                    f"{_files(task)}: no finished run of {task.trained_as} under {settings.runs}/ "
                    f"(bertkit finetune {task.trained_as})"
                )
            try:
                parts = _parts(task, settings.data.folder)
            except MissingError as error:
                missing.append(f"{_files(task)}: {error.message} ({error.where})" if error.where else f"{_files(task)}: {error}")
            else:
                missing += [f"{file}: no {part} part of {task.name}" for part, file in task.official.items() if part not in parts]
                if run is not None:
                    answers += [_answer(task, part, run) for part in parts.values()]
            update(number)
    if missing:
        lines = "".join(f"\n  - {line}" for line in missing)
        raise MissingError(
            f"{len(missing)} things that the submission needs are not there.{lines}",
            where=settings.runs,
            hint="--runs names the folder of the runs, --data that of GLUE's folders.",
        )
    others = [
        f"{answer.file} {len(answer.part.rows):,} instead of {ROWS[answer.file]:,}"
        for answer in answers
        if len(answer.part.rows) != ROWS[answer.file]
    ]
    if others:
        say("other-rows", f"The server counts other rows: {', '.join(others)}.")
    if trials := list(dict.fromkeys(filter(None, (_trained_on_a_part(answer.run) for answer in answers)))):
        say("part-of-training", f"Trained on the first rows alone (--max-train-samples): {', '.join(trials)}.")
    return answers


def _trained_on_a_part(run: Path) -> str | None:
    """The run with its number of rows, where its training was held to so many: a trial, more often than what is handed in."""
    most = ((read_state(run) or {}).get("resolved") or {}).get("data.max_train_samples")
    return None if most is None else f"{run}, {most:,} rows"


def _parts(task: Task, folder: str | None) -> dict[str, TaskPart]:
    """The test parts, of the folder's own folder of the task or of the hub; a malformed row is an error."""
    place = None if folder is None else Path(folder) / FOLDERS[task.name]
    if place is not None and not place.is_dir():
        raise MissingError("There is no such folder.", where=str(place))
    return load_parts(task, ("test",), folder=None if place is None else str(place), strict=True)


def _answer(task: Task, part: TaskPart, run: Path) -> _Answer:
    wrong = next((number for number, row in enumerate(part.rows) if row.id != str(number)), None)
    if wrong is not None:
        raise DataError(
            f"The index is {part.rows[wrong].id!r}, where the server counts {wrong}.",
            where=str(part.rows[wrong].place),
            hint="The server takes the rows of the published test part, all of them in its order.",
        )
    return _Answer(file=task.official[part.name], task=task, part=part, run=run)


def _predicted(answer: _Answer, settings: SubmissionSettings, console: Console, machine: Machine) -> bytes:
    """The file's bytes, on the first process; nothing on the others."""
    task, kind, part = answer.task, kind_of(answer.task), answer.part
    own = predict_settings(task.name)(task=task.name, model=str(answer.run), device=settings.device, batch=settings.batch)
    scorer = scorer_of(answer.run, own, task, kind, part, machine)
    said = predict_part(scorer, part, answer.run, own, console)
    if not machine.peers.main:
        return b""
    with tempfile.TemporaryDirectory() as scratch:
        (path,) = kind.write_official(Path(scratch), said, part.rows, task, part.name)
        return path.read_bytes()


def _write(archive: Path, files: dict[str, bytes]) -> None:
    """The archive under another name, flushed, then renamed; the same predictions give the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as into:
        for name, content in files.items():
            into.writestr(zipfile.ZipInfo(name), content, compress_type=zipfile.ZIP_DEFLATED)
    archive.parent.mkdir(parents=True, exist_ok=True)
    draft = archive.with_name(f".{archive.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(packed.getvalue())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(archive)
    finally:
        draft.unlink(missing_ok=True)


def _check_place(archive: Path, overwrite: bool) -> None:
    if archive.is_dir():
        raise FolderError(
            "The submission is a file, and this is a folder.", where=str(archive), hint=f"--submission {archive}/glue.zip"
        )
    if archive.exists() and not overwrite and not set(_names(archive)) <= ROWS.keys():
        raise FolderError(
            "This file is there already, and is no submission.",
            where=str(archive),
            hint="Choose another --submission, or replace it with --overwrite.",
        )


def _names(archive: Path) -> Iterator[str]:
    """The files in an archive; one that no submission has where it is none."""
    try:
        with zipfile.ZipFile(archive) as there:
            yield from there.namelist()
    except (zipfile.BadZipFile, OSError):
        yield ""


def _files(task: Task) -> str:
    return ", ".join(task.official.values())
