"""The loop: micro-batches in, optimizer steps out. A generator; saving, printing, validating and stopping are its caller's.

Comes in: a module whose ``forward(batch)`` returns the sums and counts of its loss (``LossParts``), and an iterator of
``(position, micro-batches of this process)``, the position counting the batches done *with* this one. Goes out: a
:class:`StepReport` for each step. Every sum is divided by the count of targets of the whole step, over all micro-batches
and processes, so that neither changes what is learned.

Dropout draws from a generator keyed by the batch, the micro-batch and the process: a run that was stopped anywhere goes
on with the same draws, without any stored random state.

On CUDA nobody waits for a step to end: the optimizer's kernel itself leaves out what is not finite, and what came of a
step is read while the device computes the next one's gradients. That is before the next one's optimizer, so rates, counts
and weights are at every report what they would be had the loop waited. Near the end of the time it does wait: a validation at
a report may leave no time for another step, which must not have begun.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from bertkit.batches.source import Batch, Position
from bertkit.errors import DivergedError, ResourceError
from bertkit.randomness import torch_seed
from bertkit.training.budget import Budget, Clock, Until
from bertkit.training.flight import Agreed, Begun, Flying, Told
from bertkit.training.optimizer import set_rate
from bertkit.training.peers import Peers
from bertkit.training.report import PartSum, StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.timing import NoTiming, Timing

if TYPE_CHECKING:
    from accelerate import Accelerator

PATIENCE = 10
"""So many steps in a row without a finite loss and gradient end the run."""


class OutOfMemory(ResourceError):
    """A micro-batch did not fit; no weight has changed. The caller may go on with smaller ones."""


def prepare(model: nn.Module, accelerator: Accelerator, peers: Peers | None = None) -> nn.Module:
    """The model on its device, computing in the run's precision, with the same weights on every process.

    No DDP is put around it: :class:`Peers` sums the gradients, for reasons given there.
    """
    prepared: nn.Module = accelerator.prepare_model(model, evaluation_mode=True)
    (peers or Peers(accelerator)).same_weights(prepared)
    return prepared


@dataclass(kw_only=True)
class Loop:
    """Everything a loop holds still while it runs. :meth:`steps` runs it.

    Attributes:
        model: From :func:`prepare`.
        optimizer: From ``make_optimizer(model, …)``.
        accelerator: From ``make_accelerator``.
        peers: ``Peers(accelerator)``, one for the run.
        schedule: Rates.
        budget: The end.
        state: Where the run stands; moved after each step.
        clock: ``Clock(state.seconds)``; tell it how long validating and saving take.
        seed: Of the run, for dropout.
        max_grad_norm: Gradients are scaled down to this norm.
        signal: Says which signal (2, 15, or 0) has come in; asked once a step, and agreed on by all processes.
        passed: The steps ended because their part of the run was over, not the run.
        timing: Told how long ``data``, ``forward``, ``backward`` and ``optimizer`` take.
        ahead: Begin a step before it is known what came of the last; unset: on CUDA, where the optimizer can leave out a step.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    accelerator: Accelerator
    peers: Peers
    schedule: Schedule
    budget: Budget
    state: TrainState
    clock: Clock
    seed: int = 0
    max_grad_norm: float = 1.0
    signal: Callable[[], int] = lambda: 0
    timing: Timing = field(default_factory=NoTiming)
    ahead: bool | None = None
    passed: bool = field(default=False, init=False)
    _names: tuple[str, ...] = field(default=(), init=False)
    _last: float = field(default=0.0, init=False)
    _resumed: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._parameters = [each for each in self.model.parameters() if each.requires_grad]
        if self.ahead is None:
            self.ahead = self.accelerator.device.type == "cuda" and hasattr(self.optimizer, "_step_supports_amp_scaling")

    def steps(self, feed: Iterator[tuple[Position, Sequence[Batch]]], until: Until = Until()) -> Iterator[StepReport]:
        """Runs until the budget is spent, a signal comes in (``state.signal`` says which), the feed ends, or ``until`` is passed.

        By the clock it is the first process's that decides for all. A batch that was asked for and not used any more is lost
        to nobody: ``state`` does not count it.

        Raises:
            DivergedError: Ten steps in a row without a finite loss and gradient.
            OutOfMemory: A micro-batch does not fit on some process; raised on all, before any weight changed.
            ResourceError: Another process is gone.
        """
        self.clock.start()
        self.state.signal = 0
        self.passed = False
        flying: Flying | None = None
        while True:
            if flying and (not self.ahead or flying.begun.agreed.late or self._at_end(until, 1)):
                yield from self._landed(flying)
                flying = None
            if self._at_end(until):
                return
            begun = self._begin(feed, until, bool(flying))
            if flying:
                yield from self._landed(flying)
            if begun is None:
                return
            flying = self._finish(begun)

    def _at_end(self, until: Until, flying: int = 0) -> bool:
        """Is there no step to be begun, once so many that are on their way have counted?"""
        step = self.state.step + flying
        over = self.budget.steps is not None and step >= self.budget.steps
        self.passed = not over and until.step is not None and step >= until.step
        return over or self.passed

    def _begin(self, feed: Iterator[tuple[Position, Sequence[Batch]]], until: Until, flying: bool) -> Begun | None:
        """The next step up to its gradients, which no weight follows yet; None: the run or this part of it is to end."""
        with self.timing.part("data"):
            found = next(feed, None)
        agreed = None if found is None else self._agree(found[1], flying)
        if found is None or agreed is None:
            return None
        if until.share is not None and agreed.elapsed >= until.share:
            self.passed = True
            return None
        self.optimizer.zero_grad(set_to_none=True)
        sums, failed = self._accumulate(found[0], found[1], agreed.counts)
        return Begun(at=found[0], agreed=agreed, sums=sums, failed=failed, widest=max((b.tokens for b in found[1]), default=0))

    def _agree(self, batches: Sequence[Batch], flying: bool) -> Agreed | None:
        """The step's counts over all processes, and its time by the main process's clock; None: the run is to end."""
        mine: dict[str, int] = {}
        for batch in batches:
            for name, count in batch.counts().items():
                mine[name] = mine.get(name, 0) + count
        if not self._names:
            everyone = self.peers.gather_all(sorted(mine)) if self.peers.world > 1 else [list(mine)]
            self._names = tuple(dict.fromkeys(name for names in everyone for name in names))
        if unknown := set(mine) - set(self._names):
            raise ValueError(f"loss parts that the first batches did not have: {sorted(unknown)}")
        signal = self.signal()
        main = self.peers.main
        began = self.clock.seconds()
        told = self.peers.total(
            [
                began if main else 0.0,
                self.clock.reserve if main else 0.0,
                self._last if main else 0.0,
                signal == 2,
                signal not in (0, 2),
                sum(batch.tokens for batch in batches),
                *(mine.get(name, 0) for name in self._names),
            ]
        )
        if told[3] or told[4]:
            self.state.signal = 15 if told[4] else 2
            return None
        first = self.state.step == 0 and self.state.skipped == 0 and not flying
        free = told[0] + told[2] * flying  # when the device will have done what it is at
        if not first and not self.budget.leaves_time(free, told[2], told[1]):
            return None
        return Agreed(
            began=began,
            elapsed=self.budget.share(free + told[2] / 2, told[1]),
            tokens=int(told[5]),
            counts={name: int(count) for name, count in zip(self._names, told[6:], strict=True)},
            # A validation at the last report, one at this step's and the end's own; this step and one more.
            late=not self.budget.leaves_time(free, 2 * told[2], 3 * told[1]),
        )

    def _finish(self, begun: Begun) -> Flying:
        """Gradients of all processes, clipping and the optimizer; what came of it is known when it has landed."""
        state, agreed = self.state, begun.agreed
        rate = self.schedule.rate(state.step + 1, agreed.elapsed)
        shared = self.peers.sum_gradients(self._parameters, begun.sums, failed=begun.failed)
        if shared is None:
            self.optimizer.zero_grad(set_to_none=True)
            raise OutOfMemory(
                f"A micro-batch of {begun.widest:,} tokens does not fit into memory.",
                where=f"epoch {begun.at.epoch}, batch {begun.at.batch}",
                hint="Use a smaller --micro-tokens.",
            )
        with self.timing.part("optimizer"):
            told = self._update(shared, rate)
        return Flying(begun=begun, rate=rate, warming=self.schedule.warming(state.step + 1, agreed.elapsed), told=told)

    def _landed(self, flying: Flying) -> Iterator[StepReport]:
        """Moves the state by what came of a step, and yields its report."""
        norm, *totals = flying.told.read()
        state, agreed, at = self.state, flying.begun.agreed, flying.begun.at
        finite = all(map(math.isfinite, totals))
        applied = math.isfinite(norm) and finite
        state.epoch, state.batch = at.epoch, at.batch
        state.tokens += agreed.tokens
        if applied:
            state.step += 1
            state.in_a_row = 0
            for name, count in agreed.counts.items():
                state.targets[name] = state.targets.get(name, 0) + count
        else:
            state.skipped += 1
            scaler = self.accelerator.scaler
            # An overflow of fp16 gradients is the scaler's search for its scale, not a divergence, until that was 1.
            state.in_a_row += scaler is None or not finite or scaler.get_scale() < 1.0
        state.seconds = self.clock.seconds()
        took = state.seconds - max(agreed.began, self._resumed)
        # Where the loop begins to wait, part of a step was done before the last one's report: no measure of the next.
        self._last = max(took, self._last) if agreed.late and agreed.began < self._resumed else took
        yield StepReport(
            step=state.step,
            epoch=at.epoch,
            batch=at.batch,
            applied=applied,
            rate=flying.rate,
            parts=self._parts(totals, agreed.counts),
            tokens=agreed.tokens,
            seconds=took,
            total_seconds=state.seconds,
            total_tokens=state.tokens,
            grad_norm=norm,
            skipped=state.skipped,
            warming=flying.warming,
        )
        self._resumed = self.clock.seconds()
        if state.in_a_row >= PATIENCE:
            raise DivergedError(
                f"No finite loss and gradient in {PATIENCE} steps in a row; the last good step is {state.step}.",
                where=f"epoch {at.epoch}, batch {at.batch}",
                hint="Try a lower --learning-rate or a longer --warmup; --precision fp32 rules out overflow.",
            )

    def _accumulate(self, at: Position, batches: Sequence[Batch], counts: Mapping[str, int]) -> tuple[Tensor, bool]:
        """Adds up this process's gradients; returns loss sums, correct guesses and whether there are any, ``[3 · parts]``."""
        self.model.train()
        sums = torch.zeros(3, len(self._names), device=self.accelerator.device)
        try:
            for index, batch in enumerate(batches):
                self._seed(torch_seed(self.seed, "dropout", at.epoch, at.batch, index, self.peers.rank))
                with self.timing.part("forward"):
                    parts = self.model(batch.to(self.accelerator.device, non_blocking=True))
                loss = sum((part.total / counts[name] for name, part in parts.items() if part.count), start=sums.new_zeros(()))
                if loss.requires_grad:  # not so without a target
                    with self.timing.part("backward"):
                        self.accelerator.backward(loss)
                for name, part in parts.items():
                    column = self._names.index(name)
                    sums[0, column] += part.total.detach()
                    if part.correct is not None:
                        sums[1, column] += part.correct.detach()
                        sums[2, column] = 1
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            return sums, True
        return sums, False

    def _seed(self, seed: int) -> None:
        """Seeds what dropout draws from; on a CPU its own generator alone.

        ``torch.manual_seed`` notes for each kind of device that is not in use where it was called from: most of a millisecond.
        """
        if self.accelerator.device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def _update(self, sums: Tensor, rate: float) -> Told:
        """Clips, and steps unless something is not finite; gives the gradients' norm and the sums."""
        scaler = self.accelerator.scaler
        if all(each.grad is None for each in self._parameters):
            scaler = None  # no target anywhere: a scaler without gradients to look at refuses to go on
        if scaler is not None:
            scaler.unscale_(self.optimizer)
        norm = self.accelerator.clip_grad_norm_(self._parameters, self.max_grad_norm)
        values = torch.cat([norm.detach().to(sums).reshape(1), sums.reshape(-1)])
        told = Told(values)
        set_rate(self.optimizer, rate)
        if self.ahead:
            # The fused kernel asks for this itself, on the device: where it is 1 neither weights nor moments nor counts move.
            self.optimizer.found_inf = values.isfinite().all().logical_not().float()  # type: ignore[attr-defined]
            self.optimizer.step()
            del self.optimizer.found_inf  # type: ignore[attr-defined]
        elif all(map(math.isfinite, told.read())):
            self.optimizer.step()
        if scaler is not None:
            scaler.update()  # after an overflow: halves the scale that unscale_ found too large
        return told

    def _parts(self, totals: Sequence[float], counts: Mapping[str, int]) -> dict[str, PartSum]:
        size = len(self._names)
        return {
            name: PartSum(
                total=totals[place],
                count=counts[name],
                correct=totals[size + place] if totals[2 * size + place] else None,
            )
            for place, name in enumerate(self._names)
        }


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return "can't allocate memory" in str(error) or "not enough memory" in str(error)  # torch's CPU allocator
