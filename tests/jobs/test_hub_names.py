"""A task and a model by their names on the hub: cold, from the cache, offline, and without either."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import hub_server
import pytest
from hub_sets import text_of, write_sets
from job_tests import MakeModel, predictions

from bertkit.jobs import models

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub with CoLA and MNLI, and a model that has a pickle beside its safetensors."""
    folder = write_sets(tmp_path_factory.mktemp("hub"), "cola", "mnli")
    shutil.copytree(tiny, folder / "models/owner/tiny")
    (folder / "models/owner/tiny/pytorch_model.bin").write_bytes(b"not wanted")
    return folder


def bertkit(where: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bertkit", *command, "--json"],
        cwd=where, capture_output=True, text=True, check=False, timeout=180,
        env=os.environ | {"HF_HOME": str(where / "home"), "OMP_NUM_THREADS": "1"} | environment,
    )  # fmt: skip


def test_a_task_and_a_model_by_name(root: Path, tmp_path: Path) -> None:
    command = ("finetune", "cola", "--model", "owner/tiny", "--epochs", "1")
    with hub_server.serving(root) as hub:
        cold = bertkit(tmp_path, *command, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
        assert cold.returncode == 0, cold.stderr
        told = json.loads(cold.stdout)
        assert (told["output"], told["metrics"]["examples"]) == ("runs/cola", 3)
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


def test_an_evaluation_of_a_tasks_own_data(root: Path, make_model: MakeModel, tmp_path: Path) -> None:
    """Both parts of MNLI, without a word of where they lie."""
    model = make_model("classification", ("entailment", "neutral", "contradiction"))
    command = ("eval", "mnli", "--model", str(model), "--precision", "fp32")
    with hub_server.serving(root) as hub:
        cold = bertkit(tmp_path, *command, "--output", "cold", HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="0")
        assert cold.returncode == 0, cold.stderr
        endpoint, count = hub.endpoint, len(hub.asked)
        offline = bertkit(tmp_path, *command, "--output", "offline", HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="1")
        assert len(hub.asked) == count
    figures = json.loads(cold.stdout)["metrics"]
    assert (figures["examples"], figures["examples_mismatched"]) == (3, 3)
    assert 0 <= figures["accuracy"] <= 1 >= figures["accuracy_mismatched"] >= 0
    assert json.loads(offline.stdout)["metrics"] == figures
    for part in ("validation_matched", "validation_mismatched"):
        said = predictions(tmp_path / "cold" / f"mnli-{part}" / "predictions.jsonl")
        assert [one["gold"] for one in said] == ["entailment", "neutral", "contradiction"]
        right = sum(one["gold"] == one["prediction"] for one in said) / 3
        assert right == figures["accuracy" if part.endswith("_matched") else "accuracy_mismatched"]
        wrong = predictions(tmp_path / "cold" / f"mnli-{part}" / "errors.jsonl")
        assert all(text_of("mnli", part, "premise", int(one["id"]) // 10) in one.values() for one in wrong)


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
