"""The memory that a process may still take: the machine's, or what is left of its container's or its job's. No torch here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

CGROUP, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

# Limit, use and facts of a group, and which facts are page cache, that counts as free (cgroup v2, then v1).
_NEW = ("memory.max", "memory.current", ("inactive_file", "active_file"))
_OLD = ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file",))
_Names = tuple[str, str, tuple[str, ...]]


def free_memory(cgroup: Path = CGROUP, own: Path = OWN) -> float:
    """Bytes that may still be taken.

    Args:
        cgroup: Where the limits of groups are written.
        own: The groups that this process is in: a container's is the topmost, a scheduler's job lies below.
    """
    left = [_left(folder, names) for folder, names in _groups(cgroup, own)]
    return float(min([psutil.virtual_memory().available, *(bytes_left for bytes_left in left if bytes_left is not None)]))


def _groups(cgroup: Path, own: Path) -> Iterator[tuple[Path, _Names]]:
    """The group of this process and all that it lies in."""
    yield cgroup, _NEW
    yield cgroup / "memory", _OLD
    try:
        lines = own.read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, _, named = line.partition(":")
        controllers, _, path = named.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        top, names = (cgroup / "memory", _OLD) if controllers else (cgroup, _NEW)
        folder = top / path.lstrip("/")
        while folder != top:
            yield folder, names
            folder = folder.parent


def _left(folder: Path, names: _Names) -> int | None:
    """What is left of a group's limit; None where it has none."""
    limit, used, cached = names
    try:
        most = (folder / limit).read_text().strip()
        now = int((folder / used).read_text())
        facts = dict(line.split()[:2] for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if most == "max" or int(most) > 2**60:  # v1 writes a huge number where there is none
        return None
    return int(most) - now + sum(int(facts.get(name, 0)) for name in cached)
