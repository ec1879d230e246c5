"""What ``import bertkit`` offers: light until it is asked for something."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bertkit

LIGHT = """
import sys
import bertkit
assert set(bertkit.__all__) <= set(dir(bertkit))
print([name for name in ("torch", "pydantic", "numpy", "typer", "rich", "tokenizers", "yaml") if name in sys.modules])
"""


def test_importing_it_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_name_is_there() -> None:
    assert {"pretrain", "finetune", "evaluate", "predict", "embed", "load_encoder"} <= set(bertkit.__all__)
    for name in bertkit.__all__:
        assert getattr(bertkit, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'pretrian'"):
        _ = bertkit.pretrian  # type: ignore[attr-defined]
