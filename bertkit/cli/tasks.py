"""``bertkit tasks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertkit.cli import flags
from bertkit.cli.session import perform

if TYPE_CHECKING:
    from bertkit.jobs.console import Console
    from bertkit.jobs.outcome import Outcome


def tasks(json: flags.Json = False) -> None:
    """List the tasks with their data and primary metric."""
    perform("tasks", _list)


def _list(console: Console) -> Outcome:
    from bertkit.jobs.outcome import Outcome
    from bertkit.tasks.probes import PROBES
    from bertkit.tasks.registry import all_tasks

    found = [
        {
            "name": task.name,
            "kind": task.kind,
            "metric": task.primary,
            "data": task.hub.id if task.hub else None,
            "labels": list(task.labels),
            "defaults": {**task.settings, **task.training},
            "title": task.title,
        }
        for task in all_tasks()
    ]
    rows = [(task["name"], task["metric"], task["data"] or "your files", task["title"]) for task in found]
    rows += [(probe.name, probe.primary, probe.reads, probe.title) for probe in PROBES.values()]
    console.table(rows, header=("task", "metric", "data", "what it asks"))
    probes = [
        {"name": probe.name, "metric": probe.primary, "reads": probe.reads, "title": probe.title, "command": probe.command}
        for probe in PROBES.values()
    ]
    return Outcome(extra={"tasks": found, "probes": probes})
