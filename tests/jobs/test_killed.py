"""``kill -9`` in the middle of a fine-tuning, and the same command again: the same samples, the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from bertkit.tasks.models import TaskModel
from bertkit.training.checkpoint import Checkpoints
from bertkit.cli.main import run

record, kill = Path(sys.argv[1]), int(sys.argv[2])
forward, save = TaskModel.forward, Checkpoints.save

def watched(self, batch):
    starts = batch.packed.boundaries[:-1] + 1  # behind [CLS]: the number that is a sample's whole text
    with record.open("a") as file:
        file.write(json.dumps(batch.packed.input_ids[starts.long()].tolist()) + "\\n")
    return forward(self, batch)

def saved(self, state, *args, **more):
    path = save(self, state, *args, **more)
    if state.step == kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return path

TaskModel.forward, Checkpoints.save = watched, saved
sys.exit(run(sys.argv[3:]))
"""


def test_the_order_of_samples_after_a_kill(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "".join(f"{n}\t{n % 2}\n" for n in range(10)))
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\n3\t1\n")

    def start(output: str, kill: int = 0) -> int:
        command = [
            "finetune", "sst2", "--model", str(tiny), "--data", str(tmp_path), "--batch-size", "2", "--epochs", "3",
            "--save-every", "1", "--output", output, "-q",
        ]  # fmt: skip
        script = [sys.executable, "-c", SCRIPT, str(tmp_path / f"{output}.jsonl"), str(kill), *command]
        done = subprocess.run(script, cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
        return done.returncode

    assert start("whole") == 0
    assert start("parted", kill=7) == -signal.SIGKILL
    assert not (tmp_path / "parted/model.safetensors").exists()
    assert start("parted") == 0
    whole, parted = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()] for name in ("whole", "parted")
    )
    assert len(whole) == 15
    assert [len(step) for step in whole] == [2] * 15
    for epoch in range(3):
        samples = [number for step in whole[5 * epoch : 5 * epoch + 5] for number in step]
        assert len(set(samples)) == 10
    assert whole[:5] != whole[5:10]
    assert parted[:7] + parted[-8:] == whole  # nothing is lost and nothing comes twice
    assert len(parted) == 15
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parted")]
    assert weights[0] == weights[1]
