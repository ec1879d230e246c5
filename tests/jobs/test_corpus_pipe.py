from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from corpora import prose, text_of
from small_runs import environment


def program(folder: Path, *argv: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bertkit", *argv],
        cwd=folder,
        env=environment(BERTKIT_CACHE=str(folder / "cache")),
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_store_of_a_pipe_is_that_of_the_file(tmp_path: Path) -> None:
    text = text_of(prose())
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert program(tmp_path, "tokenizer", "train", "a.txt", "--output", "vocab", "-q").returncode == 0
    argv = ["corpus", "build", "--tokenizer", "vocab", "--json"]
    piped = program(tmp_path, *argv, "-", "-o", "piped", text=text)
    assert piped.returncode == 0, piped.stderr
    filed = json.loads(program(tmp_path, *argv, "a.txt").stdout)
    assert json.loads(piped.stdout)["fingerprint"] == filed["fingerprint"]
    untrained = program(tmp_path, "corpus", "build", "-", "--json", text=text)
    assert (untrained.returncode, json.loads(untrained.stdout)["error"]["kind"]) == (2, "usage")
