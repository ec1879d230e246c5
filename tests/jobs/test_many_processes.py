"""``eval`` and ``predict`` on two and three processes: each row once, in order, as one process has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from job_tests import Call, predictions, sst2_lines

pytestmark = pytest.mark.slow

SCRIPT = """
import json, sys
from bertkit.cli.main import run
for command in json.loads(sys.argv[1]):
    code = run(command)
    if code:
        sys.exit(code)
"""


@pytest.mark.parametrize(("processes", "sizes"), [(3, [(22, 8)]), (2, [(300, 64), (1, 1)])])
def test_each_row_once_and_in_order(
    bertkit: Call, trained: Path, sst2: Path, processes: int, sizes: list[tuple[int, int]]
) -> None:
    commands = []
    for rows, batch in sizes:
        Path(f"{rows}.tsv").write_text(sst2_lines(range(400, 400 + rows)))
        shared = ["sst2", "--model", str(trained), "--batch-size", str(batch), "-q"]
        commands.append(["eval", *shared, "--validation-file", f"{rows}.tsv", "--output", f"many-{rows}"])
        commands.append(["predict", *shared, "--test-file", f"{rows}.tsv", "--output", f"many-{rows}/said.jsonl"])
    Path("script.py").write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "script.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [*launch, json.dumps(commands)], env=environment, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == len(commands)  # the first process alone speaks
    for rows, batch in sizes:
        alone = bertkit(
            "eval", "sst2", "--model", trained, "--batch-size", batch, "--validation-file", f"{rows}.tsv", "--output", "one"
        )
        figures = json.loads(Path(f"many-{rows}/sst2-validation/metrics.json").read_text())
        assert {name: figures[name] for name in alone.metrics} == alone.metrics
        assert figures["examples"] == rows
        one = predictions(Path("one/sst2-validation/predictions.jsonl"))
        for many in (Path(f"many-{rows}/sst2-validation/predictions.jsonl"), Path(f"many-{rows}/said.jsonl")):
            records = predictions(many)
            assert [record["id"] for record in records] == [str(number) for number in range(rows)]
            assert [record["prediction"] for record in records] == [record["prediction"] for record in one]
            assert [record["score"] for record in records] == pytest.approx([record["score"] for record in one], abs=1e-6)
