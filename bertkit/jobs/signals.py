"""Ctrl-C and SIGTERM -> one flag that a job reads at its safe points. A second signal stops at once.

A job that has safe points says ``with stop.deferred():`` and calls ``stop.check()`` at each of them (before or after a step,
never while a checkpoint is half written). Outside such a block a signal interrupts at once, as it does any program.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bertkit.errors import Stopped, Terminated

_EXIT = {signal.SIGINT: Stopped.exit_code, signal.SIGTERM: Terminated.exit_code}


class StopNow(BaseException):
    """A signal that nobody deferred, or the second one: unwinds at once. ``exit_code`` is 130 or 143.

    No KeyboardInterrupt, which libraries catch and turn into what they like.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


class Stop:
    """The wish to stop, as signals state it. Without :meth:`installed` (a notebook) only :meth:`request` does."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.say = say
        self._signal: int | None = None
        self._received = 0
        self._deferred = 0

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self._signal is not None

    @property
    def number(self) -> int:
        """The signal that came (2, 15), or 0."""
        return self._signal or 0

    def request(self, number: int = signal.SIGINT) -> None:
        """Asks for a stop as the signal would: for other processes' wishes and for tests."""
        if self._signal is None:
            self._signal = number

    def error(self, message: str | None = None, *, hint: str | None = None) -> Stopped:
        """The error that ends a stopped run: exit 130 after SIGINT, 143 after SIGTERM."""
        terminated = self._signal == signal.SIGTERM
        kind = Terminated if terminated else Stopped
        return kind(message or ("Terminated." if terminated else "Interrupted."), hint=hint)

    def check(self) -> None:
        """A safe point: raises where a stop was requested.

        Raises:
            Stopped: After SIGINT; ``Terminated`` after SIGTERM.
        """
        if self._signal is not None:
            raise self.error()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, the first signal only sets the flag."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    @contextmanager
    def installed(self) -> Iterator[Stop]:
        """Listens to SIGINT and SIGTERM inside (in the main thread; elsewhere Python allows no handlers)."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._handle) for number in _EXIT}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._received += 1
        first = self._signal is None
        self.request(number)
        if self._received > 2:  # not even the unwinding ends: leave; nothing is under a final name before it is whole
            os._exit(_EXIT[signal.Signals(number)])
        if self._deferred and first:
            if self.say is not None:
                self.say("Stopping at the next safe point; a second signal stops at once.")
            return
        raise StopNow(_EXIT[signal.Signals(number)])
