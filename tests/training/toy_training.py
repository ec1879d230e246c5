"""A model of 200 weights and a source of numbered samples, and a whole run of both: what the tests of training train.

Run as a script (also under torchrun) it trains, saves and resumes in a folder, and writes what came of it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bertkit.batches.loader import iterate
from bertkit.batches.source import Position
from bertkit.errors import ResourceError
from bertkit.randomness import stream
from bertkit.tasks.losses import LossPart, LossParts
from bertkit.training.budget import Budget, Clock
from bertkit.training.checkpoint import Checkpoints, resume_point
from bertkit.training.device import DeviceSettings, make_accelerator
from bertkit.training.evaluation import collect_outputs, evaluate_losses
from bertkit.training.loop import Loop, OutOfMemory, prepare
from bertkit.training.optimizer import OptimizerSettings, make_optimizer
from bertkit.training.peers import Peers
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.watch import Watch

WORDS, WIDTH = 11, 8


@dataclass(frozen=True)
class ToyBatch:
    """Samples [n]: each a row of words [n, 3], of which the marked ones are to be told from the row's mean, and a coin."""

    samples: Tensor
    words: Tensor
    marked: Tensor
    coins: Tensor

    @property
    def tokens(self) -> int:
        return self.words.numel()

    def counts(self) -> dict[str, int]:
        return {"mlm": int(self.marked.sum()), "nsp": len(self.coins)}

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> ToyBatch:
        return ToyBatch(*(each.to(device) for each in (self.samples, self.words, self.marked, self.coins)))


def sample(number: int, scale: int = 1) -> tuple[list[int], list[bool], int]:
    """A sample has between none and three targets, so that micro-batches have unlike counts."""
    draw = stream(5, "toy", number)
    return draw.integers(0, WORDS, 3).tolist(), [place < number % 4 for place in range(3)], int(draw.integers(0, 2)) * scale


def batch_of(numbers: list[int]) -> ToyBatch:
    rows = [sample(number) for number in numbers]
    return ToyBatch(
        samples=torch.tensor(numbers),
        words=torch.tensor([row[0] for row in rows]),
        marked=torch.tensor([row[1] for row in rows]),
        coins=torch.tensor([row[2] for row in rows]),
    )


@dataclass(frozen=True)
class ToySource:
    """Samples 0 … n-1 in a new order each epoch; process r of w takes each w-th of a batch from its r-th."""

    samples: int = 10
    batch: int = 2
    micro: int = 100
    seed: int = 0

    def steps(self, epoch: int) -> int:
        return -(-self.samples // self.batch)

    def numbers(self, epoch: int, index: int) -> list[int]:
        order: np.ndarray = stream(self.seed, "order", epoch).permutation(self.samples)
        return order[index * self.batch : (index + 1) * self.batch].tolist()

    def step(self, epoch: int, index: int, rank: int = 0, world: int = 1) -> list[Any]:
        mine = self.numbers(epoch, index)[rank::world]
        return [batch_of(mine[start : start + self.micro]) for start in range(0, len(mine), self.micro)]


class Toy(nn.Module):
    """Words -> their mean -> each marked word, and the coin. ``unused`` never gets a gradient."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.words = nn.Linear(WIDTH, WORDS)
        self.coin = nn.Linear(WIDTH, 2)
        self.unused = nn.Linear(2, 2)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)

    def forward(self, batch: ToyBatch) -> LossParts:
        mean = self.inside(self.dropout(self.norm(self.embedding(batch.words).mean(1))))  # [n, WIDTH]
        rows, columns = batch.marked.nonzero(as_tuple=True)
        scores = self.words(mean)[rows]  # [M, WORDS]
        targets = batch.words[rows, columns]
        coins = self.coin(mean)
        return {
            "mlm": _part(scores, targets),
            "nsp": _part(coins, batch.coins),
        }

    def inside(self, mean: Tensor) -> Tensor:
        return mean


class Deep(Toy):
    """With matrices inside, as Muon wants them."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        generator = torch.Generator().manual_seed(4)
        with torch.no_grad():
            for parameter in self.layers.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)

    def inside(self, mean: Tensor) -> Tensor:
        for layer in self.layers:
            mean = mean + torch.tanh(layer(mean))
        return mean


