"""Small writings and readings of a run folder: whole files, bertkit.json, paths that stay inside, what a run made."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from bertkit.errors import DataError, FolderError

STATE = "bertkit.json"


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


def read_figures(folder: Path) -> dict[str, Any]:
    """The ``metrics.json`` of a run or an evaluation; empty where there is none that can be read."""
    try:
        found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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
    sections = ("asked", "resolved", "fingerprints")
    if (
        not isinstance(state, dict)
        or any(not isinstance(state.get(name) or {}, dict) for name in sections)
        or not isinstance(state.get("made") or [], list)
    ):
        raise DataError("This file is not a run's.", where=str(path), hint="Choose another --output.")
    return state


def file_in_the_way(folder: Path) -> Path | None:
    """The file that is there where the folder, or one above it, would have to be; None where nothing hinders."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    return None if there.is_dir() else there


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


def remove_made(path: Path, state: Mapping[str, Any]) -> None:
    """Removes what ``bertkit.json`` says that a run made, and nothing else; links are removed, never followed.

    Of a folder that a run made (``checkpoints``) only what bears a run's names goes: people keep notes in odd places.
    """
    names = [str(name) for name in state.get("made") or []]
    for name in [*names, STATE]:
        target = safe_join(path, name)
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.is_dir():
            clear(target)
    parents = {parent for name in names for parent in safe_join(path, name).parents if parent != path}
    for parent in sorted((p for p in parents if p.is_relative_to(path)), reverse=True):  # the deepest first
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()


def remove_evals(path: Path) -> None:
    """Removes what ``bertkit eval`` wrote into a run folder, and nothing else: the model that it speaks of is gone."""
    evals = path / "evals"
    if evals.is_symlink() or not evals.is_dir():
        return
    for record in sorted(evals.glob("*/metrics.json")):
        try:
            names = json.loads(record.read_text(encoding="utf-8"))["files"]
        except (ValueError, OSError, KeyError, TypeError):
            continue
        if record.parent.is_symlink() or not isinstance(names, list):
            continue
        for name in names:
            file = record.parent / PurePosixPath(str(name)).name
            if file.is_symlink() or file.is_file():
                file.unlink()
        if not any(record.parent.iterdir()):
            record.parent.rmdir()
    if not any(evals.iterdir()):
        evals.rmdir()


def clear(folder: Path) -> None:
    """Removes the checkpoints in a folder, and what runs in it (the trials of a sweep) made; then it, where it is empty."""
    for child in folder.iterdir():
        if child.is_symlink() or not child.is_dir():
            continue
        if re.fullmatch(r"\.?checkpoint-[0-9]+.*", child.name):
            shutil.rmtree(child)
        elif (state := _state_or_none(child)) is not None:
            remove_made(child, state)
            remove_evals(child)
            if not any_inside(child):
                child.rmdir()
    if not any_inside(folder):
        folder.rmdir()


def any_inside(folder: Path) -> bool:
    """Is this a folder with anything in it?"""
    return folder.is_dir() and any(folder.iterdir())


def _state_or_none(folder: Path) -> dict[str, Any] | None:
    try:
        return read_state(folder)
    except DataError:  # somebody's, or damaged: not ours to remove
        return None
