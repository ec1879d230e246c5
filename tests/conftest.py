"""What all tests share: where the real data lies, and threads that leave room for one another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that means the hub says so itself
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data and models (BERTKIT_DATA); tests that need it are skipped where it is not set."""
    folder = os.environ.get("BERTKIT_DATA")
    if not folder:
        pytest.skip("BERTKIT_DATA is not set: no real data here")
    return Path(folder)
