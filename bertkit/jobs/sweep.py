"""A sweep in a run folder: its trials one after another, each a run of its own below it, and the best of them kept.

    runs/NAME/
      config.json model.safetensors …   the best trial's model: ``eval``, ``predict`` and from_pretrained take it from here
      metrics.json                      its figures, and mean and standard deviation over the seeds of its combination
      sweep.json                        every trial and every combination
      trials/lr-2e-05-seed-1/           a whole run, as if it had been asked for alone

Started again it goes on: trials that are finished are read, the one that was stopped resumes. The checkpoints of a finished
trial go (unless ``--keep-checkpoints`` was given): its model lies beside them, and a grid's would fill a disk.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertkit.errors import DivergedError
from bertkit.jobs.console import Console, to_json
from bertkit.jobs.ending import figures_in, leave
from bertkit.jobs.finetuning import Finetuning
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.material import Material
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import clear, read_state
from bertkit.jobs.start import CHECKPOINTS, TRIALS, Machine, check_inputs, held
from bertkit.jobs.swept import Swept, Tried, show
from bertkit.jobs.training_job import Figures, same_identity
from bertkit.notices import say
from bertkit.settings.commands import FinetuneSettings
from bertkit.settings.compare import with_values
from bertkit.settings.sweep import Trial, settings_of, trials
from bertkit.tasks.constant import constant_score
from bertkit.training.files import sync

RECORD = "sweep.json"
_NO_MODEL = ("settings.yaml", "log.jsonl", "metrics.json", "README.md", CHECKPOINTS)


class Sweep:
    """One sweep, in its claimed folder.

    Args:
        settings: As asked for.
        console: The streams.
        machine: Device and processes.
        folder: Claimed, and not finished.
        material: What all trials are made of.
        facts: For each trial's bertkit.json.
    """

    def __init__(
        self,
        settings: FinetuneSettings,
        console: Console,
        machine: Machine,
        folder: RunFolder,
        material: Material,
        facts: Mapping[str, Any],
    ) -> None:
        self.settings, self.console, self.machine = settings, console, machine
        self.folder, self.material, self.facts = folder, material, facts
        self.peers = machine.peers

    def run(self) -> Outcome:
        """Runs what is left, and leaves the folder finished.

        Raises:
            DivergedError: Every trial diverged (exit 6).
        """
        planned = trials(self.settings.sweep)
        if self.peers.main:
            self.folder.made(TRIALS)
        tried = []
        for number, trial in enumerate(planned, start=1):
            self.console.say(f"Trial {number} of {len(planned)}: {trial.name}")
            tried.append(self._trial(trial))
        if all(each.figures is None for each in tried):
            hint = "Try lower learning rates, or --precision fp32."
            raise DivergedError(f"All {len(tried)} trials diverged.", where=str(self.folder.path), hint=hint)
        return self._leave(Swept(tried=tuple(tried), task=self.material.task, constant=self._constant()))

    def _path(self, trial: Trial) -> Path:
        return self.folder.path / TRIALS / trial.name

    def _trial(self, trial: Trial) -> Tried:
        """Trains one, or reads what it came to."""
        path = self._path(trial)
        if self.peers.main_only(lambda: _diverged(path)):
            self.console.say(f"{trial.name} diverged.")
            return Tried(trial=trial, output=path, figures=None)
        settings = settings_of(self.settings, trial, str(path))
        machine = Machine.of(settings.device, report_to=settings.run.report_to)  # its own: a loss scaler remembers
        name = self.settings.task
        try:
            with held(settings, self.console, self.peers, command="finetune", name=name, facts=self.facts) as folder:
                if folder.situation == "finished":
                    figures = self._finished(settings, folder)
                else:
                    before = machine.as_before(folder, settings)
                    figures = Finetuning(settings, self.console, before, folder, self.material).trained()
                kept = "keep_checkpoints" in settings.run.model_fields_set
                if self.peers.main and not kept and (path / CHECKPOINTS).is_dir():
                    clear(path / CHECKPOINTS)
        except DivergedError as error:
            say("diverged", f"{trial.name} diverged: {error.message}")
            return Tried(trial=trial, output=path, figures=None)
        return Tried(trial=trial, output=path, figures=figures)

    def _finished(self, settings: FinetuneSettings, folder: RunFolder) -> Figures:
        """What a finished trial came to.

        Raises:
            FolderError: It had other data than today's (exit 2).
        """
        check_inputs(folder, self.facts.get("input_bytes") or {})
        identity = self.material.identity(self.material.rows(with_values(settings, folder.state["resolved"])))
        same_identity(folder.state.get("identity") or {}, identity, folder.path)
        self.console.say(f"Already finished: {folder.path}.")
        return figures_in(folder)

    def _constant(self) -> float:
        """What one answer for every row scores on the part that decides."""
        material = self.material
        rows = material.rows(self.settings)  # read by now
        decides = next(iter(rows.validation.values()))
        return constant_score(material.kind, decides.part.rows, material.task, rows.labels)

    def _leave(self, swept: Swept) -> Outcome:
        """Makes the best trial's model the folder's, and writes and tells what the sweep came to."""
        best = swept.best

        def take() -> dict[str, Any]:
            state = read_state(best.output) or {}
            for name in state.get("made") or []:
                if name not in _NO_MODEL:
                    self._take(best.output / name)
            return dict(state.get("resolved") or {})

        became = self.peers.main_only(take)
        settings = with_values(self.settings, {key: value for key, value in became.items() if not key.startswith("sweep.")})
        record = swept.record()
        if self.peers.main:
            self.folder.resolve(settings)
            self.folder.write(RECORD, to_json(record, indent=2) + "\n")
        figures = leave(swept.figures(), self.folder, settings, self.machine)
        swept.say_what_did_not_learn()
        show(record, self.console)
        self.console.say(f"The model of {best.trial.name} is in {self.folder.path}")
        return Outcome(output=self.folder.path, metrics=figures, extra={"sweep": record})

    def _take(self, file: Path) -> None:
        """Copies a file of a trial into the folder, whole or not at all."""
        self.folder.made(file.name)
        draft = self.folder.inside(f".{file.name}.tmp")
        shutil.copyfile(file, draft)
        sync(draft)
        draft.replace(self.folder.inside(file.name))


def finished_sweep(folder: RunFolder, console: Console) -> Outcome:
    """The same command again, after it ended: nothing to do."""
    console.say(f"Already finished: {folder.path}. --overwrite starts anew.")
    path = folder.path / RECORD
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if record is not None:
        show(record, console)
    return Outcome(state="already finished", output=folder.path, metrics=figures_in(folder), extra={"sweep": record})


def _diverged(path: Path) -> bool:
    """Has an earlier start found that this trial comes to nothing?"""
    state = read_state(path) or {}
    return state.get("state") == "failed" and (state.get("error") or {}).get("kind") == DivergedError.kind
