"""How many threads a process computes with: the cores it may use, shared with its neighbours on the machine."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path


def allowed_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: its affinity, a container's quota, and no more than are real (not hyper-threads)."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    import psutil

    physical = psutil.cpu_count(logical=False)
    return max(1, min(cores, physical or cores, _quota(cgroup) or cores))


def _quota(cgroup: Path) -> int | None:
    """The container's share of processors, rounded up; None where it has no limit (cgroup v2, then v1)."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return None if quota in ("max", "-1") else max(1, math.ceil(int(quota) / int(period)))


def threads_to_use(cores: int, environment: Mapping[str, str]) -> int:
    """Threads of this process: the person's OMP_NUM_THREADS, else ``cores`` ÷ the processes on this machine.

    torchrun sets OMP_NUM_THREADS=1 where several processes start and nobody set it; that value was nobody's wish and
    does not count. Any other value does.
    """
    local = int(environment.get("LOCAL_WORLD_SIZE", "1") or 1)
    wish = environment.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wish.isdigit() and int(wish) >= 1 and not (local > 1 and wish == "1"):
        return int(wish)
    return max(1, cores // local)
