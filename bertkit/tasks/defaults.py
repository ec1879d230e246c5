"""Defaults of learning rate and batch by kind and width, in one place.

The paper's grid for base and large (2e-5, 3e-5, 4e-5, 5e-5) starves narrow models; google's for its small ones goes from
3e-5 to 3e-4. So the rate falls with the width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bertkit.tasks.task import Task

MAX_LENGTH = {"classification": 128, "tagging": 128, "span": 384, "span_chinese": 384, "choice": 128}
"""Tokens of a sequence by kind; the kinds' settings have them (they load torch), and a test holds both alike."""
# Width at most, and the rate for heads on whole sequences.
_RATES = ((128, 3e-4), (256, 2e-4), (512, 1e-4), (768, 3e-5))
_WIDEST = 2e-5
_BY_KIND = {"tagging": 5 / 3, "span": 1.0, "span_chinese": 1.0, "classification": 1.0, "choice": 1.0}


def learning_rate(width: int, kind: str = "classification") -> float:
    """Peak rate of AdamW for fine-tuning a model of ``width`` hidden units on a task of ``kind``."""
    rate = next((rate for most, rate in _RATES if width <= most), _WIDEST)
    # A tag a word gives gentler gradients than a label a text: the paper's best for base was 5e-5.
    return float(f"{rate * _BY_KIND.get(kind, 1.0):.1g}") if width > 512 else rate


def listed_defaults(task: Task) -> dict[str, float]:
    """What a task starts with where nothing else is said, but for the rate, which hangs on the model's width."""
    trained = training_defaults(task, 768)
    return {
        "max_length": task.settings.get("max_length", MAX_LENGTH.get(task.kind, 128)),
        "batch_size": trained["batch_size"],
        "epochs": trained["epochs"],
    }


def training_defaults(task: Task, width: int) -> dict[str, Any]:
    """``learning_rate``, ``batch_size`` (sequences a step), ``epochs``, ``warmup`` (a share), where nothing says otherwise."""
    return {"learning_rate": learning_rate(width, task.kind), "batch_size": 32, "epochs": 3.0, "warmup": 0.1, **task.training}


# Pretraining by width at most: the optimizer, the peak rate of each, sequences a step. Tiny's and mini's were the best after
# equal time on two cores (docs/speed.md has the runs); the others are from the literature, small of Clark et al. 2020, base of
# Devlin et al. 2019. Muon's steps are scaled to AdamW's, so a rate that was not measured is AdamW's.
_Row = tuple[int | float, str, Mapping[str, float], int]
_PRETRAINING: tuple[_Row, ...] = (
    (128, "muon", {"adamw": 2e-3, "muon": 4e-3}, 32),
    (256, "adamw", {"adamw": 1e-3, "muon": 1e-3}, 8),
    (512, "adamw", {"adamw": 5e-4, "muon": 5e-4}, 128),
    (math.inf, "adamw", {"adamw": 1e-4, "muon": 1e-4}, 256),
)
_GOING_ON = 0.3  # of a new model's rate: what a checkpoint has learned is not to be shaken off


def pretraining_defaults(width: int, *, optimizer: str | None = None, going_on: bool = False) -> dict[str, Any]:
    """``optimizer``, ``learning_rate`` (its peak) and ``batch_size`` (sequences a step) of pretraining.

    Args:
        width: Hidden units.
        optimizer: The one that was asked for, if any.
        going_on: From a checkpoint: AdamW, as its makers took in all likelihood, and a lower rate.
    """
    _, best, rates, batch = next(row for row in _PRETRAINING if width <= row[0])
    name = optimizer or ("adamw" if going_on else best)
    rate = float(f"{rates[name] * _GOING_ON:.2g}") if going_on else rates[name]
    return {"optimizer": name, "learning_rate": rate, "batch_size": batch}
