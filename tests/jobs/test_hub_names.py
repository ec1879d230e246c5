"""A task and a model by their names on the hub: cold, from the cache, offline, and without either."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bertkit.jobs import models

pytestmark = pytest.mark.slow

README = """---
configs:
- config_name: cola
  data_files:
  - split: train
    path: cola/train-*
  - split: validation
    path: cola/validation-*
---
"""


@pytest.fixture(scope="module")
def server() -> Any:
    path = Path(__file__).parents[1] / "labelled/hub_server.py"
    spec = importlib.util.spec_from_file_location("hub_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def root(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub with nyu-mll/glue (CoLA alone) as Parquet and a model that has a pickle beside its safetensors."""
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("hub")
    glue = folder / "datasets/nyu-mll/glue"
    (glue / "cola").mkdir(parents=True)
    (glue / "README.md").write_text(README)
    names = {"info": {"features": {"label": {"names": ["unacceptable", "acceptable"], "_type": "ClassLabel"}}}}
    for split, count in (("train", 12), ("validation", 6)):
        columns = {
            "sentence": [f"good {i}" for i in range(count)],
            "label": [i % 2 for i in range(count)],
            "idx": list(range(count)),
        }
        table = pyarrow.table(columns)
        features = names["info"]["features"] | {
            "sentence": {"dtype": "string", "_type": "Value"}, "idx": {"dtype": "int64", "_type": "Value"}
        }  # fmt: skip
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
        pyarrow.parquet.write_table(table, glue / f"cola/{split}-00000-of-00001.parquet")
    shutil.copytree(tiny, folder / "models/owner/tiny")
    (folder / "models/owner/tiny/pytorch_model.bin").write_bytes(b"not wanted")
    return folder


def bertkit(where: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bertkit", *command, "--json"],
        cwd=where, capture_output=True, text=True, check=False, timeout=180,
        env=os.environ | {"HF_HOME": str(where / "home"), "OMP_NUM_THREADS": "1"} | environment,
    )  # fmt: skip


def test_a_task_and_a_model_by_name(server: Any, root: Path, tmp_path: Path) -> None:
    command = ("finetune", "cola", "--model", "owner/tiny", "--epochs", "1")
    with server.serving(root) as hub:
        cold = bertkit(tmp_path, *command, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
        assert cold.returncode == 0, cold.stderr
        told = json.loads(cold.stdout)
        assert (told["output"], told["metrics"]["examples"]) == ("runs/cola", 6)
        asked = list(hub.asked)
        assert any("owner/tiny/resolve" in request and "model.safetensors" in request for request in asked)
        assert not any("pytorch_model.bin" in request for request in asked)
        scored = bertkit(tmp_path, "eval", "cola", HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
        assert json.loads(scored.stdout)["metrics"]["matthews"] == told["metrics"]["matthews"]
        assert not any(request.startswith("GET") and ".safetensors" in request for request in hub.asked[len(asked) :])
        endpoint, count = hub.endpoint, len(hub.asked)
        offline = bertkit(tmp_path, *command, "--output", "offline", HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="1")
        assert offline.returncode == 0, offline.stderr
        assert len(hub.asked) == count
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("runs/cola", "offline")]
    assert weights[0] == weights[1]


def test_a_dead_endpoint_without_a_cache(tmp_path: Path) -> None:
    started = time.monotonic()
    done = bertkit(tmp_path, "finetune", "cola", "--model", "owner/tiny", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE="0")
    assert time.monotonic() - started < 60  # most of it imports, on a busy machine
    assert done.returncode == 4
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "missing"
    assert "HF_ENDPOINT" in error["hint"]
    assert "HF_HUB_OFFLINE" in error["hint"]
    assert "127.0.0.1:9" in error["where"]
    assert not (tmp_path / "runs/cola").exists()


@pytest.mark.parametrize(("endpoint", "asked"), [("http://mirror", 80), ("https://mirror", 443), ("http://mirror:81", 81)])
def test_an_endpoint_is_asked_at_its_own_port(monkeypatch: pytest.MonkeyPatch, endpoint: str, asked: int) -> None:
    ports: list[tuple[str, int]] = []

    def refuse(address: tuple[str, int], timeout: float) -> None:
        ports.append(address)
        raise OSError

    for name in ("all_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
    monkeypatch.setattr("socket.create_connection", refuse)
    assert not models._reachable()
    assert ports == [("mirror", asked)]
    monkeypatch.setenv(f"{endpoint.partition(':')[0]}_proxy".upper(), "http://proxy")
    assert models._reachable()
