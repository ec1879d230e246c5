"""The loader: exact order for any number of workers, a clean end, dead and hanging workers named."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from itertools import islice

import pytest
import torch

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.loader import _dumps, iterate
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.pretraining import PretrainingSource
from bertkit.batches.source import Position
from bertkit.errors import DataError, ResourceError


class Numbers:
    """Five steps an epoch; each gives its coordinates. Some steps misbehave."""

    def __init__(self, trouble=None):
        self.trouble = trouble

    def steps(self, epoch):
        return 5

    def step(self, epoch, index, rank=0, world=1):
        if self.trouble and (epoch, index) == (1, 2):
            if self.trouble == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.trouble == "stops":
                os.kill(os.getpid(), signal.SIGSTOP)
            if self.trouble == "data":
                raise DataError("a bad row", where="row 3")
            if self.trouble == "starves":
                raise MemoryError
            raise ZeroDivisionError("a bug")
        return [torch.tensor([epoch, index, rank, world])]


def taken(source, count, **more):
    steps = iterate(source, **more)
    try:
        return [(place, [batch.tolist() for batch in batches]) for place, batches in islice(steps, count)]
    finally:
        steps.close()


EXPECTED = [(Position(e, i + 1), [[e, i, 1, 3]]) for e in range(4) for i in range(5)]


def test_the_order_is_exact():
    assert taken(Numbers(), 12, rank=1, world=3) == EXPECTED[:12]
    assert taken(Numbers(), 4, rank=1, world=3, start=Position(1, 3)) == EXPECTED[8:12]
    assert taken(Numbers(), 2, rank=1, world=3, start=Position(1, 5)) == EXPECTED[10:12]


@pytest.mark.slow
def test_the_order_is_exact_with_four_workers_and_they_end():
    steps = iterate(Numbers(), rank=1, world=3, workers=4, start=Position(0, 2))
    got = [(place, [batch.tolist() for batch in batches]) for place, batches in islice(steps, 14)]
    assert got == EXPECTED[2:16]
    assert len(multiprocessing.active_children()) == 4
    steps.close()
    assert multiprocessing.active_children() == []


class Libraries:
    """Steps of a source of pre-training; each gives the libraries that its process has loaded instead."""

    def __init__(self, source):
        self.source = source

    def steps(self, epoch):
        return self.source.steps(epoch)

    def step(self, epoch, index, rank=0, world=1):
        assert self.source.step(epoch, index, rank, world)
        return [sorted({name.partition(".")[0] for name in sys.modules})]


@pytest.mark.slow
def test_a_worker_loads_no_library_that_batches_do_not_need(prose, vocabulary):
    source = PretrainingSource(prose(30), vocabulary, ExampleSettings(), MaskingSettings(), seed=1, batch_size=8)
    steps = iterate(Libraries(source), workers=1)
    _, (loaded,) = next(steps)
    steps.close()
    assert {"torch", "numpy", "bertkit"} <= set(loaded)
    assert not {"datasets", "evaluate", "transformers", "accelerate", "pandas", "pyarrow", "sklearn", "rich"} & set(loaded)


def test_closing_ends_the_thread():
    steps = iterate(Numbers())
    next(steps)
    steps.close()
    assert "bertkit-loader" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["token", "word", "span"])
def test_pretraining_batches_are_the_same_for_any_workers(prose, vocabulary, kind):
    masking = MaskingSettings(kind=kind)
    source = PretrainingSource(
        prose(40), vocabulary, ExampleSettings(max_length=64), masking, seed=3, batch_size=16, micro_tokens=400
    )
    count = source.steps(0) + 3
    runs = []
    for workers in (0, 1, 2):
        steps = iterate(source, workers=workers)
        runs.append(list(islice(steps, count)))
        steps.close()
    for other in runs[1:]:
        for (place, batches), (at, others) in zip(runs[0], other, strict=True):
            assert place == at
            for one, two in zip(batches, others, strict=True):
                assert torch.equal(one.packed.input_ids, two.packed.input_ids)
                assert torch.equal(one.packed.boundaries, two.packed.boundaries)
                assert torch.equal(one.masked_positions, two.masked_positions)
                assert torch.equal(one.masked_labels, two.masked_labels)
                assert torch.equal(one.next_sentence_labels, two.next_sentence_labels)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_that_dies_is_named():
    start = time.monotonic()
    with pytest.raises(ResourceError, match=r"loader worker \d was ended by SIGKILL") as named:
        taken(Numbers("dies"), 20, workers=2)
    assert time.monotonic() - start < 60
    assert named.value.exit_code == 5
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_that_hangs_is_named():
    steps = iterate(Numbers("stops"), workers=1, patience=2.0)
    assert len(list(islice(steps, 7))) == 7
    with pytest.raises(ResourceError, match=r"loader worker 0 has given nothing for 2 seconds"):
        next(steps)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_errors_of_a_source_come_out_at_their_place(workers):
    steps = iterate(Numbers("data"), workers=workers)
    assert len(list(islice(steps, 7))) == 7
    with pytest.raises(DataError, match="a bad row"):
        next(steps)
    steps = iterate(Numbers("bug"), workers=workers)
    assert len(list(islice(steps, 7))) == 7
    with pytest.raises((ZeroDivisionError, RuntimeError), match="a bug"):
        next(steps)


def test_a_worker_without_memory_is_no_bug():
    with pytest.raises(ResourceError, match="ran out of memory"):
        taken(Numbers("starves"), 10, workers=1)


def test_results_travel_by_value(monkeypatch):
    import pickle

    def refuse(*_):
        raise AssertionError("shared memory was asked for")

    monkeypatch.setattr("torch.UntypedStorage._new_using_filename_cpu", refuse, raising=False)
    monkeypatch.setattr("torch.UntypedStorage._share_filename_cpu_", refuse, raising=False)
    data = _dumps([torch.arange(6, dtype=torch.int32), {"x": torch.zeros(2, 0)}])
    assert b"torch.storage" not in data
    back = pickle.loads(data)
    assert back[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert back[0].dtype == torch.int32
    assert back[1]["x"].shape == (2, 0)
