"""What a pretraining takes where nothing is said: optimizer, rate and batch by the model's width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_runs import at_step, call, done

from bertkit.tasks.defaults import pretraining_defaults

LITTLE = (
    "--size tiny --vocab-size 300 --max-length 32 --precision fp32 --steps 2 --set device.threads=1 "
    "--set inputs.validation_sequences=8"
)


def argv(corpus: Path, output: Path, *more: str) -> list[str]:
    return ["pretrain", "--corpus", str(corpus), *LITTLE.split(), *more, "-o", str(output)]


def taken(folder: Path) -> tuple[Any, ...]:
    found = yaml.safe_load((folder / "settings.yaml").read_text(encoding="utf-8"))
    return found["optimizer"]["name"], float(found["optimizer"]["learning_rate"]), found["batch"]["size"]


@pytest.mark.parametrize("width", [64, 128, 256, 512, 768, 1024])
def test_wider_models_take_lower_rates_of_either_optimizer(width: int) -> None:
    here, wider = (pretraining_defaults(each, optimizer="adamw") for each in (width, 2 * width))
    assert here["learning_rate"] >= wider["learning_rate"]
    assert pretraining_defaults(width, optimizer="muon")["learning_rate"] >= here["learning_rate"]
    assert pretraining_defaults(width, going_on=True) == here | {"learning_rate": pytest.approx(0.3 * here["learning_rate"])}
    assert pretraining_defaults(width)["optimizer"] == ("muon" if width <= 128 else "adamw")


def test_a_tiny_model_takes_muon_and_adamw_has_a_rate_that_it_bears(corpus: Path, tmp_path: Path) -> None:
    told = done(*argv(corpus, tmp_path / "own"))
    assert taken(tmp_path / "own") == ("muon", 4e-3, 32)
    assert "muon at a peak rate of 0.004" in told.err
    done(*argv(corpus, tmp_path / "asked", "--set", "optimizer.name=adamw", "--batch-size", "4"))
    assert taken(tmp_path / "asked") == ("adamw", 2e-3, 4)
    done(*argv(corpus, tmp_path / "on")[:3], "--init-from", str(tmp_path / "own"), *argv(corpus, tmp_path / "on")[7:])
    assert taken(tmp_path / "on") == ("adamw", 6e-4, 32)


def test_an_unfinished_run_of_a_time_with_one_default_goes_on_with_it(corpus: Path, tmp_path: Path) -> None:
    given = argv(corpus, tmp_path / "run", "--save-every", "1", "--lr", "1e-3")
    with at_step(1, lambda course: course.console.stop.request(2)):
        assert call(*given, "--set", "optimizer.name=adamw").code == 130
    state = tmp_path / "run" / "bertkit.json"
    facts = json.loads(state.read_text(encoding="utf-8"))
    assert facts["resolved"].pop("optimizer.name", "adamw") == "adamw"
    state.write_text(json.dumps(facts), encoding="utf-8")
    done(*given)
    assert taken(tmp_path / "run")[0] == "adamw"
