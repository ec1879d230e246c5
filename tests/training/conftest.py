"""The toys of this room lie beside its tests; under importlib mode pytest puts no folder on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", params=[2, 3])
def several(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """How many processes, and the folder in which so many trained, evaluated and talked: started once for all tests."""
    from toy_training import start_script

    folder = tmp_path_factory.mktemp(f"processes-{request.param}")
    assert start_script(folder, "several", request.param) == 0
    return request.param, folder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
