"""Checkpoints that are whole or not there: ``checkpoints/checkpoint-N`` below a run folder.

    checkpoint-1000/
      model.safetensors config.json …   the model, by the caller's function: any Hugging Face tool loads it
      training_state.safetensors        Adam's moments under the same names and shapes
      state.json                        where the run stands, and what it stood on
      manifest.json                     size and SHA-256 of every file above; written last

A checkpoint is written under a name that starts with a dot, flushed to the disk, renamed, read once more, and only then
is an older one removed: never the newest whole one, never the best, never a folder of another run. No pickle anywhere.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bertkit.errors import CheckpointError, FolderError
from bertkit.notices import say
from bertkit.training import files
from bertkit.training.optimizer_state import FromFile, ToFile, read_moments, same_names, write_moments
from bertkit.training.report import TrainState

FORMAT = 1
MANIFEST, STATE, MOMENTS = "manifest.json", "state.json", "training_state.safetensors"
_NAME = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint, as :func:`open_checkpoint` found it."""

    path: Path
    step: int
    run: str
    state: dict[str, Any]

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer, from_file: FromFile = same_names) -> TrainState:
        """Gives the optimizer its memory back and returns where the run stands; the weights are the caller's to load."""
        read_moments(self.path / MOMENTS, model, optimizer, self.state["optimizer_steps"], from_file)
        known = {each.name for each in fields(TrainState)}
        return TrainState(**{name: value for name, value in self.state["train"].items() if name in known})

    @property
    def extra(self) -> dict[str, Any]:
        """What the caller of :meth:`Checkpoints.save` put beside it (fingerprints, best metric, machine, scaler …)."""
        return dict(self.state["extra"])


@dataclass(frozen=True, slots=True)
class Rejected:
    """A folder that is named like a checkpoint and is none, and why."""

    path: Path
    reason: str


def verify(path: Path, *, contents: bool = True, weights_alone: bool = False) -> dict[str, Any]:
    """Reads a checkpoint's manifest and compares every file with it (sizes alone without ``contents``).

    With ``weights_alone`` the state of the training may be missing: whoever starts afresh from the weights needs none.

    Raises:
        CheckpointError: A file is missing, cut or changed; it is named.
    """
    manifest = _json(path, MANIFEST)
    if manifest.get("format") != FORMAT or not isinstance(manifest.get("files"), dict):
        raise CheckpointError(f"{MANIFEST} is of format {manifest.get('format')!r}, not {FORMAT}.", where=str(path / MANIFEST))
    for name, fact in manifest["files"].items():
        if weights_alone and name in (MOMENTS, STATE):
            continue
        file = path / name
        if not file.is_file():
            hint = f"To start afresh from its weights: --init-from {path} with a new --output." if name == MOMENTS else None
            raise CheckpointError(f"{name} is missing.", where=str(file), hint=hint)
        size = file.stat().st_size
        if size != fact["size"]:
            found = "is empty" if size == 0 else f"has {size:,}"
            raise CheckpointError(f"{name} {found} of {fact['size']:,} bytes.", where=str(file))
        if contents and files.digest(file) != fact["sha256"]:
            raise CheckpointError(f"{name} has changed since it was written (SHA-256).", where=str(file))
    return manifest


def open_checkpoint(path: Path) -> Checkpoint:
    """Opens a checkpoint after verifying all of it.

    Raises:
        CheckpointError: It is not whole.
    """
    manifest = verify(path)
    return Checkpoint(path=path, step=int(manifest["step"]), run=str(manifest["run"]), state=_json(path, STATE))


def newest_verified(folder: Path) -> tuple[Checkpoint | None, list[Rejected]]:
    """The newest whole checkpoint below ``folder``, and the newer ones that are not whole, newest first."""
    rejected: list[Rejected] = []
    for _, path in sorted(_found(folder).items(), reverse=True):
        try:
            return open_checkpoint(path), rejected
        except CheckpointError as error:
            rejected.append(Rejected(path, str(error.message)))
    return None, rejected


def resume_point(folder: Path) -> Checkpoint | None:
    """Where a run goes on: its newest whole checkpoint; None where it has not written any yet. Says what it passes over.

    Raises:
        CheckpointError: There are checkpoints and none is whole; the newest one's damage is named.
    """
    _put_back(folder)
    checkpoint, rejected = newest_verified(folder)
    if checkpoint is None and rejected:
        try:
            open_checkpoint(rejected[0].path)
        except CheckpointError as error:
            hint = error.hint or "No checkpoint of this run is whole: put the files back, or start anew with --overwrite."
            raise CheckpointError(error.message, where=error.where, hint=hint) from None
    for each in rejected:
        say("checkpoint", f"{each.path.name} is not whole: {each.reason} The run goes on from the one before.")
    return checkpoint


def space_needed(model: nn.Module) -> int:
    """Bytes of one checkpoint: weights and two moments in float32, and a little for the rest."""
    return 12 * sum(each.numel() for each in model.parameters()) + 4 * 2**20


