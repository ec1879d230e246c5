"""Evaluating on one or more processes: each example exactly once, in input order, sums added as sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from bertkit.batches.source import Batch
from bertkit.training.peers import Peers
from bertkit.training.report import PartSum

if TYPE_CHECKING:
    from accelerate import Accelerator

    from bertkit.tasks.losses import LossPart

B = TypeVar("B", bound=Batch)
T = TypeVar("T")
Progress = Callable[[int, int | None], None]


@contextmanager
def evaluating(model: nn.Module, accelerator: Accelerator) -> Iterator[None]:
    """Evaluation mode in the run's precision, without gradients; the model's mode is put back afterwards."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), accelerator.autocast():
            yield
    finally:
        model.train(was_training)


def evaluate_losses(
    model: nn.Module,
    batches: Iterable[Batch],
    accelerator: Accelerator,
    peers: Peers,
    *,
    stop: Callable[[], int] = lambda: 0,
    progress: Progress | None = None,
) -> dict[str, PartSum] | None:
    """The loss of ``batches``, this process's share, summed over all processes.

    Args:
        model: From ``prepare``; its forward returns ``LossParts``.
        batches: This process's micro-batches; may be empty.
        accelerator: Device and precision.
        peers: The processes of the run.
        stop: Asked before each batch; where it says other than 0 on any process, the evaluation is given up.
        progress: Told the batches done here.

    Returns:
        Sum, count and correct guesses of each part on every process; None where it was given up.
    """
    found: dict[str, list[LossPart]] = {}
    given_up = 0
    with evaluating(model, accelerator):
        for done, batch in enumerate(batches, start=1):
            given_up = stop()
            if given_up:
                break
            for name, part in model(batch.to(accelerator.device, non_blocking=True)).items():
                found.setdefault(name, []).append(part)
            if progress is not None:
                progress(done, None)
    everyone = peers.gather_all((given_up, {name: _sum(parts) for name, parts in found.items()}))
    if any(gave_up for gave_up, _ in everyone):
        return None
    rows: dict[str, list[float]] = {}
    for _, theirs in everyone:
        for name, row in theirs.items():
            rows[name] = [a + b for a, b in zip(rows.get(name, [0.0] * 4), row, strict=True)]
    return {name: PartSum(total=r[0], count=int(r[1]), correct=r[2] if r[3] else None) for name, r in rows.items()}


def _sum(parts: Sequence[LossPart]) -> list[float]:
    """Sum, count, correct guesses, and whether there are any; the device is waited for once, here."""
    right = [part.correct for part in parts if part.correct is not None]
    return [
        float(torch.stack([part.total for part in parts]).double().sum()),
        float(sum(part.count for part in parts)),
        float(torch.stack(right).double().sum()) if right else 0.0,
        float(bool(right)),
    ]


def collect_outputs(
    model: nn.Module,
    plan: Sequence[Sequence[int]],
    collate: Callable[[Sequence[int]], B],
    outputs: Callable[[nn.Module, B], Sequence[T]],
    accelerator: Accelerator,
    peers: Peers,
    *,
    stop: Callable[[], int] = lambda: 0,
    progress: Progress | None = None,
) -> list[T] | None:
    """Runs the model over examples in batches and returns one output an example, in the order of the examples.

    Args:
        model: From ``prepare`` (or any module on its device).
        plan: The batches, as numbers of examples: 0 … n-1, each exactly once, in any order.
        collate: Makes the batch of these examples; called for this process's batches alone.
        outputs: The outputs of a batch that lies on the device, one an example, on the host (numpy or plain).
        accelerator: Device and precision.
        peers: The processes; batch i is process i mod n's.
        stop: As in :func:`evaluate_losses`.
        progress: Told the examples done here and in all.

    Returns:
        ``[n]`` outputs on the main process, an empty list on the others; None, everywhere, where it was given up.

    Raises:
        ValueError: The plan names an example twice or not at all, or ``outputs`` gave another count than it got.
    """
    size = sum(map(len, plan))
    if sorted(number for numbers in plan for number in numbers) != list(range(size)):
        raise ValueError("the plan must name each example exactly once")
    mine: list[tuple[int, T]] = []
    given_up = 0
    with evaluating(model, accelerator):
        for numbers in plan[peers.rank :: peers.world]:
            given_up = stop()
            if given_up:
                break
            found = outputs(model, collate(numbers).to(accelerator.device, non_blocking=True))
            if len(found) != len(numbers):
                raise ValueError(f"{len(found)} outputs for {len(numbers)} examples")
            mine.extend(zip(numbers, found, strict=True))
            if progress is not None:
                progress(len(mine) * peers.world if len(mine) * peers.world < size else size, size)
    if peers.total([float(given_up)])[0]:
        return None
    gathered = peers.gather(mine)
    if gathered is None:
        return []
    return [output for _, output in sorted((pair for theirs in gathered for pair in theirs), key=lambda pair: pair[0])]
