"""A comparison with another system's predictions -> a verdict; its numbers are points (0-100)."""

from __future__ import annotations

from bertkit.jobs.thresholds import scaled, shown
from bertkit.jobs.verdict import Verdict
from bertkit.metrics.comparison import LEAST, Comparison
from bertkit.settings.gates import GateSettings


def comparison_verdict(found: Comparison, settings: GateSettings, *, metric: str, part: str, by: int) -> Verdict:
    """What a comparison says.

    Args:
        found: The comparison, with the margin of ``settings``.
        settings: What was asked.
        metric: The figure that was compared.
        part: Of which part of the data.
        by: What makes points of the figure.
    """
    return Verdict(
        kind="not-worse-than",
        metric=metric,
        part=part,
        outcome=found.outcome,
        met=found.outcome == "pass" or (found.outcome == "inconclusive" and settings.inconclusive == "warn"),
        numbers={
            "value": scaled(found.ours, by),
            "other": scaled(found.theirs, by),
            "difference": scaled(found.difference, by),
            "interval": None if found.interval is None else [by * end for end in found.interval],
            "margin": settings.margin,
            "examples": found.examples,
            "differing": found.differing,
            "than": settings.not_worse_than,
        },
        message=_told(found, part, metric, settings, by),
    )


def _told(found: Comparison, part: str, metric: str, settings: GateSettings, by: int) -> str:
    """The comparison in a sentence."""
    scores = f"{part}: {metric} {shown(scaled(found.ours, by), metric)} against {shown(scaled(found.theirs, by), metric)}"
    if found.interval is None:
        return f"{scores} of {settings.not_worse_than}"
    low, high = (f"{by * end:+.2f}" for end in found.interval)
    against = f"{by * (found.difference or 0.0):+.2f}, at 95 % between {low} and {high}"
    margin = f", {settings.margin:g} may be lost" if settings.margin else ""
    counted = f"{found.examples:,} examples, {found.differing:,} differ"
    few = f"; fewer than {LEAST} prove no loss" if found.outcome == "inconclusive" and found.interval[1] < 0 else ""
    return f"{scores} of {settings.not_worse_than}: {against}{margin} ({counted}{few})"
