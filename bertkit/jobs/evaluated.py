"""What an evaluation leaves: figures and their details on the page, ``evals/TASK-PART/`` on the disk, and the gates' verdicts.

In come parts with their predictions; out goes the outcome of the command.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.jobs.console import Console, to_json
from bertkit.jobs.eval_page import print_detail
from bertkit.jobs.gates import Gates
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import write_text
from bertkit.jobs.pretrained import evals_place
from bertkit.jobs.scoring import figures_of
from bertkit.jobs.verdicts import judged
from bertkit.labelled.rows import texts_fingerprint
from bertkit.metrics.added import AddedMetric
from bertkit.settings.commands import EvalSettings
from bertkit.tasks.added_figures import all_scores
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.data import TaskPart
from bertkit.tasks.detail import Detail
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.predictions import write_predictions, write_records
from bertkit.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPart:
    """A part with its predictions, one a row, and, of a model, what the settings put out of its reach."""

    part: TaskPart
    predictions: list[Prediction]
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was scored: a task with its kind and labels, by a model or (None) a file of predictions, with metrics of others."""

    settings: EvalSettings
    task: Task
    kind: Kind
    labels: Labels
    model: Path | None
    added: Sequence[AddedMetric] = ()

    def finish(self, scored: Mapping[str, ScoredPart], gates: Gates | None, console: Console) -> Outcome:
        """Scores, writes and prints everything; then the gates.

        Raises:
            GateError: One is not met (exit 7).
        """
        scores = {}
        for name, each in scored.items():
            scores[name] = all_scores(self.kind, each.predictions, each.part.rows, self.task, self.labels, self.added)
        figures = figures_of(scores, self.task)
        console.metrics(figures)
        told = {}
        for name, each in scored.items():
            detail = self.kind.detail(each.predictions, each.part.rows, self.labels)
            facts = detail.facts() | ({} if each.coverage is None else {"coverage": each.coverage.facts()})
            self._write(each, figures_of({name: scores[name]}, self.task) | facts, detail)
            print_detail(console, name, detail)
            told[name] = {"output": str(self.place(name)), **facts}
        for name in scored:
            console.say(f"Written to {self.place(name)}")
        outcome = Outcome(
            output=self.place(next(iter(scored))),
            metrics=figures,
            extra={"model": None if self.model is None else str(self.model), "parts": told},
        )
        if gates is None:
            return outcome
        verdicts = gates.verdicts(figures, {name: each.predictions for name, each in scored.items()})
        junit, seconds = self.settings.gates.junit, time.monotonic() - gates.started
        return judged(verdicts, outcome, self.settings.task, junit, console, seconds=seconds)

    def place(self, part: str) -> Path:
        """``evals/TASK-PART`` in the run, or below ``runs/`` where the model is no run of bertkit's."""
        scored = self.model.name if self.model is not None else Path(str(self.settings.predictions)).stem
        return evals_place(self.model, f"{self.task.name}-{part}", scored=scored, output=self.settings.output)

    def _write(self, scored: ScoredPart, figures: dict[str, Any], detail: Detail) -> None:
        part, predictions, where = scored.part, scored.predictions, self.place(scored.part.name)
        where.mkdir(parents=True, exist_ok=True)
        official = []
        if self.model is not None:
            official = self.kind.write_official(where, predictions, part.rows, self.task, part.name)
        write_predictions(where / "predictions.jsonl", predictions)
        write_records(where / "errors.jsonl", detail.records())
        about = {
            "task": self.task.name,
            "part": part.name,
            "data": part.source,
            "texts": texts_fingerprint(part.rows),
            "model": self.settings.predictions if self.model is None else str(self.model),
            "primary": self.task.primary,
            "files": sorted({"metrics.json", "predictions.jsonl", "errors.jsonl", *(path.name for path in official)}),
        }
        write_text(where / "metrics.json", to_json(figures | about, indent=2) + "\n")
