"""Who may write into a run folder, and in which situation: the claims of runs, and the search for finished ones.

In: a path, the command and its settings. Out: a :class:`RunFolder` that is locked, with ``situation`` saying what to do: start
(``new``), go on (``unfinished``), or nothing (``finished``). The model files themselves are others' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit import __version__
from bertkit.errors import DataError, FolderError, MissingError
from bertkit.fields import Settings
from bertkit.jobs.lock import NAME as LOCK
from bertkit.jobs.lock import Lock
from bertkit.jobs.places import STATE, read_state, remove_evals, remove_made, safe_join, write_text
from bertkit.jobs.run_folder import RunFolder, Situation, now
from bertkit.notices import say
from bertkit.settings.compare import Difference, differences, fingerprint, given

__all__ = ["RunFolder", "Situation", "claim", "newest_pretraining", "newest_run", "read_state", "safe_join", "write_text"]

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What a run wants of its folder; the fields are :func:`claim`'s arguments."""

    settings: Settings
    command: str
    line: str
    overwrite: bool
    facts: Mapping[str, Any]
    fingerprints: Mapping[str, str]

    def refusal(self, path: Path) -> FolderError | None:
        """Why this run may not write into ``path``; None where it may."""
        if not path.exists():
            return None
        if not path.is_dir():
            return FolderError("The output is a file, not a folder.", where=str(path), hint="Choose another --output.")
        state = read_state(path)
        if state is None:
            return _others_files(path)
        if self.overwrite or not (found := self.differing(state)):
            return None
        return FolderError(
            "This folder is a run with other settings:\n" + "\n".join(f"  - {item}" for item in found) + "\n",
            where=str(path),
            hint="Choose another --output, or start anew here with --overwrite.",
        )

    def differing(self, state: Mapping[str, Any]) -> list[Difference]:
        """What of ``state`` is another run's."""
        if state.get("command_name") != self.command:
            return [Difference("command", state.get("command_name"), self.command)]
        before = state.get("fingerprints") or {}
        changed = [
            Difference(f"the {name}", before[name], value)
            for name, value in self.fingerprints.items()
            if before.get(name, value) != value
        ]
        return differences(state.get("asked") or {}, self.settings, resolved=state.get("resolved")) + changed

    def opening(self) -> dict[str, Any]:
        """What bertkit.json says of a run that starts or goes on."""
        return {
            "format": FORMAT,
            "version": __version__,
            "command_name": self.command,
            "command": self.line,
            "state": "running",
            "started": now(),
            "ended": None,
            "error": None,
            "settings_fingerprint": fingerprint(self.settings),
            "asked": given(self.settings),
            "fingerprints": dict(self.fingerprints),
            **self.facts,
        }


def claim(
    path: Path,
    settings: Settings,
    *,
    command: str,
    named: bool,
    line: str = "",
    overwrite: bool = False,
    facts: Mapping[str, Any] | None = None,
    fingerprints: Mapping[str, str] | None = None,
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
        fingerprints: Of what the settings only name (``text``, ``tokenizer``); compared as the settings are.

    Returns:
        The locked folder; where ``situation`` is ``finished`` nothing was written.

    Raises:
        FolderError: The folder has someone's files, or (named) a run of other settings; each differing setting is named (exit 2).
        ResourceError: Another run holds it (exit 5).
    """
    wish = _Wish(
        settings=settings, command=command, line=line, overwrite=overwrite, facts=facts or {}, fingerprints=fingerprints or {}
    )
    for number in range(1, 1000):
        candidate = path if number == 1 else path.with_name(f"{path.name}-{number}")
        refusal = wish.refusal(candidate)
        if refusal is None:
            folder = _take(candidate, wish)
            if number > 1 and folder.situation == "new":
                say("output", f"{path} is another run's, so this one goes to {candidate}.")
            return folder
        if named:
            raise refusal
    raise FolderError(f"There are a thousand folders beside {path}.", hint="Name one with --output.")


def _others_files(path: Path) -> FolderError | None:
    ours = (LOCK, f".{LOCK}", f".{STATE}")  # what a start that was killed may have left
    others = [child.name for child in sorted(path.iterdir()) if not child.name.startswith(ours)]
    if not others:
        return None
    return FolderError(
        f"This folder has files that are no run of bertkit ({', '.join(others[:3])}{', …' if len(others) > 3 else ''}).",
        where=str(path),
        hint="Choose another --output; nothing was changed.",
    )


def _take(path: Path, wish: _Wish) -> RunFolder:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FolderError("The output is a file, not a folder.", where=str(path), hint="Choose another --output.") from None
    lock = Lock(path)
    lock.acquire()
    try:
        if (refusal := wish.refusal(path)) is not None:  # again, now that nobody else writes here
            raise refusal
        state = read_state(path)
        if state is not None and wish.overwrite:
            remove_made(path, state)
            remove_evals(path)
            state = None
        situation: Situation = "new" if state is None else "finished" if state.get("state") == "finished" else "unfinished"
        folder = RunFolder(path, situation, state or {}, lock)
        if situation != "finished":
            folder.record(**wish.opening())
        return folder
    except BaseException:
        lock.release()
        raise


def newest_run(command: str, *, task: str | None = None, root: Path = Path("runs"), hint: str) -> Path:
    """The newest finished run of a command (and task) under ``root``; of those that ended in one second by their files' times.

    Raises:
        MissingError: There is none (exit 4); ``hint`` is the command that makes one.
    """
    found: list[tuple[str, int, Path]] = []
    for path in sorted(root.glob(f"*/{STATE}")) if root.is_dir() else []:
        try:
            state = read_state(path.parent) or {}
        except DataError:
            continue
        if state.get("command_name") == command and state.get("state") == "finished" and task in (None, state.get("task")):
            found.append((str(state.get("ended", "")), path.stat().st_mtime_ns, path.parent))
    if not found:
        what = f"{command} {task}" if task else command
        raise MissingError(f"There is no finished run of `bertkit {what}` under {root}/.", hint=hint)
    return max(found)[2]


def newest_pretraining(hint: str) -> Path:
    """The newest finished pretraining under ``runs/``, which is said.

    Raises:
        MissingError: There is none (exit 4); ``hint`` says what to do.
    """
    found = newest_run("pretrain", hint=hint)
    say("model", f"The model is the newest finished pretraining: {found}.")
    return found
