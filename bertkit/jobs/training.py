"""The course of a training, the same for pretraining and fine-tuning: resume, phases, steps, validation, the end.

A job brings a model, a source of batches and a way to validate; this file decides when each of them is asked, and leaves
the mathematics to :mod:`bertkit.training` and what is kept on the disk to :mod:`bertkit.jobs.keeper`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from bertkit.batches.loader import iterate
from bertkit.batches.phases import PhasedSource
from bertkit.batches.source import Position
from bertkit.jobs.console import Console, figure_rows
from bertkit.jobs.fitting import cut_to, fitted, half, smaller
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.intervals import Due
from bertkit.jobs.keeper import Keeper
from bertkit.jobs.memory import Forecast, forecast
from bertkit.jobs.report import TrainingReport
from bertkit.jobs.start import CHECKPOINTS, Machine
from bertkit.jobs.training_job import Figures, TrainingJob
from bertkit.jobs.validated import Validated
from bertkit.notices import say
from bertkit.settings.commands import Training
from bertkit.tasks.added_figures import PREFIX
from bertkit.training.budget import Budget, Clock
from bertkit.training.checkpoint import Checkpoint
from bertkit.training.compiling import compile_layers
from bertkit.training.device import became, machine_differences, machine_facts, restore_scaler, scaler_state
from bertkit.training.health import Health
from bertkit.training.loop import Loop, OutOfMemory, prepare
from bertkit.training.muon import products_type
from bertkit.training.optimizer import make_optimizer
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.trackers import Trackers

_SHOWN = 8  # figures of a validation on its line; tags and questions have dozens


@dataclass(kw_only=True)
class Course:
    """One training from its start, or its last checkpoint, to its end. Make it, then :meth:`run` it.

    Attributes:
        job: What is trained.
        settings: Resolved.
        console: The streams, and the wish to stop.
        folder: The run folder.
        machine: Device and processes.
        checkpoint: Where to go on from, or None.
    """

    job: TrainingJob
    settings: Training
    console: Console
    folder: RunFolder
    machine: Machine
    checkpoint: Checkpoint | None

    def __post_init__(self) -> None:
        accelerator, peers, settings = self.machine.accelerator, self.machine.peers, self.settings
        self.model = prepare(self.job.model, accelerator, peers)
        if self.machine.compile == "on":
            compile_layers(self.model)
        products = products_type(became(accelerator), accelerator.device)
        self.optimizer = make_optimizer(self.model, settings.optimizer, self.job.rate_scale, products=products)
        self.state = TrainState()
        self.health = Health(reference=self.job.reference)
        self.validated = Validated(primary=self.job.primary, lower_is_better=self.job.lower_is_better, patience=self.job.patience)
        self.source = PhasedSource(self.job.sources)
        run = str(self.folder.state.get("run") or peers.share(uuid.uuid4().hex))
        if self.checkpoint is not None:
            self._restore(self.checkpoint)
        self.budget = self._budget()
        if peers.main:
            self.folder.record(run=run, identity=dict(self.job.identity), planned_steps=self.budget.steps)
        self.ends = self.budget.parts([phase.share for phase in self.job.phases] or [1.0])
        self.schedule = Schedule(
            peak=settings.optimizer.learning_rate,
            shape=settings.schedule.shape,
            warmup=settings.schedule.warmup,
            steps=self.budget.steps,
        )
        self.clock = Clock(self.state.seconds)
        self.keeper = Keeper(
            job=self.job,
            model=self.model,
            optimizer=self.optimizer,
            folder=self.folder,
            peers=peers,
            clock=self.clock,
            console=self.console,
            run=run,
            keep=settings.run.keep_checkpoints,
            best=None if self.checkpoint is None else self.checkpoint.extra.get("best_step"),
            saved_at=-1 if self.checkpoint is None else self.state.step,
        )
        self.save_due = Due.of(settings.run.save_every, self.state.seconds)
        self.eval_due = Due.of(self._eval_interval(), self.state.seconds)

    def _budget(self) -> Budget:
        """The end of the run. What its epochs have in steps was counted when it began: their plans are not drawn again."""
        wanted = self.settings.budget
        planned = None if self.checkpoint is None else self.folder.state.get("planned_steps")
        return Budget.of(
            steps=wanted.steps if planned is None else planned,
            epochs=wanted.epochs if planned is None else None,
            minutes=wanted.max_minutes,
            epoch_steps=self.job.sources[0].steps,
        )

    @property
    def done(self) -> Position:
        """The batches that have been used."""
        return Position(self.state.epoch, self.state.batch)

    def run(self) -> Figures:
        """Trains to the end and leaves the finished model in the run folder; returns its figures.

        Raises:
            Stopped: A signal came in; a checkpoint was written (exit 130 or 143).
            DivergedError: The loss stopped being a number; the last good checkpoint stays (exit 6).
        """
        self._begin()
        try:
            with self.console.stop.deferred(), self.console.progress("Training") as update:
                self._train(update)
                better = not self.state.signal and self.validated.at != self.state.step and self._validate()
                if self.state.signal:
                    self._stop()
                if self.keeper.saved_at != self.state.step or better:
                    self._save(best=better)
                the_best = self.settings.run.keep_best
                best = self.machine.peers.main_only(lambda: self.keeper.leave(self.state.step, the_best=the_best))
        finally:
            if self.report.trackers is not None:
                self.report.trackers.close()
        state = self.state
        return (best or self.validated.figures) | {
            "steps": state.step,
            "tokens": state.tokens,
            "train_seconds": round(state.seconds, 1),
        }

    def _begin(self) -> None:
        peers, run = self.machine.peers, self.settings.run
        self.source = fitted(self.source, self._forecast(), self.machine)
        self.keeper.begin()
        for number in self.budget.without_steps(self.ends):
            say(
                "empty-phase",
                f"The phase {self.job.phases[number]} gets none of the {self.budget.steps:,} steps: it is left out.",
            )
        if peers.main:
            start = self.source.start(self.done)
            self.folder.truncate_log(self.state.step, (start.epoch, start.batch))
        trackers = None
        if run.report_to and peers.main:
            self.machine.accelerator.project_configuration.set_directories(str(self.folder.path))
            trackers = Trackers(self.machine.accelerator, self.folder.path.name, {})
        self.report = TrainingReport(
            console=self.console,
            folder=self.folder,
            budget=self.budget,
            trackers=trackers,
            log=Due.of(run.log_every, self.state.seconds),
            writes=peers.main,
            smaller=self.job.smaller,
            phases=self.job.phases,
        )

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.state = checkpoint.restore(self.model, self.optimizer, self.job.model.moments_from_file)
        extra = checkpoint.extra
        self.health = Health.from_json(extra["health"])
        self.validated.restore(extra)
        self.state.signal = 0
        self.source = PhasedSource(self.job.sources, extra.get("phases_began") or (0,))
        restore_scaler(self.machine.accelerator, extra.get("scaler"))
        before = extra.get("machine", {})
        became, asked = before.get("micro_tokens"), self.source.micro_tokens
        if became and asked and became < asked:  # memory had run out
            self.source = cut_to(self.source, became)
        if changed := machine_differences(before, self._facts()):
            say("machine", f"The run goes on, but not to the bit as it would have: {'; '.join(changed)}.")
        self.console.say(f"Going on from {checkpoint.path} (step {self.state.step:,}).")

    def _facts(self) -> dict[str, Any]:
        facts = machine_facts(self.machine.accelerator)
        return {**facts, "compile": self.machine.compile, "micro_tokens": self.source.micro_tokens}

    def _forecast(self) -> Forecast:
        """The memory that the training is going to take, at its longest sequences."""
        return forecast(
            self.job.model.config,
            sum(each.numel() for each in self.model.parameters()),
            longest=self.job.longest,
            targets=self.job.word_targets,
            device=self.machine.device,
            resumed=self.checkpoint is not None,
            save_memory=self.settings.batch.save_memory,
        )

    def _eval_interval(self) -> int | str:
        """As asked for, else so many times over the run: by its steps, or by the clock."""
        if self.settings.run.eval_every is not None:
            return self.settings.run.eval_every
        if self.budget.steps is not None:
            return max(1, -(-self.budget.steps // self.job.validations))
        assert self.budget.seconds is not None
        return f"{max(1.0, self.budget.seconds / self.job.validations):.0f}s"

    def _train(self, update: Callable[..., None]) -> None:
        """Steps to the end; once, where memory runs out, goes on with micro-batches of half the size."""
        try:
            return self._phases(update)
        except OutOfMemory as error:
            less = half(self.source, self.source.start(self.done), self.machine.peers)
            if less < self.job.longest // 2:
                raise
            words = str(error.message).rstrip(".")
        self.source = smaller(self.source, less, words)  # outside of the handler, which holds on to the tensors of the step
        if self.machine.device.type == "cuda":
            torch.cuda.empty_cache()
        self._phases(update)

    def _phases(self, update: Callable[..., None]) -> None:
        """One phase after another, from where the run stands."""
        loop = Loop(
            model=self.model,
            optimizer=self.optimizer,
            accelerator=self.machine.accelerator,
            peers=self.machine.peers,
            schedule=self.schedule,
            budget=self.budget,
            state=self.state,
            clock=self.clock,
            seed=self.settings.run.seed,
            max_grad_norm=self.settings.optimizer.max_grad_norm,
            signal=lambda: self.console.stop.number,
        )
        while not self.validated.enough:
            self._steps(loop, update)
            if not loop.passed:
                return
            self.source = self.source.changed(self.done)
            self.report.change(self.state.step, self.source.start(self.done), self.source.phase)

    def _steps(self, loop: Loop, update: Callable[..., None]) -> None:
        """The steps of the phase that is on."""
        peers, workers = self.machine.peers, self.settings.run.workers or 0
        self.report.phase = self.source.phase
        feed = iterate(self.source, start=self.source.start(self.done), rank=peers.rank, world=peers.world, workers=workers)
        try:
            for report in loop.steps(feed, self.ends[self.source.phase]):
                if peers.main:
                    self.folder.made(CHECKPOINTS)
                self.report.step(report, update)
                self._watch(report)
                if not report.applied:
                    continue
                self._after(report)
                if self.state.signal:
                    return
                if self.validated.enough:
                    self.console.say(
                        f"No better {self.job.primary} in {self.validated.waited} validations: the training ends at step "
                        f"{self.state.step:,}."
                    )
                    return
        finally:
            feed.close()

    def _after(self, report: StepReport) -> None:
        """Validates and saves where it is time; all processes decide alike, by the first one's clock."""
        if report.step >= 5 and not self.clock.knows("validation"):  # a run that goes on has yet to see one, too
            # A forward pass alone takes about a third of a step.
            self.clock.expect("validation", self.job.validation_tokens * report.seconds / max(1, report.tokens) / 3)
        due = (self.eval_due.now(report.step, report.total_seconds), self.save_due.now(report.step, report.total_seconds))
        last = self.budget.steps is not None and report.step >= self.budget.steps
        evaluate, save = self.machine.peers.share(due)
        better = (evaluate or last) and self._validate()
        if save or (better and self.settings.run.keep_best):
            self._save(best=better)

    def _watch(self, report: StepReport) -> None:
        losses = {name: part.mean for name, part in report.parts.items() if part.count}
        targets = self.state.targets.get("mlm", 0)
        for words in self.health.update(
            report.step, losses, targets=targets, rate=report.rate, warming=report.warming, applied=report.applied
        ):
            say("health", words)

    def _validate(self) -> bool:
        """Is the model the best so far by its validation?"""
        with self.clock.during("validation"):
            figures = self.job.validate()
        if figures is None:  # a signal
            self.state.signal = max(self.machine.peers.gather_all(self.console.stop.number)) or 2
            return False
        better = self.validated.take(figures, self.state.step)
        plain = self.validated.plain()
        self.report.record(
            {"step": self.state.step, **{f"valid_{name}": number for name, number in plain.items()}}, self.state.step
        )
        rows = figure_rows(plain)
        shown = [
            f"{name} {figure}"
            for place, (name, figure) in enumerate(rows)
            if place < _SHOWN or name == self.job.primary or PREFIX in name  # what was asked for is never left out
        ]
        shown += [f"{more} more in log.jsonl"] if (more := len(rows) - len(shown)) else []  # those of every type of entity
        self.console.say(f"Step {self.state.step:,}, validation: {'  '.join(shown)}{'  (best so far)' if better else ''}")
        return better

    def _save(self, *, best: bool = False) -> None:
        """Writes a checkpoint."""
        extra = {
            "identity": dict(self.job.identity),
            "machine": self._facts(),
            "health": self.health.to_json(),
            "phases_began": list(self.source.began),
            "scaler": scaler_state(self.machine.accelerator),
            **self.validated.to_json(),
        }
        self.keeper.save(self.state, extra, best=best)

    def _stop(self) -> None:
        """Ends a run that a signal stopped, with a checkpoint.

        Raises:
            Stopped: Always.
        """
        if self.keeper.saved_at != self.state.step and self.state.step:
            self._save()
        number = self.state.signal or self.console.stop.number
        self.console.stop.request(number)
        self.machine.peers.main_only(lambda: self.folder.finish("stopped"))
        where = f"a checkpoint of step {self.state.step:,} was written" if self.state.step else "before the first step"
        raise self.console.stop.error(f"Stopped: {where}.", hint="The same command again goes on.")
