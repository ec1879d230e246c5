"""The loop on one process: global means, accumulation, what is left out, and what ends a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from toy_training import Toy, ToyBatch, ToyRun, ToySource, batch_of

from bertkit.batches.loader import iterate
from bertkit.batches.source import Position
from bertkit.errors import DivergedError
from bertkit.tasks.losses import LossPart, LossParts
from bertkit.training.budget import Budget, Clock, Until
from bertkit.training.loop import OutOfMemory


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: each.detach().clone() for name, each in model.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@dataclass(frozen=True)
class Fixed:
    """A batch whose targets have given losses."""

    losses: tuple[float, ...]

    @property
    def tokens(self) -> int:
        return len(self.losses)

    def counts(self) -> dict[str, int]:
        return {"mlm": len(self.losses)}

    def to(self, device: Any, *, non_blocking: bool = False) -> Fixed:
        return self


class Scaled(nn.Module):
    """Loss = weight x given loss, so the gradient is the mean of the losses."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, batch: Fixed) -> LossParts:
        return {"mlm": LossPart(total=self.weight * sum(batch.losses), count=len(batch.losses))}


def fed(*steps: Sequence[Any]) -> Iterator[tuple[Position, Sequence[Any]]]:
    return ((Position(0, index + 1), batches) for index, batches in enumerate(steps))


