"""Steps of pretraining by bertkit's own loop; what they are compared with is :mod:`bertkit.bench.reference`'s."""

from __future__ import annotations

from bertkit.batches.pretraining import PretrainingSource
from bertkit.bench.stepping import Stepping
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.tasks.models import build_model

RATE = 1e-4


class Ours(Stepping):
    """bertkit: the loop that ``bertkit pretrain`` runs, over a new model."""

    def __init__(self, source: PretrainingSource, config: EncoderConfig, machine: Machine, *, seed: int = 0) -> None:
        super().__init__(source, build_model("pretraining", config, seed=seed), machine, RATE)
