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
    """The figures as people read them."""
    for name, rate in figures["rates"].items():
        texts = figures["texts_per_second"][name]["median"]
        console.result(
            f"{name:<22}{rate['median']:>9,.0f} tokens/s  ({rate['low']:,.0f} to {rate['high']:,.0f}), {texts:,.0f} texts/s"
        )
        if figures["parts"][name]:
            console.result("  " + "  ".join(f"{part} {share:.1%}" for part, share in figures["parts"][name].items()))
        if memory := figures.get("memory_bytes", {}).get(name):
            console.result(f"  {readable(memory)} at the peak")
    for name, ratio in figures.get("ratio", {}).items():
        console.result(f"ratio to {name:<13}{ratio['median']:>9.2f}           ({ratio['low']:.2f} to {ratio['high']:.2f})")
    if share := figures.get("share_of_ceiling"):
        console.result(
            f"{share:.0%} of the {figures['ceiling_flops'] / 1e9:,.0f} GFLOP/s of a large matrix product here "
            f"({figures['flops_per_token'] / 1e6:,.1f} MFLOP a token)"
        )
