"""``bertkit tasks``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertkit.cli import flags
from bertkit.cli.session import perform

if TYPE_CHECKING:
    from bertkit.jobs.console import Console
    from bertkit.jobs.outcome import Outcome


def tasks(task_file: flags.TaskFile = None, json: flags.Json = False) -> None:
    """List the tasks with their data, primary metric and defaults."""
    perform("tasks", lambda console: _list(console, task_file))


def _list(console: Console, task_file: str | None) -> Outcome:
    from bertkit.jobs.outcome import Outcome
    from bertkit.tasks.defaults import listed_defaults
    from bertkit.tasks.probes import PROBES
    from bertkit.tasks.registry import all_tasks
    from bertkit.tasks.task_file import load_task_file

    if task_file is not None:
        load_task_file(task_file)
    found: list[dict[str, Any]] = [
        {
            "name": task.name,
            "kind": task.kind,
            "metric": task.primary,
            "metrics": list(task.metrics),
            "data": task.hub.id if task.hub else None,
            "labels": list(task.labels),
            "defaults": listed_defaults(task),
            "title": task.title,
        }
        for task in all_tasks()
    ]
    probes = [
        {"name": probe.name, "metric": probe.primary, "reads": probe.reads, "title": probe.title, "command": probe.command}
        for probe in PROBES.values()
    ]
    rows = []
    for task in found:
        data, defaults = task["data"] or "your files", task["defaults"]
        tokens, batch, epochs = (f"{defaults[name]:g}" for name in ("max_length", "batch_size", "epochs"))
        facts = f"{task['metric']}; {data}; {tokens} tokens, {batch} rows, {epochs} epochs"
        rows += [(task["name"], task["title"]), ("", facts)]
    for probe in probes:
        rows += [(probe["name"], probe["title"]), ("", f"{probe['metric']}; {probe['reads']}")]
    console.table(rows)
    return Outcome(extra={"tasks": found, "probes": probes})
