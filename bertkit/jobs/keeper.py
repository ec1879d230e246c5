"""What a training keeps: checkpoints on its way, and at its end the finished model in the run folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from bertkit.errors import CheckpointError
from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.start import CHECKPOINTS
from bertkit.jobs.training_job import Figures, TrainingJob
from bertkit.notices import say
from bertkit.training.budget import Clock
from bertkit.training.checkpoint import MANIFEST, MOMENTS, STATE, Checkpoints, space_needed, verify
from bertkit.training.files import check_space, sync
from bertkit.training.peers import Peers
from bertkit.training.report import TrainState

_BYTES_PER_SECOND = 100e6  # a first guess of how long saving takes, until it has been seen


@dataclass(kw_only=True)
class Keeper:
    """The checkpoints of one training, written by the first process, and its finished model.

    Attributes:
        job: Writes the model's files.
        model: Prepared; names the optimizer's parameters.
        optimizer: Its moments are kept.
        folder: The run folder.
        peers: The processes of the run.
        clock: Is told how long saving takes.
        console: Told which model is the finished one, where that is not the last.
        run: A name of this run that no other has.
        keep: So many of the newest checkpoints stay.
        best: Step of the best one so far, which stays too.
        saved_at: Step of the newest one.
    """

    job: TrainingJob
    model: nn.Module
    optimizer: torch.optim.Optimizer
    folder: RunFolder
    peers: Peers
    clock: Clock
    console: Console
    run: str
    keep: int
    best: int | None = None
    saved_at: int = -1
    checkpoints: Checkpoints = field(init=False)

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.folder.path / CHECKPOINTS, run=self.run, keep=self.keep, best=self.best)

    def begin(self) -> None:
        """Is there room on the disk? And how long will saving take, at a guess?

        Raises:
            ResourceError: There is none (exit 5).
        """
        needed = space_needed(self.model)
        self.peers.main_only(lambda: check_space(self.folder.path, 2 * needed))
        self.clock.expect("saving", 1.0 + 2 * needed / _BYTES_PER_SECOND)

    def save(self, state: TrainState, extra: Mapping[str, Any], *, best: bool = False) -> None:
        """Writes a checkpoint of where the training stands, with ``extra`` beside it; ``best``: the best model so far."""
        state.seconds = self.clock.seconds()  # what was validated since the step counts too
        best_step = state.step if best else self.checkpoints.best

        def save() -> None:
            self.checkpoints.save(
                state,
                self.model,
                self.optimizer,
                write_model=self.job.write_model,
                extra={**extra, "best_step": best_step},
                to_file=self.job.model.moments_to_file,
                best=best,
            )

        with self.clock.during("saving"):
            self.peers.main_only(save)
        self.checkpoints.best = best_step
        self.saved_at = state.step

    def leave(self, step: int, *, the_best: bool) -> Figures | None:
        """Copies the model of ``step``, or the best one, into the run folder; by the first process.

        Returns:
            The best one's figures, where it is another than the last.
        """
        chosen = self._chosen(step) if the_best else step
        where = self.checkpoints.path(chosen)
        if chosen != step:
            self.console.say(f"The best model is the one of step {chosen:,}: the run folder holds it.")
        for file in sorted(where.iterdir()):
            if file.name not in (MANIFEST, STATE, MOMENTS):
                self.folder.made(file.name)
                draft = self.folder.inside(f".{file.name}.tmp")
                shutil.copyfile(file, draft)
                sync(draft)
                draft.replace(self.folder.inside(file.name))
        if chosen == step:
            return None
        state = json.loads((where / STATE).read_text(encoding="utf-8"))
        return dict(state["extra"].get("figures") or {}) or None

    def _chosen(self, step: int) -> int:
        """The step of the best model, where there is one and it is still whole."""
        best = self.checkpoints.best
        if best in (None, step):
            return step
        assert best is not None
        try:
            verify(self.checkpoints.path(best))
        except CheckpointError as error:
            say("checkpoint", f"The best model, of step {best:,}, is lost ({error.message}): the run folder holds the last one.")
            return step
        return best
