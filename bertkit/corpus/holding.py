"""Token stores in use: a run holds those that it reads, and what is held is not removed.

The hold is a shared lock of the system on store.json, which ends with the process, however that ends. Where the file
system knows no locks nothing is held; Windows refuses by itself to remove a file that is mapped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_FACTS = "store.json"

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
def held(folders: Iterable[Path | None]) -> Iterator[None]:
    """Holds the stores in these folders inside; None stands for a store in memory. The time of use is left on each folder."""
    with contextlib.ExitStack() as stack:
        for folder in folders:
            if folder is not None:
                with contextlib.suppress(OSError):
                    _lock(stack.enter_context((folder / _FACTS).open("rb")), alone=False)
                    os.utime(folder)
        yield


def is_held(folder: Path) -> bool:
    """Whether another run is reading the store in this folder."""
    try:
        with (folder / _FACTS).open("rb") as file:
            return not _lock(file, alone=True)
    except OSError:
        return False


def is_being_made(lock: Path) -> bool:
    """Whether a build holds its lock file."""
    try:
        with lock.open("rb") as file:
            return not _lock(file, alone=True)
    except OSError:
        return False
