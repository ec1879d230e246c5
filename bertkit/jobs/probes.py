"""The evaluations of a pretrained model, by their settings."""

from __future__ import annotations

from bertkit.jobs.console import Console
from bertkit.jobs.eval_blimp import eval_blimp
from bertkit.jobs.eval_mlm import eval_mlm
from bertkit.jobs.outcome import Outcome
from bertkit.settings.probes import BlimpSettings, MlmSettings, ProbeSettings


def run_probe(settings: ProbeSettings, console: Console) -> Outcome:
    """Runs the evaluation that the settings are of."""
    if isinstance(settings, BlimpSettings):
        return eval_blimp(settings, console)
    assert isinstance(settings, MlmSettings)
    return eval_mlm(settings, console)
