"""Every supported Python that is installed here reads every file; only the one of this environment runs the rest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_READ = "import ast, pathlib, sys; [ast.parse(p.read_bytes(), str(p)) for p in pathlib.Path(sys.argv[1]).rglob('*.py')]"


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_files_are_of_this_python(version: str) -> None:
    python = shutil.which(f"python{version}")
    works = python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    if not works:
        pytest.skip(f"no Python {version} here")
    done = subprocess.run(
        [str(python), "-W", "error", "-c", _READ, str(ROOT / "bertkit")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
