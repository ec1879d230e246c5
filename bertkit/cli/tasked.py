"""What ``finetune``, ``eval`` and ``predict`` share: which task is meant, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bertkit.cli.session import checked
from bertkit.errors import UsageError

if TYPE_CHECKING:
    from bertkit.fields import Settings
    from bertkit.settings.reading import Entry

S = TypeVar("S", bound="Settings")
TaskName = Annotated[str | None, typer.Argument(metavar="TASK", help="A task that `bertkit tasks` lists.", show_default=False)]


def task_of(command: str, task: str | None, recipe: str | None) -> str:
    """The task's name: the argument, else the recipe's.

    Raises:
        UsageError: Neither names one, or there is no such task.
    """
    from bertkit.settings.resolve import recipe_value
    from bertkit.tasks.registry import task_named

    if task is None and recipe is not None:
        value = recipe_value(recipe, "task")
        task = value if isinstance(value, str) else None
    if task is None:
        raise UsageError(
            f"bertkit {command} needs a task.",
            where=f"bertkit {command}",
            hint=f"`bertkit tasks` lists them, and `bertkit {command} TASK --set help` the settings of one.",
        )
    return task_named(task.lower()).name


def load_own_tasks(given: Mapping[str, Entry], sets: Sequence[str], recipe: str | None) -> None:
    """Runs the task file that the command line names.

    Raises:
        UsageError: A recipe alone names code (exit 2).
        MissingError, DataError: As :func:`bertkit.tasks.task_file.load_task_file`.
    """
    from bertkit.settings.resolve import refuse_code
    from bertkit.tasks.task_file import load_task_file

    named = {name.strip().replace("-", "_"): value for name, _, value in (word.partition("=") for word in sets)}
    named |= {key: entry.value for key, entry in given.items()}
    refuse_code(recipe, named)
    if "task_file" in named:
        load_task_file(str(named["task_file"]))


def settings_of(
    command: str,
    model: Callable[[str], type[S]],
    task: str | None,
    given: Mapping[str, Entry],
    sets: Sequence[str],
    recipe: str | None,
) -> S:
    """The checked settings of a command over a task; the task's own defaults are the weakest layer."""
    from bertkit.settings.commands import task_defaults
    from bertkit.settings.layers import keys
    from bertkit.settings.reading import Entry

    load_own_tasks(given, sets, recipe)
    name = task_of(command, task, recipe)
    kind = model(name)
    known = keys(kind)
    defaults = {key: value for key, value in task_defaults(name).items() if key in known}
    flags = {"task": Entry(name, "TASK"), **given}
    return checked(
        kind, command=command, flags=flags, sets=sets, recipe=recipe, defaults=defaults, defaults_of=f"defaults of {name}"
    )
