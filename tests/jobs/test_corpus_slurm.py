"""The recipe of an array job: its parts, built one by one as Slurm would start them, are what one build makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import prose, text_of

from bertkit.cli.main import run
from bertkit.corpus.joined import open_stores, store_folders
from bertkit.corpus.store import TokenStore

RECIPE = Path(__file__).parents[2] / "recipes" / "corpus-slurm.sh"


def submitted(number: int, count: int, *argv: str) -> subprocess.CompletedProcess[str]:
    slurm = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(count), "SLURM_CPUS_PER_TASK": "0"}
    environment = {**os.environ, **slurm, "BERTKIT": f"{sys.executable} -m bertkit"}
    return subprocess.run(["bash", str(RECIPE), *argv], env=environment, capture_output=True, text=True, check=False)


def test_the_parts_of_an_array_job_are_one_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for number in range(3):
        Path(f"texts/{number}.txt").write_text(text_of(prose(20, seed=number)))
    assert run(["tokenizer", "train", "texts", "--output", "vocabulary", "-q"]) == 0
    for number in (3, 1, 2):
        done = submitted(number, 3, "texts", "vocabulary", "stores/text")
        assert done.returncode == 0, done.stderr
    again = submitted(2, 3, "texts", "vocabulary", "stores/text")
    assert "Nothing had to be done" in again.stderr

    assert run(["corpus", "build", "texts", "--tokenizer", "vocabulary", "--output", "whole", "-q"]) == 0
    whole, parts = TokenStore.open(Path("whole")), open_stores(store_folders(Path("stores/text")))
    assert len(parts.folders) == 3
    assert parts.tokens == whole.tokens
    assert np.array_equal(np.sort(parts.document_hashes), np.sort(whole.document_hashes))
    argv = ["--size", "tiny", "--steps", "1", "--batch-size", "2", "--output", "run", "-q"]
    assert run(["pretrain", "--corpus", "stores/text", *argv]) == 0
    assert submitted(0, 3, "texts", "vocabulary", "stores/text").returncode == 2  # --array=0-2: parts are counted from 1
