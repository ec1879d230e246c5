"""Batches ahead of the one that trains, in their exact order, whatever prepares them.

Without workers a thread prepares them; with workers, spawned processes, each asked in turn over its own pipe. Results
come as bytes through the pipes, never through shared memory, so a small ``/dev/shm`` does not matter; a worker that
dies or hangs is named.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from multiprocessing.connection import Connection
from typing import Any

import torch

from bertkit.batches.source import BatchSource, Position
from bertkit.errors import BertkitError, ResourceError

PATIENCE = 50.0  # seconds for one step of batches before a worker is said to hang
STARTING = 600.0  # seconds for a worker to start: it imports torch, which takes minutes where many do so on few cores


def iterate(
    source: BatchSource,
    *,
    start: Position = Position(),
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    ahead: int = 4,
    patience: float = PATIENCE,
) -> Generator[tuple[Position, list[Any]], None, None]:
    """Yields the micro-batches of each optimizer step from ``start`` on, over one epoch after another, without end.

    The position beside them is the state to keep once they are trained on: at the end of an epoch its ``batch`` equals
    ``source.steps(epoch)``, which is a fine ``start`` too. Close the generator to end its workers.

    Args:
        source: Pure and picklable.
        start: What is done already.
        rank: This process among ``world``.
        world: Processes.
        workers: Processes that prepare batches; 0: a thread of this one.
        ahead: Steps prepared ahead (each worker holds one more).
        patience: Seconds before a worker that gives nothing is said to hang.

    Raises:
        ResourceError: A worker died or hangs.
    """
    maker = _in_workers if workers > 0 else _here
    ready: queue.Queue[tuple[Position, list[Any]] | BaseException] = queue.Queue(maxsize=max(1, ahead))
    closed = threading.Event()

    def produce() -> None:
        steps = maker(source, start, rank, world, workers, patience)
        try:
            for item in steps:
                ready.put(item)
                if closed.is_set():
                    break
        except BaseException as error:  # handed to the one who iterates
            ready.put(error)
        finally:
            steps.close()

    thread = threading.Thread(target=produce, name="bertkit-loader", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        closed.set()
        with contextlib.suppress(queue.Empty):
            while True:
                ready.get_nowait()  # the thread may wait for room
        thread.join(timeout=10)


def _places(source: BatchSource, start: Position) -> Iterator[Position]:
    epoch, batch = start.epoch, start.batch
    idle = 0
    while True:
        steps = source.steps(epoch)
        for index in range(batch, steps):
            yield Position(epoch, index)
        idle = idle + 1 if steps == 0 else 0
        if idle > 1:
            raise ValueError("the source has no batches")
        epoch, batch = epoch + 1, 0


Steps = Generator[tuple[Position, list[Any]], None, None]


def _here(source: BatchSource, start: Position, rank: int, world: int, workers: int, patience: float) -> Steps:
    for place in _places(source, start):
        yield Position(place.epoch, place.batch + 1), source.step(place.epoch, place.batch, rank, world)


class _Worker:
    """One spawned process and its pipe."""

    def __init__(self, number: int, payload: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, payload), name=f"loader worker {number}", daemon=True)
        self.process.start()
        theirs.close()  # so that the pipe ends when the worker does
        self.started = False

    def ask(self, place: Position, rank: int, world: int) -> None:
        with self._alive():
            self.pipe.send_bytes(pickle.dumps((place.epoch, place.batch, rank, world)))

    def answer(self, patience: float) -> list[Any]:
        with self._alive():
            if not self.started and self.pipe.poll(STARTING):
                self.pipe.recv_bytes()
                self.started = True
            if not self.started or not self.pipe.poll(patience):
                raise ResourceError(
                    f"{self.process.name} has given nothing for {patience:.0f} seconds.",
                    where=f"process {self.process.pid}",
                    hint="Start the same command again: it goes on from its newest checkpoint; `--workers 0` has none.",
                )
            answer = pickle.loads(self.pipe.recv_bytes())
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError, BrokenPipeError) as gone:
            self.process.join(timeout=5)
            code = self.process.exitcode
            how = f"was ended by {signal.Signals(-code).name}" if code and code < 0 else f"ended with code {code}"
            raise ResourceError(
                f"{self.process.name} {how} while it prepared batches.",
                where=f"process {self.process.pid}",
                hint="SIGKILL is often the machine running out of memory: take fewer `--workers` (0 does without).",
            ) from gone

    def end(self) -> None:
        self.pipe.close()
        self.process.join(timeout=0.5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(timeout=5)


def _in_workers(source: BatchSource, start: Position, rank: int, world: int, workers: int, patience: float) -> Steps:
    payload = pickle.dumps(source)
    pool = [_Worker(number, payload) for number in range(workers)]
    asked: deque[tuple[Position, _Worker]] = deque()
    try:
        for turn, place in enumerate(_places(source, start)):
            worker = pool[turn % workers]
            if len(asked) == 2 * workers:  # two questions each: one in work, one waiting in the pipe
                done, first = asked.popleft()
                yield Position(done.epoch, done.batch + 1), first.answer(patience)
            worker.ask(place, rank, world)
            asked.append((place, worker))
    finally:
        for worker in pool:
            worker.end()


def _work(pipe: Connection, payload: bytes) -> None:
    """A worker's life: says that it is there, and answers each question until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the main process ends the workers
    torch.set_num_threads(1)
    source: BatchSource | None = None
    with contextlib.suppress(EOFError, ConnectionError, BrokenPipeError):
        pipe.send_bytes(b"ready")
        while True:
            epoch, index, rank, world = pickle.loads(pipe.recv_bytes())
            answer: Any
            try:
                source = source or pickle.loads(payload)
                answer = source.step(epoch, index, rank, world)
            except BertkitError as error:
                answer = error
            except MemoryError:
                answer = ResourceError(
                    "A loader worker ran out of memory while it prepared batches.",
                    where=f"process {os.getpid()}",
                    hint="Take fewer `--workers` (0 does without).",
                )
            except Exception as error:
                answer = RuntimeError(f"{type(error).__name__} in a loader worker: {error}")
            pipe.send_bytes(_dumps(answer))


class _Pickler(pickle.Pickler):
    """Tensors travel as numpy arrays, by value: torch's own way would be shared memory or a whole archive each."""

    def reducer_override(self, value: Any) -> Any:
        return (torch.from_numpy, (value.numpy(),)) if type(value) is torch.Tensor else NotImplemented


def _dumps(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()
