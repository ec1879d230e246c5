"""Commands in processes of their own, and the lines that they leave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.bench.commands import Lines, bertkit, run

WORK = "import time\nbegun = time.process_time()\nwhile time.process_time() - begun < {seconds}: pass\nprint('done')"


def test_both_clocks_and_the_processes_below() -> None:
    asleep = run([sys.executable, "-c", "import time; time.sleep(0.4); print('done')"])
    assert asleep.out == "done\n"
    assert asleep.seconds > 0.4 > asleep.cpu_seconds
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORK.format(seconds=0.5)!r}])"
    busy = run([sys.executable, "-c", below])
    assert busy.cpu_seconds > 0.5
    assert set(busy.times("eval_")) == {"eval_seconds", "eval_cpu_seconds"}


def test_a_command_that_fails_says_what_it_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        bertkit("tasks", "--no-such-flag")
    assert '"exit_code": 2' in capfd.readouterr().err


def test_lines_are_found_by_their_facts(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "results.jsonl"
    assert Lines(path).find({"task": "rte"}) is None
    kept = Lines(path).keep({"task": "rte", "seed": 1, "settings": {"rate": 1e-4, "limit": None}})
    Lines(path).keep({"task": "rte", "seed": 2, "settings": {"rate": 1e-4, "limit": None}})
    assert Lines(path).find({"task": "rte", "settings": {"rate": 1e-4, "limit": None}}) == kept
    assert (Lines(path).find({"task": "rte", "seed": 2}) or {})["seed"] == 2
    assert Lines(path).find({"task": "rte", "seed": 3}) is None


def test_a_line_that_was_cut_short_is_no_line_and_spoils_none(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Lines(path).keep({"task": "rte"})
    path.write_text(path.read_text() + '{"task": "co', encoding="utf-8")
    Lines(path).keep({"task": "cola"})
    assert Lines(path).find({"task": "rte"}) == {"task": "rte"}
    assert Lines(path).find({"task": "cola"}) == {"task": "cola"}
