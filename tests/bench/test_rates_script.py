"""The script that tries settings of a pretraining: each run once, in steps that were said or that some seconds hold."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest

from bertkit.bench import commands
from bertkit.cli.main import run
from bertkit.corpus.training import train_wordpiece

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "recipes" / "bench" / "rates.py"
SMALL = "--size tiny --precision fp32 --max-length 32 --workers 0 --set device.threads=1 --set inputs.validation_sequences=8"
MORE = [word for word in SMALL.split() if word not in ("--size", "tiny")]
RATES = "optimizer.learning_rate"

Rates = Callable[..., list[Any]]


@pytest.fixture
def asked() -> list[list[str]]:
    """The commands that the script asked for, as they come."""
    return []


@pytest.fixture
def rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[list[str]]) -> Rates:
    """Runs the script into ``tmp_path/out``, its commands in this process; what it printed."""
    texts = [[line for line in topics[name].splitlines() if len(line.split()) > 2] for name in sorted(topics)[:30]]
    for name, part in (("train", texts[:24]), ("valid", texts[24:])):
        (tmp_path / f"{name}.txt").write_text("\n\n".join("\n".join(lines) for lines in part), encoding="utf-8")
    train_wordpiece(texts, size=300, lowercase=True).save(tmp_path / "words", max_length=512)
    files = {"corpus": "train.txt", "valid": "valid.txt", "tokenizer": "words/vocab.txt", "output": "out"}
    flags = [word for flag, name in files.items() for word in (f"--{flag}", str(tmp_path / name))]

    def here(*words: str) -> tuple[dict[str, Any], None]:
        asked.append(list(words))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert run([*words, "--json"]) == 0
        return json.loads(out.getvalue()), None

    def call(*words: str) -> list[Any]:
        monkeypatch.setattr("sys.argv", [str(SCRIPT), *flags, *SMALL.split(), *words])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return [json.loads(line) for line in out.getvalue().splitlines()]

    monkeypatch.setattr(commands, "bertkit", here)
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    return call


def kept(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_grid_then_other_values_of_the_best_and_nothing_twice(rates: Rates, asked: list[list[str]], tmp_path: Path) -> None:
    words = ("--steps", "2", "--vary", f"{RATES}=1e-4,1e-2", "--then", "optimizer.name=adamw")
    *rows, last = rates(*words)
    first, second, third = rows
    assert [row["settings"] for row in rows[:2]] == [{RATES: "1e-4"}, {RATES: "1e-2"}]
    best = min((first, second), key=lambda row: row["mlm_loss"])
    assert third["settings"] == best["settings"] | {"optimizer.name": "adamw"}
    assert len({row["mlm_loss"] for row in rows}) == 3
    final = min(rows, key=lambda row: row["mlm_loss"])
    assert last == {"best": final["settings"], "mlm_loss": final["mlm_loss"], "of": 3}
    for row in rows:
        assert {name: row[name] for name in ("size", "steps", "more")} == {"size": "tiny", "steps": 2, "more": MORE}
    assert list(first) == [
        *("size", "settings", "steps", "more"),
        *("mlm_loss", "mlm_accuracy", "nsp_loss", "unigram_loss", "tokens"),
    ]
    assert kept(tmp_path / "out" / "results.jsonl") == rows
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["results.jsonl"]
    # The same command again finds its lines; other flags of pretrain's are other runs.
    asked.clear()
    assert rates(*words) == [*rows, last]
    assert asked == []
    assert len(rates("--steps", "2", "--vary", f"{RATES}=1e-2", "--seed", "7")) == 2
    assert len(asked) == 1


def test_as_many_steps_as_the_seconds_hold(rates: Rates, asked: list[list[str]], tmp_path: Path) -> None:
    words = ("--seconds", "0.2", "--vary", f"{RATES}=1e-3,4e-3", "--then", "batch.size=4")
    paced = rates(*words, "--pace-only")
    assert [line["settings"] for line in paced] == [
        {RATES: "1e-3"},
        {RATES: "1e-3", "batch.size": "4"},
        {RATES: "4e-3"},
        {RATES: "4e-3", "batch.size": "4"},
    ]
    assert len(asked) == 2, "a rate makes no step dearer"
    by_batch = {row["settings"].get("batch.size"): row["seconds"] for row in kept(tmp_path / "out" / "paces.jsonl")}
    assert [line["seconds a step"] for line in paced] == 2 * [by_batch[None], by_batch["4"]]
    asked.clear()
    *rows, last = rates(*words)
    assert len(asked) == len(rows) == last["of"] == 3
    for row in rows:
        assert row["steps"] == max(1, round(0.2 / by_batch[row["settings"].get("batch.size")]))
    assert not [path for path in (tmp_path / "out").iterdir() if path.is_dir()]


def test_a_pace_that_was_just_measured_gives_the_steps_of_a_later_start(rates: Rates, asked: list[list[str]]) -> None:
    words = ("--seconds", "0.2", "--vary", f"{RATES}=1e-3")
    row, last = rates(*words)
    assert len(asked) == 2
    assert rates(*words) == [row, last]
    assert len(asked) == 2
