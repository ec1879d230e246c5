"""The figures of the benches over a task's rows, and how they are shown: tokens and texts a second, ratios, parts, memory."""

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
