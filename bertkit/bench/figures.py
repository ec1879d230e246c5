"""The figures of every bench, and how they are shown: tokens and texts a second, ratios, parts, memory, share of the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertkit.bench.alternate import Round, parts, ratios, spread
from bertkit.jobs.console import Console
from bertkit.training.files import readable

OURS = "bertkit"


def figures_of(rounds: Mapping[str, Sequence[Round]]) -> dict[str, Any]:
    """Rates and shares of each side, and bertkit's rate divided by every other side's, round by round."""
    figures: dict[str, Any] = {
        "rates": {name: spread([each.rate for each in done]) for name, done in rounds.items()},
        "texts_per_second": {name: spread([each.texts / each.seconds for each in done]) for name, done in rounds.items()},
        "parts": {name: parts(done) for name, done in rounds.items()},
    }
    others = {name: done for name, done in rounds.items() if name != OURS}
    if others:
        figures["ratio"] = {name: ratios(rounds[OURS], done) for name, done in others.items()}
    return figures


def against_ceiling(figures: Mapping[str, Any], *, flops: float, ceiling: float) -> dict[str, float]:
    """What bertkit's rate is worth, at ``flops`` of useful work a token, of a machine that does ``ceiling`` FLOP a second."""
    share = figures["rates"][OURS]["median"] * flops / ceiling
    return {"flops_per_token": flops, "ceiling_flops": ceiling, "share_of_ceiling": share}


def show(console: Console, figures: Mapping[str, Any]) -> None:
    """The figures as people read them: medians, and in brackets the least and the greatest of all rounds."""
    width = max(map(len, figures["rates"]))
    for name, rate in figures["rates"].items():
        texts = figures["texts_per_second"][name]["median"]
        console.result(f"{name:<{width}}{rate['median']:>9,.0f} tokens/s {_range(rate, ',.0f')}, {_short(texts)} texts/s")
        if figures["parts"][name]:
            console.result("  " + "  ".join(f"{part} {share:.1%}" for part, share in figures["parts"][name].items()))
    for name, ratio in figures.get("ratio", {}).items():
        console.result(f"bertkit is {ratio['median']:.2f} times as fast as {name} {_range(ratio, '.2f')}")
    if "share_of_ceiling" in figures:
        console.result(
            f"bertkit does {figures['share_of_ceiling']:.0%} of the {figures['ceiling_flops'] / 1e9:,.0f} GFLOP/s of a large "
            f"matrix product here ({figures['flops_per_token'] / 1e6:,.1f} MFLOP a token)"
        )


def show_memory(console: Console, peaks: Mapping[str, int]) -> None:
    """Each side's peak; it is measured apart, after the figures of :func:`show` are told."""
    width = max(map(len, peaks))
    for name, peak in peaks.items():
        console.result(f"{name:<{width}} {readable(peak):>9} at the peak")


def _range(values: Mapping[str, float], form: str) -> str:
    return f"({values['low']:{form}} to {values['high']:{form}})"


def _short(rate: float) -> str:
    """Three digits at least, where there are so many."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}" if rate >= 10 else f"{rate:.2f}"
