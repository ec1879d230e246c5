"""Steps by bertkit's own loop, as its commands run it: one side of every comparison of training."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

from torch import nn

from bertkit.batches.loader import iterate
from bertkit.bench.alternate import Round
from bertkit.bench.figures import OURS
from bertkit.jobs.start import Machine
from bertkit.training.allocator import keep_freed_memory
from bertkit.training.budget import Budget, Clock
from bertkit.training.compiling import compile_layers
from bertkit.training.loop import Loop, prepare
from bertkit.training.optimizer import OptimizerSettings, make_optimizer
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.timing import Timing

_FOREVER = 10**9  # steps


class Stepping:
    """The loop over a source without end, batches prepared ahead.

    Args:
        source: Of the batches; its ``batch_size`` sequences are a step.
        model: Not yet on its device.
        machine: Where.
        rate: Learning rate.
    """

    name = OURS

    def __init__(self, source: Any, model: nn.Module, machine: Machine, rate: float) -> None:
        self.timing = Timing(machine.device)
        self._on_cpu = machine.on_cpu
        self._batch_size: int = source.batch_size
        prepared = prepare(model, machine.accelerator, machine.peers)
        if machine.compile == "on":
            compile_layers(prepared)
        self._feed: Generator[Any, None, None] = iterate(source)
        loop = Loop(
            model=prepared,
            optimizer=make_optimizer(prepared, OptimizerSettings(learning_rate=rate)),
            accelerator=machine.accelerator,
            peers=machine.peers,
            schedule=Schedule(peak=rate, steps=_FOREVER),
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
        tokens, steps, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not steps:
            tokens += next(self._steps).tokens
            steps += 1
        self.timing.wait()
        spent = time.perf_counter() - began
        return Round(units=tokens, seconds=spent, parts=self.timing.take(), texts=steps * self._batch_size)

    def close(self) -> None:
        """Ends the loader."""
        self._feed.close()
