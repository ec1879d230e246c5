"""What a training says while it runs: one line of progress, log.jsonl, the forecast after five steps, trackers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertkit.batches.phases import Phase
from bertkit.batches.source import Position
from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.intervals import Due
from bertkit.training.budget import Budget
from bertkit.training.report import StepReport
from bertkit.training.trackers import Trackers

FORECAST_AFTER = 5  # steps
LONG = 12 * 3600.0  # seconds above which a smaller command is offered
_MEMORY = 0.9  # of the smoothed figures in the progress line


def clock(seconds: float) -> str:
    """``75`` as ``1:15``, ``3661`` as ``1:01:01``."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


@dataclass(kw_only=True)
class TrainingReport:
    """Takes in step reports and tells the person, the log and the trackers.

    Attributes:
        console: The streams.
        folder: Holds log.jsonl; the first process writes it.
        budget: The end of the run, for the forecast.
        trackers: TensorBoard and the like, or None.
        log: When the log is due.
        writes: Is this the process that writes?
        smaller: A smaller command, offered where the run would take above 12 hours.
        phases: Lengths and shares of the phases; none: there is one.
        phase: The one that is on, from 0.
    """

    console: Console
    folder: RunFolder
    budget: Budget
    trackers: Trackers | None
    log: Due
    writes: bool
    smaller: str
    phases: Sequence[Phase] = ()
    phase: int = 0
    _smooth: dict[str, float] = field(default_factory=dict)
    _seconds: list[float] = field(default_factory=list)

    def step(self, report: StepReport, update: Callable[..., None]) -> None:
        """One step is done."""
        for name, value in {
            **{n: p.mean for n, p in report.parts.items()},
            "": report.tokens / max(report.seconds, 1e-9),
        }.items():
            self._smooth[name] = _MEMORY * self._smooth.get(name, value) + (1 - _MEMORY) * value
        left = self._left(report)
        update(*self._done(report), note=self._line(report, left))
        if len(self._seconds) < FORECAST_AFTER:
            self._seconds.append(report.seconds)
            if len(self._seconds) == FORECAST_AFTER:
                self._forecast(report)
        due = self.log.now(report.step, report.total_seconds)
        if due or not report.applied:  # every step that was left out used up a batch: which one must be known
            self.record({**self._of_phase(), **report.values()}, report.step)

    def change(self, step: int, at: Position, phase: int) -> None:
        """The next phase begins behind optimizer step ``step``, with the batch at ``at``."""
        self.phase = phase
        self.record({"step": step, "epoch": at.epoch, "batch": at.batch, **self._of_phase()}, step)
        self.console.say(f"Step {step:,}: sequences are of up to {self.phases[phase].max_length} tokens from here on.")

    def _of_phase(self) -> dict[str, Any]:
        """What a line of the log says of the phase: its number, from 1, and its length."""
        return {"phase": self.phase + 1, "max_length": self.phases[self.phase].max_length} if self.phases else {}

    def record(self, values: Mapping[str, Any], step: int) -> None:
        """One line of log.jsonl, and the trackers."""
        if self.writes:
            self.folder.log(values)
        if self.trackers is not None:
            self.trackers.log(values, step)

    def _done(self, report: StepReport) -> tuple[int, int]:
        """Progress in steps, or in seconds where the clock ends the run."""
        if self.budget.steps is not None:
            return report.step, self.budget.steps
        assert self.budget.seconds is not None
        return round(report.total_seconds), round(self.budget.seconds)

    def _left(self, report: StepReport) -> float:
        """Seconds to go, by the pace so far."""
        paces = []
        if self.budget.steps is not None:
            pace = report.tokens / max(self._smooth[""], 1e-9)
            paces.append((self.budget.steps - report.step) * pace)
        if self.budget.seconds is not None:
            paces.append(self.budget.seconds - report.total_seconds)
        return min(paces)

    def _line(self, report: StepReport, left: float) -> str:
        losses = "  ".join(f"{name} {self._smooth[name]:.3f}" for name in report.parts)
        step = "" if self.budget.steps is not None else f"step {report.step}  "
        length = f"L {self.phases[self.phase].max_length}  " if self.phases else ""
        return f"{step}{length}{losses}  {clock(left)} left  {self._smooth['']:,.0f} tokens/s  lr {report.rate:.2e}"

    def _forecast(self, report: StepReport) -> None:
        pace = sorted(self._seconds)[len(self._seconds) // 2]
        ends = [self.budget.seconds] if self.budget.seconds is not None else []
        if self.budget.steps is not None:
            ends.append(report.total_seconds + (self.budget.steps - report.step) * pace)
        whole = min(ends)
        self.console.say(f"The whole training will take about {clock(whole)} ({pace:.2f} s a step).")
        if whole > LONG:
            self.console.say(f"That is above 12 hours. A smaller run: {self.smaller}")
