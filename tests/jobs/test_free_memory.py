"""What is left of the limits of containers and of schedulers' jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertkit.jobs import memory
from bertkit.jobs.free_memory import free_memory

GB = 10**9
CACHED = {
    "memory.max": "inactive_file 1000000000\nactive_file 500000000\n",
    "memory.limit_in_bytes": "total_inactive_file 2000000000\n",
}
USED = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 64 * GB

    monkeypatch.setattr("psutil.virtual_memory", Memory)


def group(folder: Path, most: int | str, used: int, limit: str = "memory.max") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit).write_text(f"{most}\n")
    (folder / USED[limit]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{CACHED[limit]}")


def test_a_containers_limit_less_what_is_used_with_the_page_cache_counted_as_free(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert free_memory(tmp_path, nowhere) == 64 * GB
    group(tmp_path, 8 * GB, 5 * GB)
    assert free_memory(tmp_path, nowhere) == 4.5 * GB
    group(tmp_path, "max", 5 * GB)
    assert free_memory(tmp_path, nowhere) == 64 * GB
    group(tmp_path / "memory", 2**63 - 4096, 5 * GB, "memory.limit_in_bytes")
    assert free_memory(tmp_path, nowhere) == 64 * GB
    group(tmp_path / "memory", 8 * GB, 5 * GB, "memory.limit_in_bytes")
    assert free_memory(tmp_path, nowhere) == 5 * GB


def test_a_jobs_limit_lies_in_the_groups_above_the_process(tmp_path: Path) -> None:
    own = tmp_path / "own"
    group(tmp_path / "slurm/job_7", 3 * GB, 2 * GB)
    group(tmp_path / "slurm/job_7/step_0", "max", 2 * GB)
    own.write_text("0::/slurm/job_7/step_0\n")
    assert free_memory(tmp_path, own) == 2.5 * GB
    group(tmp_path / "memory/slurm/job_7", 2 * GB, 3 * GB, "memory.limit_in_bytes")
    own.write_text("5:cpu,memory:/slurm/job_7/step_0\n3:pids:/\n1:name=systemd:/\n0::/\n")
    assert free_memory(tmp_path, own) == 1 * GB


def test_processes_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.jobs.memory.free_memory", lambda: 9e9)
    assert memory.room(torch.device("cpu"), 3) == 3e9