class Checkpoints:
    """The checkpoints of one run. One process alone uses it (``Peers.main_only``).

    Args:
        folder: ``runs/NAME/checkpoints``; made when the first one is saved.
        run: A name of this run that no other has; only folders that carry it are ever removed.
        keep: So many of the newest stay.
        best: Step of the best checkpoint so far, which stays too.
    """

    def __init__(self, folder: Path, *, run: str, keep: int = 2, best: int | None = None) -> None:
        self.folder = folder
        self.run = run
        self.keep = max(1, keep)
        self.best = best

    def path(self, step: int) -> Path:
        """Where the checkpoint of ``step`` lies."""
        return self.folder / f"checkpoint-{step}"

    def save(
        self,
        state: TrainState,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        write_model: Callable[[Path], None],
        extra: Mapping[str, Any] | None = None,
        to_file: ToFile = same_names,
        best: bool = False,
    ) -> Path:
        """Writes the checkpoint of ``state.step`` and removes what is no longer to be kept.

        Args:
            state: Where the run stands.
            model: Names the optimizer's parameters.
            optimizer: Its moments are written.
            write_model: Writes the model's files into the folder that it is given.
            extra: Anything JSON can hold that a resume wants to see: fingerprints, machine, best metric, scaler.
            to_file: From the model's names and shapes to its file's.
            best: This is the best so far.

        Raises:
            ResourceError: Disk full, quota or I/O error; the older ones are untouched.
            FolderError: A checkpoint of another run stands there.
        """
        needed = space_needed(model)
        final = self.path(state.step)
        writing = self.folder / f".{final.name}.writing"
        with files.saving(final, needed):
            self._clear()
            writing.mkdir(parents=True)
            try:
                write_model(writing)
                steps = write_moments(writing / MOMENTS, model, optimizer, to_file)
                content = {"format": FORMAT, "train": asdict(state), "optimizer_steps": steps, "extra": dict(extra or {})}
                _write_json(writing / STATE, content)
                self._seal(writing, state.step)
                self._make_way(final)
                writing.rename(final)
                files.sync(self.folder)
            except BaseException:
                shutil.rmtree(writing, ignore_errors=True)
                _put_back(self.folder)
                raise
        verify(final)
        shutil.rmtree(_replaced(final), ignore_errors=True)
        if best:
            self.best = state.step
        self.prune(newest=state.step)
        return final

    def prune(self, newest: int | None = None) -> list[Path]:
        """Removes this run's older checkpoints but the ``keep`` newest, the best and the newest whole one."""
        whole = [step for step, path in sorted(_found(self.folder).items()) if self._is_ours(path)]
        if newest is None:
            checkpoint, _ = newest_verified(self.folder)
            newest = None if checkpoint is None else checkpoint.step
        kept = {*whole[-self.keep :], self.best, newest}
        removed = [self.path(step) for step in whole if step not in kept] if newest is not None else []
        for path in removed:
            # Renamed first: a kill in between leaves no half of it under its name.
            gone = path.with_name(f".{path.name}.removing")
            path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
        return removed

    def _seal(self, folder: Path, step: int) -> None:
        """Flushes what is there, and writes the manifest of it."""
        files.sync_all(folder)
        facts = {
            path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": files.digest(path)}
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        _write_json(folder / MANIFEST, {"format": FORMAT, "run": self.run, "step": step, "files": facts})
        files.sync(folder / MANIFEST)
        files.sync(folder)

    def _make_way(self, final: Path) -> None:
        """An older checkpoint of this step: ours and whole is replaced, a damaged one is set aside, another run's refused."""
        if not final.exists():
            return
        if self._is_ours(final):
            final.rename(_replaced(final))
            return
        try:
            verify(final, contents=False)
        except CheckpointError:
            aside = next(p for n in range(1, 10_000) if not (p := final.with_name(f"{final.name}.damaged-{n}")).exists())
            final.rename(aside)
            say("checkpoint", f"The damaged {final.name} is now {aside.name}.")
            return
        raise FolderError(f"{final.name} belongs to another run.", where=str(final), hint="Name another --output-dir.")

    def _is_ours(self, path: Path) -> bool:
        try:
            return bool(verify(path, contents=False)["run"] == self.run)
        except CheckpointError:
            return False

    def _clear(self) -> None:
        """Removes what a killed process left half-written or half-removed."""
        _put_back(self.folder)
        if self.folder.is_dir():
            for path in self.folder.glob(".checkpoint-*"):
                if path.suffix in (".writing", ".removing"):
                    shutil.rmtree(path, ignore_errors=True)


def _replaced(path: Path) -> Path:
    """Where a whole checkpoint waits while a new one of the same step takes its name."""
    return path.with_name(f".{path.name}.replaced")


def _put_back(folder: Path) -> None:
    """After a kill between the two renames of a replacement: the old one gets its name again."""
    if folder.is_dir():
        for path in folder.glob(".checkpoint-*.replaced"):
            final = folder / path.name.removeprefix(".").removesuffix(".replaced")
            if final.exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.rename(final)


def _found(folder: Path) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    names = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir())
    return {int(match[1]): path for match, path in names if match}


def _json(path: Path, name: str) -> dict[str, Any]:
    file = path / name
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{name} is missing.", where=str(file)) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{name} cannot be read: {error}", where=str(file)) from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{name} holds no JSON object.", where=str(file))
    return found


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")
