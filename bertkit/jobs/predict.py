"""``bertkit predict``: rows without gold (or with) in, one JSON line a row out, in input order, as they come.

Texts are read, predicted and written window by window, so a file or a pipe of any length takes the memory of a window.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from bertkit.errors import DataError, FolderError, MissingError, UsageError
from bertkit.foreign_bytes import looks_like
from bertkit.jobs.as_trained import data_as_trained, kind_as_tuned
from bertkit.jobs.console import Console
from bertkit.jobs.evaluate import chosen_model, chosen_parts, scorer_of
from bertkit.jobs.lost import watching
from bertkit.jobs.material import task_of
from bertkit.jobs.models import tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import file_in_the_way
from bertkit.jobs.scoring import EncodedPart, Scorer
from bertkit.jobs.start import Machine
from bertkit.labelled.rows import RowReport, TaggedRow, TextRow
from bertkit.notices import hushed
from bertkit.settings.commands import PredictSettings
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.data import TaskPart
from bertkit.tasks.kinds import Kind
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.predictions import each_prediction, is_official, is_predictions, prediction_records, writing
from bertkit.tasks.registry import kind_of
from bertkit.tasks.streamed import StreamedRows, TakesLines, windows
from bertkit.tasks.task import Task

_FIRST = 256  # rows: the first predictions come soon
_MOST = 4096  # rows of a window on a CPU: enough of each length, some 10 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOnItsWay:
    """A part and its predictions, a list for each window; on processes but the first the lists are empty.

    Every process must take every list: they are made together.
    """

    part: TaskPart
    windows: Iterator[list[Prediction]]


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
    examples = 0
    for coming in predicted(
        settings, console, machine, stdin, before=lambda names: places.update(_places(settings, task, names))
    ):
        where = places.get(coming.part.name)
        first = next(coming.windows, [])  # nothing is written where nothing can be predicted
        with _taking(where, console, machine.peers.main) as take:
            for said in chain([first], coming.windows):
                machine.peers.main_only(lambda said=said: take(said))  # type: ignore[misc]  # a full disk is told everywhere
                examples += len(said)
        if where is not None and machine.peers.main:
            kind.write_official(where.parent, each_prediction(where), coming.part.rows, task, coming.part.name)
            console.say(f"Written to {where}")
    if not machine.peers.main:
        return Outcome()
    return Outcome(output=None if settings.output is None else Path(settings.output), metrics={"examples": examples})


@contextmanager
def _taking(where: Path | None, console: Console, main: bool) -> Iterator[Callable[[list[Prediction]], None]]:
    """Hands out what takes a window's predictions: into the file, else to stdout."""

    def show(said: list[Prediction]) -> None:
        for record in prediction_records(said):
            console.data(record)

    if where is None or not main:
        yield show
        return
    where.parent.mkdir(parents=True, exist_ok=True)
    with writing(where) as write:
        yield lambda said: write(prediction_records(said))


def predicted(
    settings: PredictSettings,
    console: Console,
    machine: Machine,
    stdin: TextIO | None = None,
    *,
    before: Callable[[list[str]], object] = lambda names: None,
) -> Iterator[PartOnItsWay]:
    """Each part with its predictions, to be taken in their order.

    Args:
        settings: What to predict, and with which model.
        console: For progress.
        machine: Where.
        stdin: Texts, one a line, where the settings name no data; None: the process's own.
        before: Told the parts' names before any work with the model.
    """
    peers = machine.peers
    with watching(peers, console):
        folder = peers.main_only(lambda: chosen_model(settings))
        settings = data_as_trained(settings, folder, places=False)
        data = settings.data
        task, kind = task_of(settings.task, data)
        lines: Iterator[Any] | None = None
        if data.folder is None and data.test_file is None and data.validation_file is None and settings.part is None:
            name = "stdin" if stdin is None else "texts"
            parts = {name: TaskPart(name=name, rows=[], report=RowReport(), source=name)}
            lines = _lines(kind, task, stdin or sys.stdin, console)
        else:
            parts = peers.main_only(lambda: chosen_parts(task, settings, ("test",), streamed=True))
        before(list(parts))
        for part in parts.values():
            read = _windows(part.rows if lines is None else lines, machine)
            start = next(read, [])  # a file that is not there is told before the model is loaded
            with hushed("positive-label"):  # no f1 is counted here
                scorer = scorer_of(folder, settings, task, kind, part, machine, scored=False)
            scorer = replace(scorer, settings=kind_as_tuned(scorer.settings, folder, task.trained_as))
            coming = chain([start] if start else [], read)
            yield PartOnItsWay(part=part, windows=_predictions(scorer, part, coming, folder, settings, console))


def _windows(rows: Iterable[Any], machine: Machine) -> Iterator[list[Any]]:
    """The rows window by window, on all processes, which the first one reads."""
    mine = windows(rows, first=_FIRST, most=_MOST * machine.peers.world * (1 if machine.on_cpu else 8))
    while window := machine.peers.main_only(lambda: next(mine, [])):
        yield window


