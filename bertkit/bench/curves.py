"""How a loss falls over some steps in given numbers: whether a precision or a kernel learns what fp32 learns."""

from __future__ import annotations

from contextlib import closing

from torch import nn

from bertkit.batches.loader import iterate
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.source import Position
from bertkit.jobs.start import Machine
from bertkit.training.budget import Budget, Clock
from bertkit.training.loop import Loop, prepare
from bertkit.training.optimizer import OptimizerSettings, make_optimizer
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule


def curve(
    model: nn.Module, source: PretrainingSource, machine: Machine, *, steps: int, rate: float, warmup: float = 0.1, seed: int = 0
) -> list[StepReport]:
    """Trains a new model for so many steps, the ones that were left out not counted, and gives the report of each.

    Args:
        model: On the CPU still.
        source: Its batches, from the first of the first epoch on.
        machine: Whose precision it computes in.
        steps: Optimizer steps that change the weights.
        rate: The peak; it falls in a line to 0.
        warmup: As in :class:`~bertkit.training.schedule.Schedule`.
        seed: Of dropout.
    """
    prepared = prepare(model, machine.accelerator, machine.peers)
    loop = Loop(
        model=prepared,
        optimizer=make_optimizer(prepared, OptimizerSettings(learning_rate=rate)),
        accelerator=machine.accelerator,
        peers=machine.peers,
        schedule=Schedule(peak=rate, warmup=warmup, steps=steps),
        budget=Budget(steps=steps),
        state=TrainState(),
        clock=Clock(),
        seed=seed,
    )
    with closing(iterate(source, start=Position(0, 0), rank=machine.peers.rank, world=machine.peers.world)) as feed:
        return list(loop.steps(feed))


def mean_loss(reports: list[StepReport]) -> float:
    """The mean over the steps that changed the weights."""
    applied = [report.loss for report in reports if report.applied]
    return sum(applied) / len(applied)
