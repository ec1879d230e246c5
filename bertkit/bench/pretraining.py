"""Steps of pretraining by bertkit's own loop; what they are compared with is :mod:`bertkit.bench.reference`'s."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

from bertkit.batches.loader import iterate
from bertkit.batches.pretraining import PretrainingSource
from bertkit.bench.alternate import Round
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.tasks.models import build_model
from bertkit.training.allocator import keep_freed_memory
from bertkit.training.budget import Budget, Clock
from bertkit.training.compiling import compile_layers
from bertkit.training.loop import Loop, prepare
from bertkit.training.optimizer import OptimizerSettings, make_optimizer
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.timing import Timing

RATE = 1e-4
_FOREVER = 10**9  # steps


class Ours:
    """bertkit: the loop that ``bertkit pretrain`` runs, batches prepared ahead."""

    name = "bertkit"

    def __init__(self, source: PretrainingSource, config: EncoderConfig, machine: Machine, *, seed: int = 0) -> None:
        self.timing = Timing(machine.device)
        self._on_cpu = machine.on_cpu
        model = prepare(build_model("pretraining", config, seed=seed), machine.accelerator, machine.peers)
        if machine.compile == "on":
            compile_layers(model)
        self._feed: Generator[Any, None, None] = iterate(source)
        loop = Loop(
            model=model,
            optimizer=make_optimizer(model, OptimizerSettings(learning_rate=RATE)),
            accelerator=machine.accelerator,
            peers=machine.peers,
            schedule=Schedule(peak=RATE, steps=_FOREVER),
            budget=Budget(steps=_FOREVER),
            state=TrainState(),
            clock=Clock(),
            timing=self.timing,
        )
        self._steps: Iterator[StepReport] = loop.steps(self._feed)

    def run(self, seconds: float) -> Round:
        """Steps for so long."""
        if self._on_cpu:
            keep_freed_memory()  # which the other side undoes
        self.timing.take()
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not tokens:
            tokens += next(self._steps).tokens
        self.timing.wait()
        return Round(units=tokens, seconds=time.perf_counter() - began, parts=self.timing.take())

    def close(self) -> None:
        """Ends the loader."""
        self._feed.close()
