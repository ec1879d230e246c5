"""RunFolder: a locked folder that one run writes into, its state and its log. :mod:`bertkit.jobs.folder` hands them out."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from bertkit.fields import Settings
from bertkit.jobs.console import finite, to_json
from bertkit.jobs.lock import Lock
from bertkit.jobs.places import STATE, safe_join, write_text
from bertkit.settings.compare import flat, to_yaml

LOG = "log.jsonl"
Situation = Literal["new", "unfinished", "finished"]


class RunFolder:
    """A folder that one run writes into. Use :func:`claim` to get one; it is a context manager that gives the lock back.

    Attributes:
        path: The folder.
        situation: ``new``, ``unfinished`` (the same settings: go on) or ``finished`` (the same settings: nothing to do).
        state: What bertkit.json holds.
    """

    def __init__(self, path: Path, situation: Situation, state: dict[str, Any], lock: Lock | None) -> None:
        self.path = path
        self.situation: Situation = situation
        self.state = state
        self._lock = lock

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def writes(self) -> bool:
        """Whether this process holds the lock."""
        return self._lock is not None

    def inside(self, name: str) -> Path:
        """The path of ``name`` in the folder; never one outside.

        Raises:
            FolderError: It would lead outside.
        """
        return safe_join(self.path, name)

    def made(self, *names: str) -> None:
        """Remembers that the run makes these files or folders (say so before writing): ``--overwrite`` removes these alone."""
        for name in names:
            self.inside(name)
        known = self.state.setdefault("made", [])
        fresh = [name for name in names if name not in known]
        if fresh:
            known.extend(fresh)
            self._save()

    def record(self, **facts: Any) -> None:
        """Writes facts into bertkit.json: fingerprints, versions, what automatic values became."""
        self.state.update(finite(facts))
        self._save()

    def resolve(self, settings: Settings) -> None:
        """Writes settings.yaml: the settings with every automatic value as it became."""
        self.made("settings.yaml")
        write_text(self.path / "settings.yaml", to_yaml(settings, command=str(self.state["command_name"])))
        self.record(resolved=flat(settings))

    def finish(self, state: Literal["finished", "stopped", "failed"], **facts: Any) -> None:
        """Writes how the run ended."""
        self.record(state=state, ended=now(), **facts)

    def write(self, name: str, text: str) -> Path:
        """Writes a text file of the run, whole or not at all, and remembers it."""
        path = self.inside(name)
        self.made(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        return path

    def write_metrics(self, metrics: Mapping[str, Any], name: str = "metrics.json") -> Path:
        """Writes figures as JSON; what does not exist is null."""
        return self.write(name, to_json(metrics, indent=2) + "\n")

    def log(self, record: Mapping[str, Any]) -> None:
        """Adds one line to log.jsonl."""
        if LOG not in self.state.get("made", []):
            self.made(LOG)
        with (self.path / LOG).open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_json(record) + "\n")

    def truncate_log(self, step: int, done: tuple[int, int] | None = None) -> None:
        """Takes from log.jsonl what came after ``step`` (records without a step stay), and a last line that was cut.

        With ``done``, the epoch and its batches that have been used, what came after those goes too: a step that was left
        out has no number of its own.
        """
        path = self.path / LOG
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            at = record.get("step") or 0 if isinstance(record, dict) else None
            if isinstance(at, int) and at <= step and not (done is not None and _behind(record, done)):
                kept.append(line)
        write_text(path, "".join(line + "\n" for line in kept))

    def _save(self) -> None:
        write_text(self.path / STATE, to_json(self.state, indent=2) + "\n")


def _behind(record: Mapping[str, Any], done: tuple[int, int]) -> bool:
    epoch, batch = record.get("epoch"), record.get("batch")
    return isinstance(epoch, int) and isinstance(batch, int) and (epoch, batch) > done


def now() -> str:
    """The time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
