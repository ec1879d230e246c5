"""The script for GPU machines runs from end to end on a CPU, and its last word is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "recipes" / "bench" / "gpu.sh"
PARTS = {"environment", "product", "attention", "curves", "vocabulary", "beside"}
LEFT_OUT = {"speed128", "speed512", "dropped", "overflow", "waits", "tuning", "processes"}


@pytest.mark.slow
def test_a_dry_run_gives_every_figure(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(SCRIPT), "--dry", "--output", str(tmp_path / "gpu")],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"PYTHON": sys.executable, "BERTKIT_CACHE": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "gpu" / "figures.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [json.loads(line) for line in done.stdout.splitlines()] == lines
    assert all(line["ok"] for line in lines)
    assert {line["part"] for line in lines if "skipped" not in line} == PARTS
    assert {line["part"] for line in lines if "skipped" in line} == LEFT_OUT
    (beside,) = (line for line in lines if line["part"] == "beside" and "ratio" in line)
    assert beside["share_of_peak"] == pytest.approx(beside["tflops"] / 989)
