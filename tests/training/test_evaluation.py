"""Each example exactly once, in input order; sums added as sums."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from toy_training import ToyBatch, ToyRun, ToySource, batch_of

from bertkit.training.evaluation import collect_outputs, evaluate_losses


def numbers_of(model: nn.Module, batch: ToyBatch) -> Sequence[int]:
    return batch.samples.tolist()  # type: ignore[no-any-return]


def found_by(folder: Path, processes: int) -> list[dict[str, Any]]:
    return [json.loads((folder / f"found-{rank}.json").read_text()) for rank in range(processes)]


def plan(rows: int, size: int) -> list[list[int]]:
    return [list(range(start, min(start + size, rows))) for start in range(0, rows, size)]


@pytest.fixture
def run(tmp_path: Path) -> ToyRun:
    return ToyRun.start(tmp_path, source=ToySource(), steps=2, dropout=0.5)


def test_losses_are_sums_over_all_batches(run: ToyRun) -> None:
    found = evaluate_losses(run.model, [batch_of([1]), batch_of([2, 3, 4, 5])], run.loop.accelerator, run.peers)
    whole = evaluate_losses(run.model, [batch_of([1, 2, 3, 4, 5])], run.loop.accelerator, run.peers)
    assert found is not None
    assert whole is not None
    for name, part in whole.items():
        assert found[name].mean == pytest.approx(part.mean, rel=1e-6)
        assert (found[name].count, found[name].accuracy) == (part.count, part.accuracy)
    run.model.eval()
    with torch.no_grad():  # by hand, without dropout
        total = run.model(batch_of([1, 2, 3, 4, 5]))["nsp"].total.item()
    assert whole["nsp"].total == pytest.approx(total)


def test_mode_and_gradients_are_left_as_they_were(run: ToyRun) -> None:
    run.model.train()
    evaluate_losses(run.model, [batch_of([1])], run.loop.accelerator, run.peers)
    assert run.model.training
    assert all(each.grad is None for each in run.model.parameters())
    run.model.eval()
    evaluate_losses(run.model, [batch_of([1])], run.loop.accelerator, run.peers)
    assert not run.model.training


def test_outputs_come_in_the_order_of_the_examples_whatever_the_plan(run: ToyRun) -> None:
    odd = [[4, 0], [3], [1, 2, 5]]
    seen: list[int] = []

    def collate(numbers: Sequence[int]) -> ToyBatch:
        seen.extend(numbers)
        return batch_of([10 * number for number in numbers])

    found = collect_outputs(run.model, odd, collate, numbers_of, run.loop.accelerator, run.peers)
    assert found == [0, 10, 20, 30, 40, 50]
    assert sorted(seen) == list(range(6))
    assert collect_outputs(run.model, [], collate, numbers_of, run.loop.accelerator, run.peers) == []


@pytest.mark.parametrize("wrong", [[[0, 1], [1]], [[0], [2]]])
def test_plans_that_name_an_example_twice_or_never_are_refused(run: ToyRun, wrong: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="exactly once"):
        collect_outputs(run.model, wrong, lambda n: batch_of(list(n)), numbers_of, run.loop.accelerator, run.peers)


def test_signal_gives_an_evaluation_up(run: ToyRun) -> None:
    asked = [0]

    def stop() -> int:
        asked[0] += 1
        return 2 if asked[0] > 2 else 0

    batches = [batch_of([n]) for n in range(5)]
    assert evaluate_losses(run.model, batches, run.loop.accelerator, run.peers, stop=stop) is None
    assert asked == [3]
    assert (
        collect_outputs(run.model, [[0]], lambda n: batch_of([0]), numbers_of, run.loop.accelerator, run.peers, stop=stop) is None
    )


def test_progress_is_told(run: ToyRun) -> None:
    told: list[tuple[int, int | None]] = []
    collate = lambda numbers: batch_of(list(numbers))  # noqa: E731
    collect_outputs(
        run.model, plan(5, 2), collate, numbers_of, run.loop.accelerator, run.peers, progress=lambda a, b: told.append((a, b))
    )
    assert told == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.slow
def test_several_processes_give_what_one_gives(tmp_path: Path, several: tuple[int, Path]) -> None:
    """22 rows in 8s over 3, 11 in 4s over 2, 1 over both: the official cases, and more processes than batches."""
    processes, folder = several
    found = found_by(folder, processes)
    run = ToyRun.start(tmp_path / "one", source=ToySource(), steps=2)
    for rows, size in ((22, 8), (11, 4), (1, 8)):
        assert found[0][f"{rows}"] == list(range(rows))
        assert all(others[f"{rows}"] == [] for others in found[1:])
        batches = [batch_of(numbers) for numbers in plan(rows, size)]
        one = evaluate_losses(run.model, batches, run.loop.accelerator, run.peers)
        assert one is not None
        for theirs in found:
            for name, part in one.items():
                total, count, correct = theirs[f"losses {rows}"][name]
                assert (count, correct) == (part.count, part.correct)
                assert total / max(count, 1) == pytest.approx(part.mean, abs=1e-6)
    assert [theirs["given up"] for theirs in found] == [None] * processes  # one process's signal is everyone's
    assert [theirs["error"] for theirs in found] == ["No room. (disk) Make some."] * processes
    assert [theirs["shared"] for theirs in found] == [7] * processes
    assert [theirs["stopped"] for theirs in found] == [[3, 15]] * processes
    assert [theirs["memory"] for theirs in found] == [[0, "OutOfMemory"]] * processes
    assert len({str(theirs["weights"]) for theirs in found}) == 1


@pytest.mark.slow
def test_stopped_process_is_named_by_the_others(several: tuple[int, Path]) -> None:
    """The last process stopped itself (SIGSTOP) until the first named it and woke it."""
    processes, folder = several
    last = processes - 1
    for theirs in found_by(folder, processes)[:last]:
        assert theirs["watch"] == [f"Process {last} has given no sign of life for 2 seconds."]