@pytest.fixture(params=[False, True], ids=["waiting", "ahead"], autouse=True, scope="module")
def ahead(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Every test of a loop holds for one that waits for each step and for one that begins the next before it knows."""
    start = ToyRun.start

    def started(*arguments: Any, **options: Any) -> ToyRun:
        run = start(*arguments, **options)
        run.loop.ahead = request.param
        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ToyRun, "start", staticmethod(started))
        yield bool(request.param)


def toy_run(tmp_path: Path, steps: int = 4, **options: Any) -> ToyRun:
    return ToyRun.start(tmp_path, source=options.pop("source", ToySource()), steps=steps, **options)


def test_loss_and_gradient_are_means_over_all_targets_of_the_step(tmp_path: Path) -> None:
    run = toy_run(tmp_path, model=Scaled())
    report = next(run.loop.steps(fed([Fixed((4.0,)), Fixed((0.5, 1.5) * 4 + (1.0,))])))
    assert report.parts["mlm"].mean == pytest.approx(1.3)
    assert report.grad_norm == pytest.approx(1.3)  # not 2.5, the mean of the means
    assert report.tokens == 10
    assert report.parts["mlm"].count == 10


@pytest.mark.parametrize("micro", [1, 2, 3])
def test_micro_batches_change_nothing(tmp_path: Path, micro: int) -> None:
    runs = []
    for size in (8, micro):
        run = toy_run(tmp_path, source=ToySource(samples=16, batch=8, micro=size))
        report = next(run.steps())
        runs.append((report.parts, {n: p.grad for n, p in run.model.named_parameters() if p.grad is not None}))
    (parts, whole), (other_parts, accumulated) = runs
    assert whole.keys() == accumulated.keys()
    for name, gradient in whole.items():
        assert (gradient - accumulated[name]).abs().max() <= 1e-5 * gradient.abs().max(), name
    for name, part in parts.items():
        assert other_parts[name].mean == pytest.approx(part.mean, rel=1e-5)
        assert (other_parts[name].count, other_parts[name].correct) == (part.count, part.correct)


def test_step_without_a_target_leaves_finite_weights(tmp_path: Path) -> None:
    run = toy_run(tmp_path)
    none = replace(batch_of([3]), marked=torch.zeros(1, 3, dtype=torch.bool))
    nothing = ToyBatch(*(each[:0] for each in (none.samples, none.words, none.marked, none.coins)))
    reports = list(run.loop.steps(fed([none], [nothing], [], [batch_of([3])])))
    assert [report.applied for report in reports] == [True] * 4
    assert [report.parts["mlm"].count for report in reports] == [0, 0, 0, 3]
    assert reports[1].loss == reports[2].loss == 0.0
    assert reports[0].values()["mlm_loss"] is None
    assert all(each.isfinite().all() for each in run.model.parameters())


class Broken(Toy):
    """Its loss is NaN (or its gradient alone infinite) for samples from 100 on."""

    kind = "loss"

    def forward(self, batch: ToyBatch) -> LossParts:
        parts = super().forward(batch)
        if int(batch.samples.max()) < 100:
            return parts
        total = parts["nsp"].total
        # sqrt(x - x) is 0 with an infinite slope.
        bad = total * math.nan if self.kind == "loss" else total + (total - total.detach()).sqrt()
        return {**parts, "nsp": replace(parts["nsp"], total=bad)}


@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_steps_that_are_not_finite_are_left_out(tmp_path: Path, kind: str) -> None:
    model = Broken()
    model.kind = kind
    run = toy_run(tmp_path, model=model)
    steps = run.loop.steps(fed([batch_of([1])], [batch_of([101, 2]), batch_of([3])], [batch_of([4])]))
    next(steps)
    before = weights(run.model)
    moments = {name: state["exp_avg"].clone() for name, state in _by_name(run).items()}
    left_out = next(steps)
    assert not left_out.applied
    assert (left_out.step, left_out.skipped, left_out.batch) == (1, 1, 2)
    assert same(before, weights(run.model))
    assert same(moments, {name: state["exp_avg"] for name, state in _by_name(run).items()})
    assert left_out.values()["grad_norm"] is None or kind == "loss"
    good = next(steps)
    assert good.applied
    assert (good.step, good.skipped) == (2, 1)
    assert good.rate == left_out.rate  # the schedule did not move
    assert not same(before, weights(run.model))


def test_a_last_step_that_is_left_out_is_made_up_for(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=3, model=Broken())
    steps = fed([batch_of([1])], [batch_of([2])], [batch_of([101])], [batch_of([3])], [batch_of([4])])
    reports = list(run.loop.steps(steps))
    assert [(report.step, report.applied) for report in reports] == [(1, True), (2, True), (2, False), (3, True)]
    assert run.loop.state.batch == 4


@pytest.mark.parametrize("model", ["dropout", "not finite", "fp16"])
def test_a_loop_that_begins_ahead_is_at_every_report_where_one_that_waits_is(tmp_path: Path, model: str) -> None:
    seen: list[list[Any]] = []
    for ahead in (False, True):
        made = {"dropout": Toy(0.3), "not finite": Broken(), "fp16": Halves()}[model]
        run = toy_run(tmp_path, steps=6, warmup=3, model=made)
        run.loop.ahead = ahead
        if model == "fp16":
            run.loop.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
        batches = [
            [Fixed((1.0,))] if model == "fp16" else [batch_of([n, n + 1])] for n in (1, 2, 100, 3, 101, 102, 4, 5, 6, 7, 8, 9)
        ]
        seen.append([])
        for report in run.loop.steps(fed(*batches)):
            values = {name: value for name, value in report.values().items() if "second" not in name}
            moments = [state["exp_avg"].clone() for state in run.optimizer.state.values()]
            done = [float(state["step"]) for state in run.optimizer.state.values() if float(state["step"])]
            seen[-1].append((values, weights(run.model), moments, done))
    assert len(seen[0]) == len(seen[1]) >= 6
    for (values, own, moments, done), (others, other, other_moments, other_done) in zip(*seen, strict=True):
        assert values == others
        assert same(own, other)
        assert done == other_done
        assert all(map(torch.equal, moments, other_moments))


def _by_name(run: ToyRun) -> dict[str, Any]:
    return {name: run.optimizer.state[each] for name, each in run.model.named_parameters() if each in run.optimizer.state}


def test_ten_in_a_row_end_the_run(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=50, model=Broken())
    bad = [[batch_of([number])] for number in range(100, 130)]
    before = weights(run.model)
    reports = []
    with pytest.raises(DivergedError) as caught:
        reports.extend(iter_into(run.loop.steps(fed(*bad[:9], [batch_of([1])], *bad[9:])), reports))
    assert caught.value.exit_code == 6
    assert "last good step is 1" in str(caught.value)
    assert [report.applied for report in reports] == [False] * 9 + [True] + [False] * 10  # a good one starts the count anew
    assert all(each.isfinite().all() for each in weights(run.model).values())
    assert not same(before, weights(run.model))


def iter_into(steps: Iterator[Any], reports: list[Any]) -> Iterator[Any]:
    for report in steps:
        reports.append(report)
    return iter(())


class Halves(nn.Module):
    """Multiplies in half precision, where a gradient times a large loss scale overflows."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, batch: Fixed) -> LossParts:
        product = (self.weight.half() * 2.0).sum().float()
        return {"mlm": LossPart(total=(product - 7.0).square() * len(batch.losses), count=len(batch.losses))}


@pytest.mark.filterwarnings("error")
def test_overflowed_fp16_steps_move_neither_rate_nor_count(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=10, model=Halves(), warmup=5)
    run.loop.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
    reports = list(run.loop.steps(fed(*[[Fixed((1.0,))]] * 30)))
    skipped = [report for report in reports if not report.applied]
    assert skipped  # 2^24 times the slope of 4 is beyond 65504
    assert all(report.step == 0 and report.rate == reports[0].rate for report in skipped)
    assert [report.step for report in reports if report.applied] == list(range(1, 11))
    assert [report.rate for report in reports if report.applied] == [run.loop.schedule.rate(step) for step in range(1, 11)]
    assert reports[-1].skipped == run.loop.state.skipped == len(skipped)
    assert all(state["step"] == 10 for state in run.optimizer.state.values())


def test_fp16_scale_that_cannot_fall_further_is_a_divergence(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=10, model=Broken())
    run.loop.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    run.model.kind = "gradient"  # type: ignore[assignment]
    with pytest.raises(DivergedError):
        list(run.loop.steps(fed(*[[batch_of([100])]] * 30)))
    assert run.loop.state.skipped == 12  # 4 and 2 are the scaler's search; ten more are not


def test_gradients_are_clipped_after_their_norm_is_taken(tmp_path: Path) -> None:
    run = toy_run(tmp_path, model=Scaled())
    run.loop.optimizer = torch.optim.SGD(run.model.parameters(), lr=1.0, fused=True)
    report = next(run.loop.steps(fed([Fixed((40.0,))])))
    assert report.grad_norm == pytest.approx(40.0)
    assert run.model.weight.item() == pytest.approx(1.0 - report.rate, rel=1e-5)


def test_drawing_numbers_between_steps_changes_nothing(tmp_path: Path) -> None:
    finals = []
    for often in (False, True):
        run = toy_run(tmp_path, steps=6, dropout=0.3)
        for _ in run.steps():
            if often:
                run.model.eval()
                torch.rand(100)
        finals.append(weights(run.model))
    assert same(*finals)
    plain = toy_run(tmp_path, steps=6, dropout=0.0)
    list(plain.steps())
    assert not same(finals[0], weights(plain.model))  # or the dropout above did nothing


def test_signal_ends_the_loop_before_the_next_step(tmp_path: Path, ahead: bool) -> None:
    run = toy_run(tmp_path, steps=50)
    came = [0]
    run.loop.signal = lambda: came[0]
    seen = []
    for report in run.steps():
        seen.append(report.step)
        if report.step == 3:
            came[0] = 15
    assert seen == ([1, 2, 3, 4] if ahead else [1, 2, 3])  # the fourth had begun
    assert run.loop.state.signal == 15
    assert (run.loop.state.epoch, run.loop.state.batch) == (0, len(seen))


class Greedy(Toy):
    def forward(self, batch: ToyBatch) -> LossParts:
        if len(batch.samples) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().forward(batch)


def test_out_of_memory_changes_no_weight_and_smaller_micro_batches_go_on(tmp_path: Path) -> None:
    run = toy_run(tmp_path, source=ToySource(samples=12, batch=4, micro=4), model=Greedy())
    before = weights(run.model)
    with pytest.raises(OutOfMemory) as caught:
        next(run.steps())
    assert caught.value.exit_code == 5
    assert same(before, weights(run.model))
    assert run.loop.state.step == run.loop.state.batch == 0
    run.source = replace(run.source, micro=2)
    assert [report.step for report in run.steps()] == [1, 2, 3, 4]


def test_what_was_done_when_memory_runs_out_is_done(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=5, model=Greedy())
    seen = []
    with pytest.raises(OutOfMemory):
        seen.extend(iter_into(run.loop.steps(fed([batch_of([1])], [batch_of([2])], [batch_of([3, 4, 5])])), seen))
    assert [report.step for report in seen] == [1, 2]
    assert (run.loop.state.step, run.loop.state.batch) == (2, 2)
    assert all(state["step"] == 2 for state in run.optimizer.state.values())


def test_other_runtime_errors_are_not_taken_for_memory(tmp_path: Path) -> None:
    class Wrong(Toy):
        def forward(self, batch: ToyBatch) -> LossParts:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        next(toy_run(tmp_path, model=Wrong()).steps())


@pytest.mark.parametrize("every", [30, 31, 41, 45, 90, 1000])
def test_time_budget_ends_on_time_with_validation_and_saving(tmp_path: Path, every: int) -> None:
    """Steps of 1 s, a validation of 7 s now and then and at the end, and a last saving of 5 s, in a budget of 120 s."""
    now = [1000.0]
    run = toy_run(tmp_path, seconds=120.0, warmup=0.1)
    run.loop.clock = Clock(0.0, now=lambda: now[0])
    run.loop.clock.expect("validation", 7.0)
    run.loop.clock.expect("saving", 5.0)

    def slow_feed() -> Iterator[Any]:
        for index in range(1000):
            yield Position(0, index + 1), [Slow((1.0,), now)]

    rates = []
    run.loop.model = model = Scaled()
    run.loop._parameters = list(model.parameters())
    run.loop.optimizer = torch.optim.SGD(model.parameters(), lr=1.0, fused=True)
    for report in run.loop.steps(slow_feed()):
        rates.append(report.rate)
        if report.step % every == 0:
            with run.loop.clock.during("validation"):
                now[0] += 7.0
    if len(rates) % every:
        now[0] += 7.0  # the last validation, unless it was just done
    now[0] += 5.0  # the last saving
    assert -10.0 <= now[0] - 1120.0 <= 2.4
    if every == 1000:
        assert now[0] - 1120.0 >= -2.4  # 2 %
    peak = max(rates)
    assert peak == pytest.approx(1e-2, rel=0.05)
    assert 0 < rates[0] < 0.1 * peak
    assert rates[-1] < 0.05 * peak  # the schedule ends where the time does


@dataclass(frozen=True)
class Slow(Fixed):
    now: list[float]

    def to(self, device: Any, *, non_blocking: bool = False) -> Fixed:
        self.now[0] += 1.0
        return self


def test_budget_counts_the_time_of_earlier_starts() -> None:
    budget = Budget.of(minutes=1)
    now = [5.0]
    clock = Clock(50.0, now=lambda: now[0])
    clock.start()
    now[0] += 4.0
    assert clock.seconds() == pytest.approx(54.0)
    assert budget.leaves_time(clock.seconds(), next_step=1.0, reserve=5.0)
    assert not budget.leaves_time(clock.seconds(), next_step=1.0, reserve=5.1)


def test_epochs_become_steps() -> None:
    source = ToySource(samples=10, batch=3)
    assert Budget.of(epochs=3, epoch_steps=source.steps).steps == 12
    assert Budget.of(epochs=1.5, epoch_steps=source.steps).steps == 6
    assert Budget.of(epochs=3, steps=7, epoch_steps=source.steps).steps == 7
    asked: list[int] = []
    assert Budget.of(epochs=2.5, epoch_steps=lambda epoch: asked.append(epoch) or 10 + epoch).steps == 25  # type: ignore[func-returns-value]
    assert set(asked) == {0}, "no later epoch is drawn before the first step"


def test_parts_of_a_budget_end_at_rounded_shares_of_all_before() -> None:
    assert Budget(steps=1000).parts([0.9, 0.1]) == (Until(step=900), Until())
    assert Budget(steps=15).parts([0.1, 0.1, 0.8]) == (Until(step=2), Until(step=3), Until())  # 1.5 and 3.0
    assert Budget(steps=15, seconds=60.0).parts([0.9, 0.1]) == (Until(step=14), Until())
    assert Budget(seconds=60.0).parts([0.7, 0.2, 0.1]) == (Until(share=0.7), Until(share=pytest.approx(0.9)), Until())
    assert Budget(steps=10).parts([1.0]) == (Until(),)
    assert Budget(steps=2).without_steps(Budget(steps=2).parts([0.9, 0.1])) == [1]
    assert Budget(steps=3).without_steps(Budget(steps=3).parts([0.1, 0.2, 0.7])) == [0]
    assert Budget(steps=10).without_steps(Budget(steps=10).parts([0.9, 0.1])) == []


@given(st.integers(1, 10**6), st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_parts_of_steps_lie_within_half_a_step_of_their_shares(steps: int, weights: list[int]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    ends = [end.step for end in Budget(steps=steps).parts(shares)[:-1]]
    assert ends == sorted(end for end in ends if end is not None)
    for number, end in enumerate(ends, start=1):
        assert end is not None
        assert abs(end - steps * sum(weights[:number]) / sum(weights)) <= 0.5 + 1e-6


def test_a_part_ends_behind_its_last_step_and_the_next_goes_on(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=7)
    source = run.source
    for until, expected in ((Until(step=3), [1, 2, 3]), (Until(step=3), []), (Until(), [4, 5, 6, 7])):
        feed = iterate(source, start=Position(run.loop.state.epoch, run.loop.state.batch))
        assert [report.step for report in run.loop.steps(feed, until)] == expected
        feed.close()
        assert run.loop.passed == (until.step is not None)


def test_a_part_of_the_time_ends_without_using_up_the_batch_that_was_asked_for(tmp_path: Path) -> None:
    now = [0.0]
    run = toy_run(tmp_path, seconds=100.0, warmup=0.1)
    run.loop.clock = Clock(0.0, now=lambda: now[0])
    run.loop.model = model = Scaled()
    run.loop._parameters = list(model.parameters())
    run.loop.optimizer = torch.optim.SGD(model.parameters(), lr=1.0, fused=True)

    def feed(first: int) -> Iterator[Any]:
        for index in range(first, 1000):
            yield Position(0, index + 1), [Slow((1.0,), now)]

    early = list(run.loop.steps(feed(0), Until(share=0.4)))
    assert run.loop.passed
    assert 38 <= len(early) <= 41
    assert run.loop.state.batch == len(early)
    late = list(run.loop.steps(feed(len(early)), Until()))
    assert not run.loop.passed
    assert run.loop.state.batch == len(early) + len(late) == run.loop.state.step
    assert 98 <= run.loop.state.step <= 100
