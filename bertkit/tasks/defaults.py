"""Defaults of fine-tuning by kind and width, in one place.

The paper's grid for base and large (2e-5, 3e-5, 4e-5, 5e-5) starves narrow models; google's for its small ones goes from
3e-5 to 3e-4. So the rate falls with the width.
"""

from __future__ import annotations

from typing import Any

from bertkit.tasks.task import Task

# Width at most, and the rate for heads on whole sequences.
_RATES = ((128, 3e-4), (256, 2e-4), (512, 1e-4), (768, 3e-5))
_WIDEST = 2e-5
_BY_KIND = {"tagging": 5 / 3, "span": 1.0, "classification": 1.0}


def learning_rate(width: int, kind: str = "classification") -> float:
    """Peak rate of AdamW for fine-tuning a model of ``width`` hidden units on a task of ``kind``."""
    rate = next((rate for most, rate in _RATES if width <= most), _WIDEST)
    # A tag a word gives gentler gradients than a label a text: the paper's best for base was 5e-5.
    return float(f"{rate * _BY_KIND.get(kind, 1.0):.1g}") if width > 512 else rate


def training_defaults(task: Task, width: int) -> dict[str, Any]:
    """``learning_rate``, ``batch_size`` (sequences a step), ``epochs``, ``warmup`` (a share), where nothing says otherwise."""
    return {"learning_rate": learning_rate(width, task.kind), "batch_size": 32, "epochs": 3.0, "warmup": 0.1, **task.training}
