"""Steps by bertkit's own loop, as its commands run it: one side of every comparison of training."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from torch import nn

from bertkit.batches.loader import iterate
from bertkit.bench.alternate import Round
from bertkit.bench.figures import OURS
from bertkit.bench.process import OwnWays
from bertkit.jobs.start import Machine
from bertkit.training.budget import Budget, Clock
from bertkit.training.compiling import compile_layers
from bertkit.training.loop import Loop, prepare
from bertkit.training.optimizer import OptimizerSettings, make_optimizer
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.timing import Timing

_FOREVER = 10**9  # steps


def texts_of(batch: Any) -> int:
    """How many texts a batch holds: its sequences, or the questions whose candidates they are."""
    return len(getattr(batch, "choices", range(batch.packed.sequences)))


class Stepping:
    """The loop over a source without end, batches prepared ahead.

    Args:
        source: Of the batches.
        model: Not yet on its device.
        machine: Where.
        rate: Learning rate.
    """

    name = OURS

    def __init__(self, source: Any, model: nn.Module, machine: Machine, rate: float) -> None:
        self.timing = Timing(machine.device)
        self._own = OwnWays(machine.device)
        self._texts: deque[int] = deque()  # of the steps that are on their way
        prepared = prepare(model, machine.accelerator, machine.peers)
        if machine.compile == "on":
            compile_layers(prepared)
        self._feed = self._counted(source)
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

    def _counted(self, source: Any) -> Generator[Any, None, None]:
        """The steps of the source, the texts of each noted: an epoch's last may be smaller."""
        with closing(iterate(source)) as steps:
            for at, batches in steps:
                self._texts.append(sum(map(texts_of, batches)))
                yield at, batches

    def run(self, seconds: float) -> Round:
        """Steps for so long."""
        self._own.take()
        self.timing.take()
        tokens, texts, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not texts:
            tokens += next(self._steps).tokens
            texts += self._texts.popleft()
        self.timing.wait()
        spent = time.perf_counter() - began
        return Round(units=tokens, seconds=spent, parts=self.timing.take(), texts=texts)

    def close(self) -> None:
        """Ends the loader."""
        self._feed.close()
