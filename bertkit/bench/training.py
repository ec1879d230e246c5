"""How steps of training are measured, of whatever kind: rounds of all sides, the machine's ceiling, the peak of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bertkit.bench.alternate import Round, Side, alternate
from bertkit.bench.figures import OURS, against_ceiling, figures_of, show, show_memory
from bertkit.bench.machine import machine_facts, product_rate
from bertkit.bench.memory import peak_of
from bertkit.jobs.console import Console
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.settings.bench import BenchFinetuneSettings, BenchPretrainSettings
from bertkit.training import precision

_FEW = 3  # steps that show the peak of memory


class Trainer(Side, Protocol):
    """A side that trains, a whole step at a time at least."""

    def close(self) -> None:
        """Ends what it started."""


class Work(Protocol):
    """What all sides do."""

    @property
    def text(self) -> str:
        """What is trained on, in words."""

    def flops(self) -> float:
        """Useful FLOP a token."""

    def sides(self, names: Sequence[str] = ()) -> Sequence[Trainer]:
        """Every side that the settings ask for, or those named."""


S = TypeVar("S", BenchPretrainSettings, BenchFinetuneSettings)
Prepare = Callable[[S, Console, Machine], Work]


def bench_training(settings: S, console: Console, prepare: Prepare[S]) -> Outcome:
    """Measures training steps.

    Args:
        settings: Of the bench.
        console: The streams.
        prepare: Makes the work; a function of a module, because memory is measured in processes of their own.
    """
    machine = Machine.of(settings.device)
    facts = machine_facts(machine.device)
    console.say(f"{facts}, {machine.precision}.")
    if settings.vs is not None:
        precision.resolve(settings.vs_precision, machine.device, flag="--vs-precision")  # refused before any work
    work = prepare(settings, console, machine)
    console.say(work.text)
    rounds = _rounds(settings, console, work)
    figures = figures_of(rounds)
    # Measured last: a machine that has been working is the one whose ceiling it is.
    ceiling = product_rate(machine.device, precision.resolve(settings.device.precision, machine.device))
    figures |= against_ceiling(figures, flops=work.flops(), ceiling=ceiling)
    if settings.vs is not None:
        figures["vs_precision"] = settings.vs_precision
    show(console, figures)
    if settings.memory:
        console.say("Measuring memory …")
        figures["memory_bytes"] = {name: peak_of(_few_steps, prepare, settings, name) for name in rounds}
        show_memory(console, figures["memory_bytes"])
    extra = {"machine": facts.as_dict(), "precision": machine.precision, "bench": figures}
    return Outcome(metrics={"tokens_per_second": figures["rates"][OURS]["median"]}, extra=extra)


def _rounds(settings: S, console: Console, work: Work) -> dict[str, list[Round]]:
    """All sides in turn; their models are gone afterwards."""
    sides = work.sides()
    try:
        with console.progress("Rounds", settings.rounds, safe=True) as update:
            return alternate(sides, rounds=settings.rounds, seconds=settings.seconds, done=lambda done: update(done))
    finally:
        for side in sides:
            side.close()


def _few_steps(prepare: Prepare[S], settings: S, name: str) -> None:
    (side,) = prepare(settings, Console(quiet=True), Machine.of(settings.device)).sides([name])
    for _ in range(_FEW):
        side.run(0.0)
    side.close()
