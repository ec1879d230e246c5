"""The evaluations of a pretrained model, by their settings, and their gates."""

from __future__ import annotations

import time

from bertkit.jobs.console import Console
from bertkit.jobs.eval_blimp import eval_blimp
from bertkit.jobs.eval_mlm import eval_mlm
from bertkit.jobs.lost import watching
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.jobs.thresholds import Thresholds
from bertkit.jobs.verdict import Verdict
from bertkit.jobs.verdicts import judged, reported
from bertkit.settings.probes import BlimpSettings, MlmSettings, ProbeSettings
from bertkit.tasks.probes import PROBES


def run_probe(settings: ProbeSettings, console: Console) -> Outcome:
    """Runs the evaluation that the settings are of.

    Raises:
        UsageError: A gate is about a figure that does not come out (exit 2).
        GateError: A gate was not met (exit 7); everything was written and said.
    """
    probe = PROBES["blimp" if isinstance(settings, BlimpSettings) else "mlm"]
    machine, junit, started = Machine.of(settings.device), settings.gates.junit, time.monotonic()
    with watching(machine.peers, console), reported(junit, probe.name, machine.peers):
        gates = Thresholds(settings.gates, probe.name, probe.figures, probe.figures.__contains__)
        compared: list[Verdict] = []
        if isinstance(settings, BlimpSettings):
            outcome, compared = eval_blimp(settings, machine, console)
        else:
            assert isinstance(settings, MlmSettings)
            outcome = eval_mlm(settings, machine, console)
        if not settings.gates.any:
            return outcome

        def told() -> Outcome:
            figures = {name: value for name, value in outcome.metrics.items() if name in probe.figures}
            seconds = time.monotonic() - started
            return judged([*gates.verdicts(figures), *compared], outcome, probe.name, junit, console, seconds=seconds)

        return machine.peers.main_only(told)
