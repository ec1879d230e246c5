"""A process of the run that dies or hangs is named within a minute, and the others leave with exit code 5.

Who waits for another in a collective operation cannot be woken, so the watching thread itself says what it knows and ends
the process. Nothing is lost by that: what is half-written bears no final name, and the lock of a process that is gone is
recognised as such.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bertkit.errors import ResourceError
from bertkit.jobs.console import Console, clean, to_json
from bertkit.training.peers import Peers
from bertkit.training.watch import Watch

GRACE = 8.0  # seconds in which a broken connection may tell the waiting thread by itself, in order


@contextmanager
def watching(peers: Peers, console: Console) -> Iterator[None]:
    """Watches the other processes of the run inside; does nothing in a run of one."""
    over = threading.Event()

    def lost(words: str) -> None:
        if not over.wait(GRACE):
            leave(console, ResourceError(words, hint="The same command goes on from the newest checkpoint."), peers.rank)

    with Watch(peers.rank, peers.world, lost):
        try:
            yield
        finally:
            over.set()


def leave(console: Console, error: ResourceError, rank: int) -> None:
    """Tells the error as the command line would, and ends this process."""
    speaker = "" if console.first else f"[process {rank}] "
    print(clean(f"{speaker}Error: {error.message}\n  {error.hint}"), file=console.stderr, flush=True)
    if console.json and console.first:
        facts = {"kind": error.kind, "message": error.message, "where": error.where, "hint": error.hint}
        told = {"ok": False, "schema": 1, "error": facts, "exit_code": error.exit_code}
        print(to_json(told, stream=console.stdout), file=console.stdout, flush=True)
    os._exit(error.exit_code)
