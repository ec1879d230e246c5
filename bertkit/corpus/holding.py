"""Token stores in use: a run holds those that it reads, and what is held is not removed.

The hold is a shared lock of the system on store.json, which ends with the process, however that ends. Where the file
system knows no locks nothing is held; Windows refuses by itself to remove a file that is mapped.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bertkit.corpus.store_files import FACTS

_LOOKS, _EVERY = 50, 0.01  # somebody's look at a lock takes it for an instant: tries to hold a store, seconds between them

if os.name == "nt":

    def _lock(file: BinaryIO, *, alone: bool) -> bool:
        return True

else:
    import fcntl

    def _lock(file: BinaryIO, *, alone: bool) -> bool:
        try:
            fcntl.flock(file.fileno(), (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # no locks here
            return True
        return True


@contextmanager
def held(folders: Iterable[Path]) -> Iterator[None]:
    """Holds the stores in these folders inside. The time of use is left on each folder."""
    with contextlib.ExitStack() as stack:
        for folder in folders:
            with contextlib.suppress(OSError):
                _hold(stack.enter_context((folder / FACTS).open("rb")))
                os.utime(folder)
        yield


def _hold(file: BinaryIO) -> None:
    for _ in range(_LOOKS):
        if _lock(file, alone=False):
            return
        time.sleep(_EVERY)


def is_held(folder: Path) -> bool:
    """Whether another run is reading the store in this folder."""
    return _is_locked(folder / FACTS)


def is_being_made(lock: Path) -> bool:
    """Whether a build holds its lock file."""
    return _is_locked(lock)


def _is_locked(path: Path) -> bool:
    for mode in ("r+b", "rb"):  # NFS lends a lock of one's own to a file that is open for writing alone: flock(2)
        try:
            with path.open(mode) as file:
                return not _lock(file, alone=True)
        except OSError:
            continue
    return False