def _predictions(
    scorer: Scorer, part: TaskPart, read: Iterator[list[Any]], folder: Path, settings: PredictSettings, console: Console
) -> Iterator[list[Prediction]]:
    wordpiece = tokenizer_of(folder, cased=settings.cased)
    segments = scorer.model.config.type_vocab_size
    coverage = Coverage()
    known = None if isinstance(part.rows, StreamedRows) or not part.rows else len(part.rows)
    # Records on the same screen say themselves how far it is.
    on_screen = settings.output is None and not console.json and console.stdout.isatty()
    done = 0

    def told(here: int, of: int) -> None:
        update(done + here, known)

    with nullcontext(_silent) if on_screen else console.progress(f"Scoring {part.name}") as update:
        for rows in read:
            with hushed("unknown-types"):  # nobody scores here, and each window would say its own counts
                encoded = scorer.kind.encode(_unscored(rows), wordpiece, scorer.labels, scorer.settings, segments=segments)
            window = EncodedPart(part=replace(part, rows=rows), encoded=encoded)
            with console.stop.deferred():
                found = scorer.predictions(window, stop=lambda: console.stop.number, progress=told)
            if found is None:
                raise console.stop.error()
            if not coverage.rows:
                coverage = encoded.coverage
            else:
                coverage.add(encoded.coverage)
            done += len(rows)
            yield found
    for line in coverage.lines():
        console.say(f"{part.name}: {line}")


def _unscored(rows: list[Any]) -> list[Any]:
    """The rows as a model reads them: a label that it does not know (a test part's ``?``) is handed on, and checked by nobody."""
    return [_without_gold(row) for row in rows]


def _without_gold(row: Any) -> Any:
    if isinstance(row, TextRow):
        return replace(row, label=None)
    if isinstance(row, TaggedRow) and row.scheme == "plain":  # entities are counted by what the model can name
        return replace(row, tags=None)
    return row


def _places(settings: PredictSettings, task: Task, names: list[str]) -> dict[str, Path]:
    """The file of each part; none where the records go to stdout.

    Raises:
        FolderError: It is a folder, or a file of someone's (exit 2).
        UsageError: It is named as a table, would be the official file, or the one that is read (exit 2).
    """
    if settings.output is None:
        return {}
    output = Path(settings.output)
    official = {name: [output.with_name(file) for file in kind_of(task).official_files(task, name)] for name in names}
    written = set(chain.from_iterable(official.values()))
    if (table := output.suffix.lower()) in (".csv", ".tsv", ".parquet") and output not in written:
        raise UsageError(
            f"Predictions are JSON lines, and the name says {table}.",
            where=str(output),
            hint=f"--output {output.with_suffix('.jsonl')}",
        )
    if output.is_dir():
        raise FolderError(
            "The predictions go to a file, and this is a folder.", where=str(output), hint=f"--output {output}/predictions.jsonl"
        )
    if (below := file_in_the_way(output.parent)) is not None:
        raise FolderError("The predictions would lie below a file.", where=str(below), hint="Choose another --output.")
    places = {name: output if len(names) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}") for name in names}
    data = settings.data
    read = {Path(name).resolve() for name in (data.test_file, data.validation_file, data.folder) if name is not None}
    if output in written or not read.isdisjoint(path.resolve() for path in (*written, *places.values())):
        raise UsageError(
            f"Beside the predictions there is the official file {', '.join(sorted(p.name for p in written)) or 'of the task'}: "
            "neither may be the other, nor the file that is read.",
            where=str(output),
            hint=f"--output {output.with_name('predictions.jsonl')}",
        )
    if settings.overwrite:
        return places
    for name, place in places.items():
        if place.exists() and not is_predictions(place):
            raise FolderError(
                "This file is there already, and holds no predictions.",
                where=str(place),
                hint="Choose another --output, or replace it with --overwrite.",
            )
        for beside in official[name]:
            if beside.exists() and not is_official(beside):
                raise FolderError(
                    "The official file would be written here, and what is there already is none.",
                    where=str(beside),
                    hint=f"Choose another folder, say --output {output.parent / output.stem / output.name}, or replace it with "
                    "--overwrite.",
                )
    return places


def _silent(*_: object) -> None:
    """Progress that nobody sees."""


def _lines(kind: Kind, task: Task, stdin: TextIO, console: Console) -> Iterator[Any]:
    """A row a line, as they are read."""
    if not isinstance(kind, TakesLines):
        raise MissingError(
            "There is nothing to predict: stdin is read for tasks over texts alone.",
            where="--data, --test-file",
            hint="Name a file with --test-file.",
        )
    console.reading(stdin)
    return _rows(kind, task, stdin)


def _rows(kind: TakesLines, task: Task, stdin: TextIO) -> Iterator[Any]:
    number = 0
    for number, line in enumerate(_utf8(stdin), 1):
        yield kind.from_line(number, line.rstrip("\r\n"), task)
    if not number:
        raise MissingError(
            "There is nothing on stdin to predict.", where="stdin", hint="Name a file with --test-file, or pipe texts in."
        )


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
