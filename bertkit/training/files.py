"""Writing so that a power cut, a full disk or a kill leaves either the whole thing or nothing under its name."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertkit.errors import ResourceError


def sync(path: Path) -> None:
    """Flushes a file, or the list of names of a folder, to the disk (folders where the system lets one)."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(folder: Path) -> None:
    """Flushes every file and folder below ``folder``, and ``folder``."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def digest(path: Path) -> str:
    """SHA-256 of a file, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def readable(size: float) -> str:
    """A count of bytes in words: ``1.3 GB``."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def check_space(folder: Path, needed: int, what: str = "the first checkpoint") -> None:
    """Looks for room before work begins.

    Raises:
        ResourceError: The disk of ``folder`` has fewer than ``needed`` bytes free.
    """
    there = folder
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if free < needed:
        raise ResourceError(
            f"The disk has {readable(free)} free, and {what} needs {readable(needed)}.",
            where=str(folder),
            hint="Make room, or name another --output-dir.",
        )


@contextmanager
def saving(folder: Path, needed: int) -> Iterator[None]:
    """Turns failures of the disk while ``folder`` is written into one error that says how much is needed.

    Raises:
        ResourceError: Disk full, quota, I/O error.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        full = isinstance(error, SafetensorError) or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise ResourceError(
            f"Saving failed: {reason}. {readable(needed)} are needed"
            + (f", {readable(shutil.disk_usage(folder.parent).free)} are free." if folder.parent.exists() else "."),
            where=str(folder),
            hint="The checkpoints before it are still there: "
            + ("make room and " if full else "")
            + "start the same command again to go on from the newest.",
        ) from error
