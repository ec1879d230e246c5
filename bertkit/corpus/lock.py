"""One process at a time makes a thing: a lock file that the system frees when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bertkit.notices import say

_EVERY = 0.2  # seconds between two looks at a lock that another holds


@contextmanager
def only_one(path: Path, what: str) -> Iterator[bool]:
    """Waits until no other process holds ``path``, holds it inside, and removes it behind.

    Args:
        path: The lock's file.
        what: What the holder does, for the notice: "builds this token store".

    Yields:
        True; False at once where the file system knows no locks, so that the caller works apart.
    """
    file = _held(path, what)
    if file is None:
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        file.close()


def _held(path: Path, what: str) -> BinaryIO | None:
    waited = False
    while True:
        file = path.open("a+b")
        try:
            taken = _take(file)
        except OSError:
            file.close()
            return None
        if taken and _is_still(file, path):
            file.seek(0)
            file.truncate()
            _tell(file)
            return file
        if not taken and not waited:
            waited = True
            say("waiting", f"Another process {what}{_holder(file)}; this one waits for it.")
        file.close()
        if not taken:
            time.sleep(_EVERY)


def _tell(file: BinaryIO) -> None:
    """Writes into the lock who holds it, for those who wait; on a full disk they are not told, and it is held all the same."""
    said = json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode()
    with contextlib.suppress(OSError):
        os.write(file.fileno(), said)


def _is_still(file: BinaryIO, path: Path) -> bool:
    """Whether the file that was locked is the one that has the name: its last holder removes it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _holder(file: BinaryIO) -> str:
    try:
        file.seek(0)
        holder = json.loads(file.read())
        return f" (process {int(holder['pid'])} on {holder['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> bool:
        try:
            file.seek(1 << 30)  # a byte that nobody reads
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _take(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
