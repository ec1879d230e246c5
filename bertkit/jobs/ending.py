"""How a training ends: what its folder then holds, and what a person is told; the same for a run that had ended before."""

from __future__ import annotations

import json
from typing import Any

from bertkit.jobs.card import write_card
from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.jobs.training_job import Figures
from bertkit.notices import say


def leave(figures: Figures, folder: RunFolder, settings: Any, machine: Machine) -> Figures:
    """Writes the figures, the model card and the state of a finished training; returns the figures."""

    def write() -> None:
        folder.write_metrics(figures)
        write_card(folder, settings, figures)
        folder.finish("finished")

    machine.peers.main_only(write)
    return figures


def told(figures: Figures, folder: RunFolder, console: Console) -> Outcome:
    """Prints what a finished training came to."""
    console.metrics(figures)
    console.say(f"The model is in {folder.path}")
    if not figures:
        say("metrics", "There are no figures.")
    return Outcome(output=folder.path, metrics=figures)


def already_finished(folder: RunFolder, console: Console) -> Outcome:
    """The same command again, after it ended: nothing to do."""
    console.say(f"Already finished: {folder.path}. --overwrite starts anew.")
    figures = figures_in(folder)
    console.metrics(figures)
    return Outcome(state="already finished", output=folder.path, metrics=figures)


def figures_in(folder: RunFolder) -> Figures:
    """What a finished run wrote into metrics.json."""
    path = folder.path / "metrics.json"
    found: Figures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found
