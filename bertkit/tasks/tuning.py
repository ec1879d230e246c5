"""How far each part of a model is moved by fine-tuning: parts that stay as they are, and lower rates for lower layers."""

from __future__ import annotations

import re
from collections.abc import Callable

from pydantic import Field

from bertkit.errors import SettingsError
from bertkit.fields import Settings
from bertkit.tasks.models import TaskModel

_LAYER = re.compile(r"encoder\.layers\.(\d+)\.")


class TuningSettings(Settings):
    """What of the body is trained, and how fast. The head is always trained, at the full rate."""

    freeze_embeddings: bool = Field(False, description="The embeddings keep their weights.")
    freeze_layers: int = Field(0, ge=0, description="So many layers, counted from the embeddings up, keep their weights.")
    layer_decay: float = Field(
        1.0, gt=0, le=1, description="Each layer's rate is this share of the rate of the layer above; the top one has the full."
    )


def freeze(model: TaskModel, settings: TuningSettings) -> int:
    """Takes the settings' parts of the body out of training; returns how many weights stay as they are.

    Raises:
        SettingsError: More layers than the model has (exit 2).
    """
    depth = len(model.encoder.layers)
    if settings.freeze_layers > depth:
        raise SettingsError(
            f"{settings.freeze_layers} layers are to stay as they are, but the model has {depth}.", where="tuning.freeze_layers"
        )
    frozen = 0
    for name, parameter in model.named_parameters():
        level = _level(name)
        if level is not None and (settings.freeze_embeddings if level == 0 else level <= settings.freeze_layers):
            parameter.requires_grad_(False)
            frozen += parameter.numel()
    return frozen


def rate_scale(model: TaskModel, settings: TuningSettings) -> Callable[[str], float] | None:
    """Each parameter's share of the rate by its name, as Sun et al. 2019 (arXiv:1905.05583, 5.4.3) decay it; None: all 1.

    Of n layers the top one has 1, the one below ``layer_decay``, …, the embeddings ``layer_decay`` to the power of n.
    """
    if settings.layer_decay == 1.0:
        return None
    depth = len(model.encoder.layers)

    def scale(name: str) -> float:
        level = _level(name)
        return 1.0 if level is None else settings.layer_decay ** (depth - level)

    return scale


def _level(name: str) -> int | None:
    """0 for the embeddings, 1 for the lowest layer, …; None outside of the body."""
    if not name.startswith("encoder."):
        return None
    match = _LAYER.match(name)
    return int(match[1]) + 1 if match else 0
