"""A task's parts as rows: from a folder by the task's own file names, from files that are named, or from the hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from bertkit.errors import DataError, MissingError, UsageError
from bertkit.labelled.columns import Columns, LabelForm
from bertkit.labelled.hub import hub_records, load_hub
from bertkit.labelled.rows import LATER, RowReport
from bertkit.labelled.split import hold_out
from bertkit.notices import say
from bertkit.tasks.kinds import Kind
from bertkit.tasks.registry import kind_of
from bertkit.tasks.streamed import StreamedRows
from bertkit.tasks.task import HubData, Part, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPart:
    """One part that was read.

    Attributes:
        name: Its name, ``validation_matched`` say.
        rows: Its rows, in the file's order.
        report: Rows skipped, columns seen.
        source: The file or data set, for people.
    """

    name: str
    rows: Sequence[Any]
    report: RowReport
    source: str

    @property
    def role(self) -> str:
        """``train``, ``validation`` or ``test``."""
        return self.name.partition("_")[0]

    def fingerprint(self) -> str:
        """16 hex digits of what the rows say, wherever their file lies."""
        digest = hashlib.sha256()
        for row in self.rows:
            told = [(field, getattr(row, field.name)) for field in fields(row) if field.name != "place"]
            facts = [value for field, value in told if not (field.metadata == LATER and value == field.default)]
            digest.update(repr(facts).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]


def with_columns(
    task: Task,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    separator: str | None = None,
    candidates: str | None = None,
    label_form: LabelForm | None = None,
) -> Task:
    """The task with people's own column names, and how their cells are read; those not named stay.

    Raises:
        UsageError: Its kind reads no table, has one label a row or no candidates, or one column would be two of them (exit 2).
    """
    if all(given is None for given in (text, pair, label, separator, candidates, label_form)):
        return task
    if task.columns is None:
        raise UsageError(f"{task.name} reads no columns by name.", where="--text-column, --pair-column, --label-column")
    if separator is not None and task.columns.kind != "several":
        raise UsageError(f"{task.name} has one label a row: nothing parts them.", where="data.label_separator")
    if (candidates or label_form) is not None and task.kind != "choice":
        raise UsageError(f"{task.name} has no candidates.", where="data.candidate_columns, data.label_form")
    columns = replace(
        task.columns,
        text=text or task.columns.text,
        pair=pair or task.columns.pair,
        label=label or task.columns.label,
        delimiter=separator or task.columns.delimiter,
        candidates=_named(candidates) or task.columns.candidates,
        label_form=label_form or task.columns.label_form,
    )
    taken = [name for name in (columns.text, columns.pair, columns.label, *columns.candidates) if name is not None]
    if len(set(taken)) < len(taken):
        twice = next(name for name in taken if taken.count(name) > 1)
        raise UsageError(
            f"The column {twice!r} cannot be two of text, pair, label and candidates.",
            where="--text-column, --pair-column, --label-column",
        )
    return replace(task, columns=columns, hub=task.hub and replace(task.hub, columns=columns))


def _named(columns: str | None) -> tuple[str, ...]:
    """Names parted by commas."""
    return tuple(name.strip() for name in (columns or "").split(",") if name.strip())


def load_parts(
    task: Task,
    roles: Sequence[str] = ("train", "validation"),
    *,
    folder: str | None = None,
    train_file: str | None = None,
    validation_file: str | None = None,
    test_file: str | None = None,
    max_train_samples: int | None = None,
    max_eval_samples: int | None = None,
    strict: bool = False,
    streamed: bool = False,
) -> dict[str, TaskPart]:
    """The parts of the roles asked for, by name, training first.

    Files that are named come before ``folder``, and ``folder`` (a folder, one file, or a hub name) before the task's own hub
    data; files given touch no network. Where there is training data and no validation part, 10 % of it are held out, and
    that is said, whether training is asked for or not: who scores a run finds the very rows that its training held out. Of
    several validation parts (MNLI's) one that is not there is said. With ``streamed`` the rows of a file are read when they
    are used (:class:`StreamedRows`).

    Raises:
        MissingError: A file, folder, data set or a whole role is not there (exit 4).
        DataError: A file cannot be read (exit 3).
    """
    kind = kind_of(task)
    named = {"train": train_file, "validation": validation_file, "test": test_file}
    beside = ["train"] if "validation" in roles and "train" not in roles else []
    files_alone = folder is None and any(named[role] for role in (*roles, *beside))

    def there(roles: Sequence[str]) -> dict[str, TaskPart]:
        read = partial(_read, kind, task, strict=strict, streamed=streamed and "train" not in roles)
        parts = {role: read(role, Path(path)) for role in roles if (path := named[role]) is not None}
        missing = [role for role in roles if role not in parts]
        return parts if files_alone or not missing else parts | _found(kind, task, missing, folder, read)

    parts = there(roles)
    _say_same_file(parts)
    if beside and not any(part.role == "validation" for part in parts.values()):
        parts |= there(beside)
    parts = _with_validation(kind, task, parts, roles, folder)
    most = {"train": max_train_samples}
    return {name: _first(part, most.get(part.role, max_eval_samples)) for name, part in parts.items() if part.role in roles}


def require_gold(kind: Kind, task: Task, part: TaskPart) -> None:
    """Is there anything to train on or to score, before any work?

    Raises:
        DataError: The part is empty or has no labels, or a row of one that has a label a row has none (exit 3), with its place.
    """
    if not part.rows:
        raise DataError(f"The {part.name} part has no rows.", where=part.source)
    if not kind.has_gold(part.rows):
        column = task.columns.label if task.columns else None
        seen = f" (column {column!r}; its columns are {', '.join(part.report.columns)})" if column and part.report.columns else ""
        raise DataError(
            f"The {part.name} part has no labels{seen}.",
            where=part.source,
            hint=_how_labelled(task, part, column),
        )
    for row in part.rows:
        if getattr(row, "label", row) is None:  # sentences and questions may be without gold, and are then not scored
            said = "A training row has no label." if part.role == "train" else "This row has no label to be scored against."
            raise DataError(said, where=str(row.place))


def _how_labelled(task: Task, part: TaskPart, column: str | None) -> str:
    """What to do with a part in which no row has a label."""
    if column and part.report.columns and column not in part.report.columns:
        return f"Name the labels' column with --label-column; `bertkit predict {task.name}` serves parts without labels."
    return f"`bertkit predict {task.name}` serves parts without labels."


def _found(
    kind: Kind, task: Task, roles: Sequence[str], folder: str | None, read: Callable[[str, Path], TaskPart]
) -> dict[str, TaskPart]:
    """Parts from a folder, a single file or the hub."""
    wanted = [part for part in task.parts if part.role in roles]
    if folder is None and task.hub is None:
        flags = " and ".join(f"--{role}-file" for role in dict.fromkeys(roles))
        raise UsageError(
            f"{task.name} has no data of its own.",
            where="--data",
            hint=f"Give a folder with {_names(wanted)} as --data, or {flags}.",
        )
    if folder is not None and Path(folder).is_file():
        return {roles[0]: read(roles[0], Path(folder))}
    if folder is None or not Path(folder).exists():
        return dict(_from_hub(kind, task, wanted, _hub(task, folder, wanted)))
    found = {part.name: path for part in wanted if (path := _file_of(part, Path(folder))) is not None}
    _say_absent(task, wanted, list(found), folder)
    return {name: read(name, path) for name, path in found.items()}


def _hub(task: Task, name: str | None, wanted: Sequence[Part]) -> HubData:
    if name is None or (task.hub and name == task.hub.id):
        assert task.hub is not None  # _found has asked
        return task.hub
    endings = {Path(file).suffix for part in task.parts for file in part.files}
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or name.startswith(".") or Path(name).suffix in endings - {""}:
        raise MissingError(
            f"There is no file or folder {name!r}.",
            where="--data",
            hint=f"Give a folder with {_names(wanted)}, a file, or a data set's name on the hub.",
        )
    return replace(task.hub, id=name, revision=None) if task.hub else HubData(id=name)


def _from_hub(kind: Kind, task: Task, wanted: Sequence[Part], hub: HubData) -> Iterator[tuple[str, TaskPart]]:
    splits = load_hub(hub.id, config=hub.config, revision=hub.revision, files=_names(wanted))
    source = f"{hub.id} ({hub.config})" if hub.config else hub.id
    _say_absent(task, wanted, [part.name for part in wanted if (part.split or part.name) in splits], source)
    columns: Columns | None = hub.columns or task.columns
    for part in wanted:
        if (part.split or part.name) in splits:
            records = hub_records(splits[part.split or part.name])
            rows, report = kind.from_records(records, replace(task, columns=columns), source=f"{source}, {part.name}")
            yield part.name, _told(TaskPart(name=part.name, rows=rows, report=report, source=source))


def _file_of(part: Part, folder: Path) -> Path | None:
    """The first of the part's file names that is there; of several that fit a pattern the first by name, which is said."""
    for name in part.files:
        matches = sorted(path for path in folder.glob(name) if path.is_file())
        if len(matches) > 1:
            say("several-files", f"{len(matches)} files in {folder} fit {name}: {matches[0].name} is taken for {part.name}.")
        if matches:
            return matches[0]
    return None


def _read(kind: Kind, task: Task, name: str, path: Path, *, strict: bool, streamed: bool) -> TaskPart:
    if streamed and path.is_file():  # a pipe can be read once
        rows_of_file = StreamedRows(kind=kind, task=task, path=path, strict=strict)
        return TaskPart(name=name, rows=rows_of_file, report=RowReport(), source=str(path))
    rows, report = kind.read(path, task, strict=strict)
    return _told(TaskPart(name=name, rows=rows, report=report, source=str(path)))


def _told(part: TaskPart) -> TaskPart:
    """The part; rows that its reader left out are said."""
    if (skipped := part.report.summary()) is not None:
        say("skipped-rows", skipped)
    return part


def _say_absent(task: Task, wanted: Sequence[Part], found: Sequence[str], source: str) -> None:
    roles = {name.partition("_")[0] for name in found}
    for part in wanted:
        if part.name not in found and part.role in roles:
            say("absent-part", f"{source} has no {part.name} part ({' or '.join(part.files)}): {task.name} goes on without it.")


def _say_same_file(parts: dict[str, TaskPart]) -> None:
    """Is training scored on its own rows? To be asked before a part is held out, which has its source in common with training."""
    train = parts.get("train")
    if train is None or not Path(train.source).is_file():  # parts of one data set of the hub have one source
        return
    for part in parts.values():
        if part is not train and Path(part.source).resolve() == Path(train.source).resolve():
            say("same-file", f"{part.source} is the training file too: the {part.name} score is of rows that were trained on.")


def _with_validation(
    kind: Kind, task: Task, parts: dict[str, TaskPart], roles: Sequence[str], folder: str | None
) -> dict[str, TaskPart]:
    """Holds 10 % of the training rows out where they have no validation beside them; every role must then be there."""
    there = {part.role for part in parts.values()}
    if "validation" in roles and "train" in there and "validation" not in there:
        train = parts["train"]
        kept, held = hold_out(train.rows, kind.texts, labels_of=_classes, where=train.source)
        say(
            "held-out",
            f"There is no validation part: {len(held)} of {len(train.rows)} training rows are held out, equal texts on one side.",
        )
        report = RowReport(rows=len(held), columns=train.report.columns)
        parts = parts | {
            "train": replace(train, rows=kept),
            "validation": TaskPart(name="validation", rows=held, report=report, source=train.source),
        }
        there.add("validation")
    for role in roles:
        if role not in there:
            wanted = [part for part in task.parts if part.role == role]
            below = _folder_below(task, wanted, folder)
            raise MissingError(
                f"There is no {role} part of {task.name}.",
                where=str(Path(folder or "") / _names(wanted)),
                hint=f"Give a folder with it as --data{f' ({below} is one)' if below else ''}, or --{role}-file.",
            )
    return parts


def _folder_below(task: Task, wanted: Sequence[Part], folder: str | None) -> Path | None:
    """The task's own folder in the one that was named: GLUE's lie side by side, and all have a train.tsv."""
    if folder is None or not Path(folder).is_dir():
        return None
    having = [each for each in sorted(Path(folder).iterdir()) if each.is_dir() and any(_file_of(part, each) for part in wanted)]
    return next((each for each in having if _letters(each.name) == _letters(task.name)), having[0] if len(having) == 1 else None)


def _letters(name: str) -> str:
    """``SST-2`` and ``sst2`` are one name."""
    return re.sub(r"[\W_]", "", name).casefold()


def _classes(row: Any) -> tuple[str, ...]:
    """The names of classes that a row is an example of; none where its gold is something else."""
    label = getattr(row, "label", None)
    return (label,) if isinstance(label, str) else label if isinstance(label, tuple) else ()


def _first(part: TaskPart, most: int | None) -> TaskPart:
    return part if most is None else replace(part, rows=part.rows[:most])


def _names(parts: Sequence[Part]) -> str:
    return ", ".join(part.files[0] for part in parts)
