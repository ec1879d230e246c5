"""Processes that make ids of batches, each started anew with this package alone (no torch), and the results in order.

A worker is `python -c …` with two pipes, not a process of multiprocessing: those run the caller's own script again first,
with whatever it imports, and need it to be guarded. Messages are pickles behind their length.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import IO, Any

from bertkit.corpus.passes import Batch, Made, Maker
from bertkit.errors import BertkitError, ResourceError

PATIENCE = 10.0  # seconds before a worker is said to hang, beside those that its batch may take: a minute for the usual one
_CHARACTERS_A_SECOND = 20_000  # of the slowest machine that is still at work
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from bertkit.corpus.workers import work; work()"
_THREADS = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# Left alone, glibc raises these to the largest array that it has seen, and keeps what smaller ones have left.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1048576", "MALLOC_TRIM_THRESHOLD_": "1048576"}
_Task = tuple[Batch, Future[Made]]


class Workers:
    """Some processes that make ids; ``with`` ends them, whatever happens.

    Args:
        maker: What each of them does; pickled.
        count: How many; 0: this process does it itself.
        safe_point: Called before a lost worker is reported: where the caller itself was told to stop, that is the reason.
    """

    def __init__(self, maker: Maker, count: int, *, safe_point: Callable[[], None] = lambda: None) -> None:
        self._maker = maker
        self._count = count
        self._safe_point = safe_point
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._processes: list[_Process] = []

    def __enter__(self) -> Workers:
        payload = pickle.dumps(self._maker, protocol=pickle.HIGHEST_PROTOCOL) if self._count else b""
        try:
            for number in range(self._count):
                self._processes.append(_Process(number, payload, self._tasks))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def made(self, batches: Iterable[Batch]) -> Iterator[Made]:
        """What becomes of each batch, in order; a few are under way at once, whatever their number.

        Raises:
            ResourceError: A worker died or hangs.
        """
        if not self._count:
            yield from map(self._maker, batches)
            return
        pending: deque[_Task] = deque()
        for batch in batches:
            if len(pending) == 2 * self._count:
                yield self._result(*pending.popleft())
            task = (batch, Future[Made]())
            pending.append(task)
            self._tasks.put(task)
        while pending:
            yield self._result(*pending.popleft())

    def _result(self, batch: Batch, future: Future[Made]) -> Made:
        patience = PATIENCE + batch.characters / _CHARACTERS_A_SECOND
        try:
            return future.result(timeout=patience)
        except TimeoutError:
            self._safe_point()
            raise ResourceError(
                f"A worker of the build has given nothing for {patience:.0f} seconds.",
                where=", ".join(f"process {each.pid}" for each in self._processes),
                hint="Start the same command again: it goes on where this one stopped.",
            ) from None
        except ResourceError:
            self._safe_point()
            raise

    def _end(self) -> None:
        for each in self._processes:
            each.kill()
        for _ in self._processes:
            self._tasks.put(None)
        for each in self._processes:
            each.join()


class _Process:
    """One worker and the thread that talks with it: a task to it, its answer back, one at a time."""

    def __init__(self, number: int, payload: bytes, tasks: queue.SimpleQueue[_Task | None]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**_MEMORY, **os.environ, **_THREADS},
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is the caller's alone
        )
        self.pid = self._process.pid
        self._payload = payload
        self._tasks = tasks
        self._thread = threading.Thread(target=self._talk, name=f"bertkit build worker {number}", daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Ends the process at once; what it was at is not needed any more."""
        self._process.kill()

    def join(self) -> None:
        """Waits for the end of both."""
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def _talk(self) -> None:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        greeted = False
        while (task := self._tasks.get()) is not None:
            batch, future = task
            try:
                if not greeted:
                    _send(questions, self._payload)
                    greeted = True
                _send(questions, pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL))
                answer = pickle.loads(_receive(answers))
            except (OSError, EOFError, ValueError):
                future.set_exception(self._lost())
                return
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _lost(self) -> ResourceError:
        code = self._process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return ResourceError(
            f"A worker of the build {how}.",
            where=f"process {self.pid}",
            hint="SIGKILL is often the machine running out of memory. Start the same command again: it goes on where this one "
            "stopped.",
        )


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(8, "little"))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    size = int.from_bytes(_exactly(pipe, 8), "little")
    return _exactly(pipe, size)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def work() -> None:
    """A worker's life: what it is to do first, then an answer to each batch until the pipe ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a scheduler sends them to all; the one who started it ends it
        signal.signal(number, signal.SIG_IGN)
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # no library's print gets among the answers
    with contextlib.suppress(EOFError, OSError):
        maker: Maker = pickle.loads(_receive(questions))
        while True:
            batch = pickle.loads(_receive(questions))
            answer: Any
            try:
                answer = maker(batch)
            except BertkitError as error:
                answer = error
            except MemoryError:
                answer = ResourceError(
                    "A worker of the build ran out of memory.",
                    where=f"process {os.getpid()}",
                    hint="Start the same command again: it goes on where this one stopped. `bertkit corpus build --workers 0` "
                    "takes the least memory.",
                )
            except Exception as error:
                answer = RuntimeError(f"{type(error).__name__} in a worker of the build: {error}")
            _send(answers, pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL))
    os._exit(0)  # nothing to put in order, and an interpreter takes its time to end
