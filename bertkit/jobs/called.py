"""What the functions of :mod:`bertkit.jobs.library` share: arguments -> checked settings -> a job that is heard.

Settings come in by the dotted names of ``--set``; a job's notices come back with its outcome, and stdout is left alone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bertkit.errors import SettingsError
from bertkit.fields import Settings
from bertkit.jobs.console import Console
from bertkit.jobs.outcome import Outcome
from bertkit.settings.commands import task_defaults
from bertkit.settings.layers import keys, unknown_key
from bertkit.settings.reading import Entry
from bertkit.settings.resolve import refuse_code, resolve
from bertkit.tasks.registry import task_named
from bertkit.tasks.task_file import load_task_file

S = TypeVar("S", bound=Settings)
Place = str | os.PathLike[str]
Values = Mapping[str, Any]


def arguments(settings: Values | None, output: Place | None, overwrite: bool, **named: Place | None) -> dict[str, Any]:
    """Settings by dotted key, of the arguments and of ``settings``.

    Raises:
        SettingsError: One is among both (exit 2).
    """
    places = {"data": "data.folder"}
    found: dict[str, Any] = {places.get(name, name): os.fspath(value) for name, value in named.items() if value is not None}
    found |= {} if output is None else {"output": os.fspath(output)}
    found |= {"overwrite": True} if overwrite else {}
    for key, value in (settings or {}).items():
        if key in found:
            raise SettingsError(f"{key} is given twice: as an argument, and in settings.", where=f"settings[{key!r}]")
        found[key] = str(value) if isinstance(value, Path) else value
    return found


def checked(model: type[S], command: str, given: Values, recipe: str | None, defaults: Values | None = None) -> S:
    """The settings of a command.

    Raises:
        SettingsError: Unknown keys or wrong values, all of them (exit 2).
    """
    known = keys(model)
    wrong = [unknown_key(key, known) for key in given if key not in known]
    if wrong:
        raise SettingsError("\n".join(wrong), where=f"bertkit.{command}")
    flags = {key: Entry(value, f"settings[{key!r}]") for key, value in given.items()}
    return resolve(model, command=command, flags=flags, recipe=recipe, defaults=defaults, defaults_of="the task's defaults")


def of_task(command: str, model: Callable[[str], type[S]], task: str, given: Values, recipe: str | None) -> S:
    """The settings of a command over a task, above the task's defaults.

    Raises:
        SettingsError: As above.
        UsageError: No such task, or code that a recipe alone names (exit 2).
    """
    refuse_code(recipe, given)
    if (file := given.get("task_file")) is not None:
        load_task_file(file)
    name = task_named(task.lower()).name
    kind = model(name)
    defaults = {key: value for key, value in task_defaults(name).items() if key in keys(kind)}
    return checked(kind, command, {**given, "task": name}, recipe, defaults)


def heard(job: Callable[[Console], Outcome], command: str, given: Values, quiet: bool) -> Outcome:
    """Runs a job with a console that leaves stdout alone; the notices come back with the outcome."""
    plain = {key: value for key, value in given.items() if key != "task"}
    sets = [word for key, value in plain.items() for word in ("--set", f"{key}={_spelled(value)}")]
    line = shlex.join(["bertkit", command, *([given["task"]] if "task" in given else []), *sets])
    console = Console(quiet=quiet, json=True, stdout=sys.stderr, line=line)
    with console.hearing():
        outcome = job(console)
    for notice in outcome.warnings:
        console.notice(notice)
    return dataclasses.replace(outcome, warnings=tuple(console.heard))


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
