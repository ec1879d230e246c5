"""Figures that must be reached (``--min``) or not be passed (``--max``), of tasks and of pretrained models alike -> verdicts.

All numbers of a verdict are as pages show the figure: shares in points (0-100), losses as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from bertkit.errors import UsageError, nearest
from bertkit.jobs.verdict import Verdict
from bertkit.metrics.shares import is_share
from bertkit.settings.gates import ThresholdSettings, threshold

_NO_FIGURES = ("examples", "_interval", "_thresh", "_threshold")
_NEAR = 1e-9  # what is printed as 80.00 has reached 80: figures are sums of floats


class Thresholds:
    """The thresholds that were asked for.

    Args:
        settings: What is asked.
        of: The task's name, for errors.
        names: Its figures, for errors.
        may_be: Can a figure of this name come out?

    Raises:
        UsageError: A figure that cannot (exit 2).
    """

    def __init__(self, settings: ThresholdSettings, of: str, names: Sequence[str], may_be: Callable[[str], bool]) -> None:
        self._of = of
        asked: tuple[tuple[Literal["min", "max"], tuple[str, ...]], ...] = (("min", settings.min), ("max", settings.max))
        self._asked = [(kind, threshold(text)) for kind, texts in asked for text in texts]
        for kind, each in self._asked:
            if not may_be(each.metric):
                raise self._unknown(kind, each.metric, names)

    def verdicts(self, figures: Mapping[str, Any]) -> list[Verdict]:
        """One for each.

        Args:
            figures: By the keys of metrics.json.

        Raises:
            UsageError: A figure that is not among them (exit 2).
        """
        known = [
            name
            for name, value in figures.items()
            if not isinstance(value, (Mapping, list, tuple, str))
            and not name.startswith(_NO_FIGURES[0])
            and not name.endswith(_NO_FIGURES[1:])
        ]
        found = []
        for kind, each in self._asked:
            if each.metric not in known:
                raise self._unknown(kind, each.metric, known)
            found.append(_verdict(kind, each.metric, scaled(figures[each.metric], scale(figures, each.metric)), each.value))
        return found

    def _unknown(self, kind: str, name: str, known: Sequence[str]) -> UsageError:
        return UsageError(
            f"{self._of} has no figure {name!r}.{nearest(name, known)}",
            where=f"--{kind}",
            hint=f"Its figures: {', '.join(known)}.",
        )


def _verdict(kind: Literal["min", "max"], metric: str, value: float | None, limit: float) -> Verdict:
    bound, must, beyond = {
        "min": ("at least", "must be reached", "below"),
        "max": ("at most", "must not be passed", "above"),
    }[kind]
    met = value is not None and (value >= limit - _NEAR if kind == "min" else value <= limit + _NEAR)
    said = shown(value, metric)
    message = (
        f"{metric} is {said}, {bound} {limit:g}"
        if met
        else f"{metric} is undefined, where {limit:g} {must}"
        if value is None
        else f"{metric} is {said}, {beyond} {limit:g}"
    )
    return Verdict(
        kind=kind,
        metric=metric,
        part=None,
        outcome="pass" if met else "fail",
        met=met,
        numbers={"value": value, "threshold": limit},
        message=message,
    )


def scale(figures: Mapping[str, Any], name: str) -> int:
    """What makes of a figure what pages show: points of shares; SQuAD's, known by their ``exact``, are points already."""
    return 100 if is_share(name) and "exact" not in figures else 1


def scaled(value: float | None, by: int) -> float | None:
    """``value`` times ``by``, if there is one."""
    return None if value is None else by * value


def shown(value: float | None, name: str) -> str:
    """A scaled figure in words, with as many decimals as on the page."""
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.2f}" if is_share(name) else f"{value:.4f}"
