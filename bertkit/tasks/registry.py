"""Tasks by name: each a declaration of its kind, data, columns, labels in order, primary metric and defaults.

Importing this file imports no torch, so that ``bertkit tasks`` answers at once; :func:`kind_of` loads the kind's own file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from bertkit.errors import UsageError, nearest
from bertkit.labelled.columns import Columns
from bertkit.tasks.declared import TASKS
from bertkit.tasks.probes import PROBES, refuse_probe
from bertkit.tasks.task import HubData, Part, Task

if TYPE_CHECKING:
    from bertkit.tasks.kinds import Kind

__all__ = ["Columns", "HubData", "Part", "Task", "all_tasks", "forget", "kind_of", "register", "task_named"]

_tasks: dict[str, Task] = {}
_kinds: dict[str, str] = {
    "classification": "bertkit.tasks.classification:Classification",
    "tagging": "bertkit.tasks.tagging:Tagging",
    "span": "bertkit.tasks.span:Span",
    "span_chinese": "bertkit.tasks.span_chinese:ChineseSpan",
    "choice": "bertkit.tasks.choice:Choice",
}


def register(task: Task) -> Task:
    """Adds a task.

    Raises:
        ValueError: Its name is taken, its kind unknown, or its declaration contradicts itself.
    """
    if task.name in _tasks or task.name in PROBES:
        raise ValueError(f"there is a task {task.name!r} already")
    if task.kind not in _kinds:
        raise ValueError(f"task {task.name!r} is of kind {task.kind!r}, which is none of {sorted(_kinds)}")
    if faults := list(task.faults()):
        raise ValueError(f"task {task.name!r}: {'; '.join(faults)}")
    _tasks[task.name] = task
    return task


def forget(names: Iterable[str]) -> None:
    """Takes tasks away again, where they are."""
    for name in names:
        _tasks.pop(name, None)


def task_named(name: str) -> Task:
    """The task of that name.

    Raises:
        UsageError: There is none (exit 2); the nearest names are said, and of an evaluation of a pretrained model what it is.
    """
    if name in _tasks:
        return _tasks[name]
    refuse_probe(name)
    raise UsageError(
        f"There is no task {name!r}.{nearest(name, [*_tasks, *PROBES])}",
        where="TASK",
        hint="`bertkit tasks` lists them; finetune, eval and predict take your own by --task-file.",
    )


def all_tasks() -> list[Task]:
    """Every task, in the order of registration."""
    return list(_tasks.values())


def kind_of(task: Task) -> Kind:
    """The task's kind; loads torch."""
    module, _, name = _kinds[task.kind].partition(":")
    return cast("Kind", getattr(importlib.import_module(module), name)())


for _task in TASKS:
    register(_task)