def _part(scores: Tensor, targets: Tensor) -> LossPart:
    total = cross_entropy(scores, targets, reduction="sum")
    return LossPart(total=total, count=len(targets), correct=(scores.argmax(1) == targets).sum())


@dataclass
class ToyRun:
    """Model, optimizer and loop, made as a job makes them."""

    loop: Loop
    model: nn.Module
    optimizer: torch.optim.Optimizer
    source: ToySource
    checkpoints: Checkpoints
    peers: Peers

    @staticmethod
    def start(
        folder: Path,
        *,
        source: ToySource,
        steps: int,
        dropout: float = 0.0,
        rate: float = 1e-2,
        warmup: float = 0.1,
        model: nn.Module | None = None,
        optimizer: Literal["adamw", "muon"] = "adamw",
        keep: int = 2,
        threads: int | None = 1,
        seconds: float | None = None,
    ) -> ToyRun:
        accelerator = make_accelerator(DeviceSettings(device="cpu", precision="fp32", threads=threads))
        peers = Peers(accelerator)
        model = model or (Deep if optimizer == "muon" else Toy)(dropout)
        found = peers.main_only(lambda: resume_point(folder / "checkpoints"))
        if found:
            model.load_state_dict(load_file(found.path / "model.safetensors"))
        prepared = prepare(model, accelerator, peers)
        stepper = make_optimizer(prepared, OptimizerSettings(name=optimizer, learning_rate=rate))
        state = found.restore(prepared, stepper) if found else TrainState()
        loop = Loop(
            model=prepared,
            optimizer=stepper,
            accelerator=accelerator,
            peers=peers,
            schedule=Schedule(peak=rate, warmup=warmup, steps=steps if seconds is None else None),
            budget=Budget(steps=steps if seconds is None else None, seconds=seconds),
            state=state,
            clock=Clock(state.seconds),
            seed=7,
        )
        return ToyRun(loop, prepared, stepper, source, Checkpoints(folder / "checkpoints", run="toy", keep=keep), peers)

    def feed(self) -> Iterator[tuple[Position, list[Any]]]:
        state = self.loop.state
        return iterate(
            self.source, start=Position(state.epoch, state.batch), rank=self.peers.rank, world=self.peers.world, ahead=1
        )

    def steps(self) -> Iterator[StepReport]:
        feed = self.feed()
        try:
            yield from self.loop.steps(feed)
        finally:
            feed.close()  # type: ignore[attr-defined]

    def save(self, best: bool = False) -> None:
        def write(folder: Path) -> None:
            save_file({name: each.contiguous() for name, each in self.model.state_dict().items()}, folder / "model.safetensors")

        self.peers.main_only(
            lambda: self.checkpoints.save(self.loop.state, self.model, self.optimizer, write_model=write, best=best)
        )


def write_weights(run: ToyRun, path: Path) -> None:
    if run.peers.main:
        save_file({name: each.contiguous() for name, each in run.model.state_dict().items()}, path)


def train(folder: Path, *, stop_at: int = 0, save_every: int = 0, die_after: int = 0, **options: Any) -> None:
    """One start of a run: trains to the end (or stops after saving at ``stop_at``) and logs what it saw."""
    folder.mkdir(parents=True, exist_ok=True)
    run = ToyRun.start(folder, **options)
    with (folder / f"log-{run.peers.rank}.jsonl").open("a") as log:
        for report in run.steps():
            log.write(json.dumps(report.values()) + "\n")
            log.flush()
            if report.step == stop_at or (save_every and report.step % save_every == 0):
                run.save()
            if report.step == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            if report.step == stop_at:
                return
    write_weights(run, folder / "final.safetensors")


RESUMED: dict[str, Any] = {"source": ToySource(samples=24, batch=4), "steps": 20, "dropout": 0.1}
UNEVEN: dict[str, Any] = {"source": ToySource(samples=18, batch=7, micro=2), "steps": 12}
KILLED: dict[str, Any] = {"source": ToySource(), "steps": 15, "dropout": 0.1}
MUON: dict[str, Any] = UNEVEN | {"optimizer": "muon"}
EMPTY: dict[str, Any] = {"source": ToySource(samples=5, batch=2, micro=1), "steps": 12}


