"""Notices within a minute that another process of the run is gone or stands still, and says which.

Every process writes a heartbeat into the store through which torch's processes found one another; a thread looks at the
others'. A process that waits in a collective operation cannot be woken, so what happens then is the caller's: usually to
say it and to leave with exit code 5.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store

PERIOD, LATE = 5.0, 45.0
"""Seconds between two heartbeats, and without one before a process counts as lost."""


class Watch:
    """Watches the other processes while it is entered; does nothing in a run of one.

    Args:
        rank: Of this process.
        world: Processes.
        lost: Called once, in the watching thread, with a sentence that names the process.
        period: Seconds between two heartbeats.
        late: Seconds without one.
    """

    def __init__(self, rank: int, world: int, lost: Callable[[str], None], *, period: float = PERIOD, late: float = LATE) -> None:
        self._rank, self._world, self._lost = rank, world, lost
        self._period, self._late = period, late
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if self._world > 1:
            # A connection of its own: the shared one may be held for minutes by whoever waits on it.
            shared: Any = dist.distributed_c10d._get_default_store()
            store = PrefixStore("bertkit-watch", shared.clone())
            store.set_timeout(timedelta(seconds=self._period))
            self._thread = threading.Thread(target=self._watch, args=(store,), name="bertkit-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * self._period)

    def _watch(self, store: Store) -> None:
        seen = {rank: ("", time.monotonic()) for rank in range(self._world) if rank != self._rank}
        beat, before = 0, time.monotonic()
        while not self._over.is_set():
            beat += 1
            if time.monotonic() - before > 2 * self._period + 5.0:  # this process itself stood still (Ctrl-Z): so may the others
                seen = {rank: (found, max(since, time.monotonic())) for rank, (found, since) in seen.items()}
            before = time.monotonic()
            try:
                store.set(str(self._rank), str(beat))
                beats = {rank: _last(store, rank) for rank in seen}
            except (RuntimeError, OSError):  # the store lives in a process of the run, or in the launcher
                if not self._over.is_set():
                    self._lost("The process that the others meet in (process 0 or the launcher) is gone.")
                return
            now = time.monotonic()
            for rank, found in beats.items():
                if found == "over":
                    seen[rank] = (found, float("inf"))
                elif found != seen[rank][0]:
                    seen[rank] = (found, now)
                elif now - seen[rank][1] > self._late:
                    self._lost(f"Process {rank} has given no sign of life for {self._late:.0f} seconds.")
                    return
            self._over.wait(self._period)
        try:
            store.set(str(self._rank), "over")
        except (RuntimeError, OSError):
            return


def _last(store: Store, rank: int) -> str:
    return store.get(str(rank)).decode() if store.check([str(rank)]) else ""
