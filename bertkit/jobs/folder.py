"""The run folder: who may write into it, what state it is in, and what a run made in it.

In: a path, the command and its settings. Out: a :class:`RunFolder` that is locked, with ``situation`` saying what to do: start
(``new``), go on (``unfinished``), or nothing (``finished``). The model files themselves are others' business.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Literal

from bertkit import __version__
from bertkit.errors import DataError, FolderError, MissingError
from bertkit.fields import Settings
from bertkit.jobs.console import finite, to_json
from bertkit.jobs.lock import NAME as LOCK
from bertkit.jobs.lock import Lock
from bertkit.notices import say
from bertkit.settings.compare import Difference, differences, fingerprint, flat, given, to_yaml

STATE = "bertkit.json"
LOG = "log.jsonl"
FORMAT = 1
Situation = Literal["new", "unfinished", "finished"]


def write_text(path: Path, text: str) -> None:
    """Writes a file under another name, flushes it to the disk and renames it: it is whole or it is not there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_state(folder: Path) -> dict[str, Any] | None:
    """The ``bertkit.json`` of a folder; None where there is none.

    Raises:
        DataError: It is there and cannot be read.
    """
    path = folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, OSError) as error:
        raise DataError(f"This file cannot be read: {error}.", where=str(path), hint="Choose another --output.") from None
    if not isinstance(state, dict):
        raise DataError("This file is not a run's.", where=str(path), hint="Choose another --output.")
    return state


def safe_join(folder: Path, name: str) -> Path:
    """``folder/name``, where ``name`` stays inside ``folder``, through symbolic links too.

    Raises:
        FolderError: It would lead outside.
    """
    relative = PurePosixPath(name.replace("\\", "/"))
    inside = folder.joinpath(*relative.parts)
    escapes = relative.is_absolute() or ".." in relative.parts or not relative.parts or ":" in relative.parts[0]
    if escapes or not inside.parent.resolve().is_relative_to(folder.resolve()):
        raise FolderError(f"{name!r} would lead out of the run folder.", where=str(folder))
    return inside


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

    def finish(self, state: Literal["finished", "stopped"], **facts: Any) -> None:
        """Writes how the run ended."""
        self.record(state=state, ended=_now(), **facts)

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

    def truncate_log(self, step: int) -> None:
        """Takes from log.jsonl what came after ``step`` (records without a step stay), and a last line that was cut."""
        path = self.path / LOG
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and int(record.get("step") or 0) <= step:
                kept.append(line)
        write_text(path, "".join(line + "\n" for line in kept))

    def _save(self) -> None:
        write_text(self.path / STATE, to_json(self.state, indent=2) + "\n")


def claim(
    path: Path,
    settings: Settings,
    *,
    command: str,
    named: bool,
    line: str = "",
    overwrite: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> RunFolder:
    """Makes or takes the folder of a run, and locks it.

    Args:
        path: The folder asked for, or the default one (``runs/mnli``).
        settings: Today's settings, as asked for (automatic values not yet filled in).
        command: ``pretrain``, ``finetune``, …
        named: Whether the user named the folder. If not, one of other settings is left alone and ``runs/mnli-2`` taken and said.
        line: The command line, for the record.
        overwrite: Removes what a run made there, and nothing else, and starts anew.
        facts: More for bertkit.json (``task="mnli"``).

    Raises:
        FolderError: The folder has someone's files, or (named) a run of other settings; each differing setting is named (exit 2).
        ResourceError: Another run holds it (exit 5).
    """
    for number in range(1, 1000):
        candidate = path if number == 1 else path.with_name(f"{path.name}-{number}")
        refusal = None if overwrite and read_state(candidate) is not None else _refusal(candidate, settings, command)
        if refusal is None:
            folder = _take(candidate, settings, command=command, line=line, overwrite=overwrite, facts=facts or {})
            if number > 1 and folder.situation == "new":
                say("output", f"{path} is of another run, so this one goes to {candidate}.")
            return folder
        if named:
            raise refusal
    raise FolderError(f"There are a thousand folders beside {path}.", hint="Name one with --output.")


def _refusal(path: Path, settings: Settings, command: str) -> FolderError | None:
    """Why this run may not write into ``path``; None where it may."""
    if not path.exists():
        return None
    if not path.is_dir():
        return FolderError("The output is a file, not a folder.", where=str(path), hint="Choose another --output.")
    state = read_state(path)
    if state is None:
        others = [child.name for child in sorted(path.iterdir()) if not child.name.startswith((LOCK, "." + LOCK, f".{STATE}"))]
        if not others:
            return None
        return FolderError(
            f"This folder has files that are no run of bertkit ({', '.join(others[:3])}{', …' if len(others) > 3 else ''}).",
            where=str(path),
            hint="Choose another --output; nothing was changed.",
        )
    found = _differing(state, settings, command)
    if not found:
        return None
    return FolderError(
        "This folder is a run with other settings:\n" + "\n".join(f"  - {item}" for item in found) + "\n",
        where=str(path),
        hint="Choose another --output, or start anew here with --overwrite.",
    )


def _differing(state: Mapping[str, Any], settings: Settings, command: str) -> list[Difference]:
    if state.get("command_name") != command:
        return [Difference("command", state.get("command_name"), command)]
    return differences(state.get("asked") or {}, settings, resolved=state.get("resolved"))


def _take(path: Path, settings: Settings, *, command: str, line: str, overwrite: bool, facts: Mapping[str, Any]) -> RunFolder:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FolderError("The output is a file, not a folder.", where=str(path), hint="Choose another --output.") from None
    lock = Lock(path)
    lock.acquire()
    try:
        state = read_state(path)  # again, now that nobody else writes here
        if state is not None and overwrite:
            remove_made(path, state)
            state = None
        elif (refusal := _refusal(path, settings, command)) is not None:
            raise refusal
        situation: Situation = "new" if state is None else "finished" if state.get("state") == "finished" else "unfinished"
        folder = RunFolder(path, situation, state or {}, lock)
        if situation != "finished":
            folder.record(**_opening(settings, command, line), **facts)
        return folder
    except BaseException:
        lock.release()
        raise


def _opening(settings: Settings, command: str, line: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": __version__,
        "command_name": command,
        "command": line,
        "state": "running",
        "started": _now(),
        "settings_fingerprint": fingerprint(settings),
        "asked": given(settings),
    }


def remove_made(path: Path, state: Mapping[str, Any]) -> None:
    """Removes what ``bertkit.json`` says that a run made, and nothing else; links are removed, never followed."""
    for name in [*state.get("made", []), STATE]:
        target = safe_join(path, str(name))
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.is_dir():
            shutil.rmtree(target)
    for parent in sorted({safe_join(path, str(name)).parent for name in state.get("made", [])}, reverse=True):
        if parent != path and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()


def newest_run(command: str, *, task: str | None = None, root: Path = Path("runs"), hint: str) -> Path:
    """The newest finished run of a command (and task) under ``root``.

    Raises:
        MissingError: There is none (exit 4); ``hint`` is the command that makes one.
    """
    found: list[tuple[str, str, Path]] = []
    for path in sorted(root.glob(f"*/{STATE}")) if root.is_dir() else []:
        try:
            state = read_state(path.parent) or {}
        except DataError:
            continue
        if state.get("command_name") == command and state.get("state") == "finished" and task in (None, state.get("task")):
            found.append((str(state.get("ended", "")), path.parent.name, path.parent))
    if not found:
        what = f"{command} {task}" if task else command
        raise MissingError(f"There is no finished run of `bertkit {what}` under {root}/.", hint=hint)
    return max(found)[2]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