def several_processes_talk(folder: Path) -> dict[str, Any]:
    """Evaluations, errors, signals and full memory on this process among others."""
    run = ToyRun.start(folder / "talk", source=ToySource(samples=30, batch=6), steps=10)
    accelerator, peers, last = run.loop.accelerator, run.peers, run.peers.rank == run.peers.world - 1
    told: dict[str, Any] = {}
    for rows, size in ((22, 8), (11, 4), (1, 8)):
        plan = [list(range(start, min(start + size, rows))) for start in range(0, rows, size)]
        told[f"{rows}"] = collect_outputs(
            run.model, plan, lambda n: batch_of(list(n)), lambda model, batch: batch.samples.tolist(), accelerator, peers
        )
        mine = [batch_of(numbers) for numbers in plan[peers.rank :: peers.world]]
        losses = evaluate_losses(run.model, mine, accelerator, peers) or {}
        told[f"losses {rows}"] = {name: (part.total, part.count, part.correct) for name, part in losses.items()}
    told["given up"] = evaluate_losses(run.model, [batch_of([1])], accelerator, peers, stop=lambda: 2 if last else 0)
    try:
        peers.main_only(no_room)
    except ResourceError as error:
        told["error"] = str(error)
    told["shared"] = peers.main_only(lambda: 7)
    # A step that does not fit on one process changes no weight on any; then a signal to one ends all, at one step.
    if last:
        run.model.register_forward_pre_hook(no_memory)
    try:
        next(run.steps())
    except OutOfMemory as error:
        told["memory"] = [run.loop.state.step, type(error).__name__]
    run.model._forward_pre_hooks.clear()
    run.loop.signal = lambda: 15 if last and run.loop.state.step == 3 else 0
    list(run.steps())
    told["stopped"] = [run.loop.state.step, run.loop.state.signal]
    told["weights"] = {name: each.tolist() for name, each in run.model.state_dict().items()}
    return told


def watch_one_another() -> list[str]:
    """The last process stops itself until the first has noticed and wakes it."""
    peers = Peers(make_accelerator(DeviceSettings(device="cpu", precision="fp32", threads=1)))
    pids = peers.gather_all(os.getpid())
    told: list[str] = []
    noticed = threading.Event()

    def lost(words: str) -> None:
        told.append(words)
        noticed.set()

    with Watch(peers.rank, peers.world, lost, period=0.2, late=2.0):
        time.sleep(1.0)
        if peers.rank == peers.world - 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            noticed.wait(60)
            if peers.main:
                time.sleep(1.0)  # until all others have noticed too
                os.kill(pids[-1], signal.SIGCONT)
        peers.wait()
    return told


def lose_one_another(folder: Path) -> None:
    """The last process dies in its third step; the other says what it knows."""
    run = ToyRun.start(folder, source=ToySource(), steps=10)
    try:
        for report in run.steps():
            if report.step == 3 and not run.peers.main:
                os.kill(os.getpid(), signal.SIGKILL)
    except ResourceError as error:
        (folder / "found.json").write_text(json.dumps([run.loop.state.step, error.exit_code, error.message]))


def no_room() -> None:
    raise ResourceError("No room.", where="disk", hint="Make some.")


def no_memory(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


def start_script(folder: Path, scenario: str, processes: int = 1) -> int:
    launcher = f"-m torch.distributed.run --standalone --nproc-per-node {processes}".split() if processes > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, __file__, str(folder), scenario],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenario", choices=["killed", "again", "several", "lost"])
    arguments = parser.parse_args()
    folder = arguments.folder
    if arguments.scenario == "lost":
        lose_one_another(folder)
        return
    if arguments.scenario == "several":
        train(folder / "uneven", **UNEVEN)
        train(folder / "empty", **EMPTY)
        train(folder / "muon", **MUON)
        train(folder / "whole", **RESUMED)
        train(folder / "parts", **RESUMED, stop_at=10)
        train(folder / "parts", **RESUMED)
        told = several_processes_talk(folder) | {"watch": watch_one_another()}
        (folder / f"found-{os.environ['RANK']}.json").write_text(json.dumps(told))
        torch.distributed.destroy_process_group()
    else:
        train(folder, **KILLED, save_every=1, die_after=7 if arguments.scenario == "killed" else 0)


if __name__ == "__main__":
    main()
