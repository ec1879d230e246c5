"""The shells for ``evaluate.load``: local scripts, the pure functions' own figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.errors import UsageError
from bertkit.metrics import shells

SCRIPT = """
import json, evaluate
from bertkit.metrics import shells
labels = {name: evaluate.load(shells.path("labels"), name).compute(predictions=[1, 0, 1, 1], references=[1, 1, 1, 0])
          for name in ("accuracy", "f1", "f1_macro", "matthews")}
numbers = {name: evaluate.load(shells.path("correlations"), name).compute(predictions=[1, 2, 3.5], references=[1, 3, 2])
           for name in ("pearson", "spearman")}
print(json.dumps({**labels, **numbers}))
"""


def test_an_unknown_shell_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'labels'"):
        shells.path("label")


@pytest.mark.slow
def test_evaluate_loads_them_without_a_network(tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert {name: figures[name][name] for name in figures} == pytest.approx(
        {"accuracy": 0.5, "f1": 2 / 3, "f1_macro": 1 / 3, "matthews": -1 / 3, "pearson": 0.3973597071195132, "spearman": 0.5}
    )
