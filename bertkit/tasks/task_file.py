"""A Python file of people's own that registers tasks: their code, run because they named it on the command line.

A recipe or a run folder may be another person's, so one that names such a file never runs it.
"""

from __future__ import annotations

import hashlib
import runpy
import traceback
from pathlib import Path

from bertkit.errors import DataError, MissingError
from bertkit.tasks.registry import all_tasks, forget
from bertkit.tasks.task import Task

_loaded: dict[Path, tuple[str, tuple[str, ...]]] = {}


def load_task_file(name: str) -> list[Task]:
    """Runs the file, once for each of its contents, and gives the tasks that it registers.

    Raises:
        MissingError: There is no such file (exit 4).
        DataError: It cannot be run, declares a task that cannot be, or registers none (exit 3), with file and line.
    """
    path = Path(name).resolve()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise MissingError(
            f"The task file cannot be read: {error.strerror}.", where=name, hint="Name a Python file that registers tasks."
        ) from error
    before, names = _loaded.get(path, ("", ()))
    if before != digest:
        forget(names)
        _loaded.pop(path, None)
        names = _run(path, name)
        _loaded[path] = digest, names
    return [task for task in all_tasks() if task.name in names]


def _run(path: Path, name: str) -> tuple[str, ...]:
    known = {task.name for task in all_tasks()}
    try:
        runpy.run_path(str(path), run_name="bertkit_task_file")
    except (Exception, SystemExit) as error:
        forget({task.name for task in all_tasks()} - known)
        raise DataError(f"The task file fails: {_said(error)}.", where=_where(error, path, name)) from error
    names = tuple(task.name for task in all_tasks() if task.name not in known)
    if not names:
        raise DataError(
            "The task file registers no task.",
            where=name,
            hint="from bertkit.tasks.registry import Columns, Task, register; then register(Task(name=…, title=…, metrics=…)).",
        )
    return names


def _said(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(".: ")


def _where(error: BaseException, path: Path, name: str) -> str:
    """The deepest line of the file itself."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{name}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{name}, line {lines[-1]}" if lines else name
