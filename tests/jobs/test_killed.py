"""``kill -9`` in the middle of a fine-tuning, and the same command again: the same samples, the same weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from job_tests import Call

from bertkit.tasks.models import TaskModel

pytestmark = pytest.mark.slow

SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_killed import watch
from bertkit.tasks.models import TaskModel
from bertkit.training.checkpoint import Checkpoints
from bertkit.cli.main import run

save = Checkpoints.save

def saved(self, state, *args, **more):
    path = save(self, state, *args, **more)
    if state.step == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return path

TaskModel.forward, Checkpoints.save = watch(Path(sys.argv[2])), saved
sys.exit(run(sys.argv[3:]))
"""


def watch(record: Path) -> Any:
    """``TaskModel.forward`` that writes down which samples it sees: the token behind ``[CLS]`` is a sample's whole text."""
    forward = TaskModel.forward

    def watched(self: TaskModel, batch: Any) -> Any:
        firsts = batch.packed.boundaries[:-1].long() + 1
        with record.open("a") as file:
            file.write(json.dumps(batch.packed.input_ids[firsts].tolist()) + "\n")
        return forward(self, batch)

    return watched


def test_the_order_of_samples_after_a_kill(bertkit: Call, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "".join(f"{n}\t{n % 2}\n" for n in range(10)))
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\n3\t1\n")
    command = ["finetune", "sst2", "--model", str(tiny), "--data", str(tmp_path), "--batch-size", "2", "--epochs", "3"]
    command += ["--save-every", "1"]
    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), "parted.jsonl", *command, "--output", "parted"],
        cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False, timeout=120,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert not Path("parted/model.safetensors").exists()
    for name in ("parted", "whole"):
        with monkeypatch.context() as patched:
            patched.setattr(TaskModel, "forward", watch(Path(f"{name}.jsonl")))
            done = bertkit(*command, "--output", name)
        assert done.code == 0
        assert ("Going on from parted/checkpoints/checkpoint-7" in done.err) == (name == "parted")
    whole, parted = (
        [json.loads(line) for line in Path(f"{name}.jsonl").read_text().splitlines()] for name in ("whole", "parted")
    )
    assert [len(step) for step in whole] == [2] * 15
    for epoch in range(3):
        assert len({number for step in whole[5 * epoch : 5 * epoch + 5] for number in step}) == 10
    assert whole[:5] != whole[5:10]
    assert parted == whole  # nothing is lost and nothing comes twice
    assert Path("parted/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()
