from __future__ import annotations

import pytest

from bertkit.corpus.forecast import FIRST, WORKER
from bertkit.jobs.building import build_workers, with_rate


def test_progress_with_its_rate_and_what_is_left() -> None:
    seconds, told = [0.0], []
    progress = with_rate(lambda done, total, note: told.append((done, total, note)), clock=lambda: seconds[0])
    for second, done in ((0, 0), (0.5, 2_000_000), (10, 50_000_000), (50, 210_000_000), (60, 250_000_000)):
        seconds[0] = float(second)
        progress(done, 1_000_000_000)
    assert told[0] == (0, 1_000_000_000, "")
    assert told[2][2] == "5.0 MB/s, 3 min left"
    assert told[4][2] == "4.0 MB/s, 3 min left"  # of the last half minute, and the look before it
    progress(1_000_000_000, 1_000_000_000)
    assert told[-1][2].endswith("MB/s")
    progress(1_000_000, None)  # another reading, of unknown size
    assert told[-1] == (1_000_000, None, "")


@pytest.mark.parametrize(
    ("size", "cores", "free", "expected"),
    [
        (1_000_000, 8, 64 * WORKER, 0),
        (100_000_000, 8, 64 * WORKER, 8),
        (None, 128, 64 * WORKER, 32),
        (100_000_000, 8, FIRST + 3 * WORKER, 3),
        (100_000_000, 8, 0, 0),
    ],
)
def test_workers_by_text_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch, size: int | None, cores: int, free: int, expected: int
) -> None:
    monkeypatch.setattr("bertkit.jobs.building.allowed_cores", lambda: cores)
    monkeypatch.setattr("bertkit.jobs.building.free_memory", lambda: float(free))
    assert build_workers(size) == expected
