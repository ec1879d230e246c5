"""What the trials of a sweep came to: the best, means and deviations over seeds, who learned nothing; a table of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.jobs.console import Console, figure_rows
from bertkit.jobs.training_job import Figures
from bertkit.notices import say
from bertkit.settings.sweep import Trial
from bertkit.tasks.added_figures import PREFIX
from bertkit.tasks.task import Task

_NO_SCORES = ("train_seconds",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One trial and its figures; None where it diverged."""

    trial: Trial
    output: Path
    figures: Figures | None

    @property
    def scores(self) -> dict[str, float | None]:
        """The figures that are scores: no counts, no intervals, no seconds."""
        found = self.figures or {}
        return {n: v for n, v in found.items() if (isinstance(v, float) or v is None) and n not in _NO_SCORES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """All trials of a sweep, in their order; one at least has figures.

    Attributes:
        tried: The trials.
        task: Its primary figure decides.
        constant: What one answer for every row scores: who is not above it has learned nothing.
    """

    tried: tuple[Tried, ...]
    task: Task
    constant: float

    @property
    def best(self) -> Tried:
        """The first with the highest primary figure; one that is undefined is below all."""
        return max((each for each in self.tried if each.figures is not None), key=self._rank)

    def _rank(self, tried: Tried) -> float:
        value = (tried.figures or {}).get(self.task.primary)
        return float("-inf") if value is None else float(value)

    def learned(self, tried: Tried) -> bool:
        """Is it above what one answer for every row scores?"""
        return self._rank(tried) > self.constant

    def figures(self) -> Figures:
        """The best trial's figures and, where its combination has several seeds, mean and deviation of each score."""
        best = self.best
        assert best.figures is not None
        own = [each for each in self.tried if each.trial.combination == best.trial.combination]
        if len(own) == 1:
            return best.figures
        mean, std = mean_and_std([each.scores for each in own])
        return best.figures | {f"{n}_mean": v for n, v in mean.items()} | {f"{n}_std": v for n, v in std.items()}

    def record(self) -> dict[str, Any]:
        """All of it as plain values."""
        combinations: dict[Any, list[Tried]] = {}
        for each in self.tried:
            combinations.setdefault(each.trial.combination, []).append(each)
        return {
            "primary": self.task.primary,
            "shown": self._shown(),
            "constant": self.constant,
            "kept": self.best.trial.name,
            "trials": [self._of_trial(each) for each in self.tried],
            "combinations": [self._of_combination(dict(values), some) for values, some in combinations.items()],
        }

    def _shown(self) -> list[str]:
        """The scores that a table has room for: the task's own, of each part, and added ones; not those of parts of an answer
        (``LOC_f1``, ``HasAns_exact``).
        """
        own = tuple(f"{metric}_" for metric in self.task.metrics)
        names = dict.fromkeys(name for each in self.tried for name in each.scores)
        return [name for name in names if name in self.task.metrics or name.startswith((*own, PREFIX))]

    def _of_trial(self, tried: Tried) -> dict[str, Any]:
        return {
            "name": tried.trial.name,
            "values": tried.trial.values,
            "folder": f"{tried.output.parent.name}/{tried.output.name}",
            "state": "diverged" if tried.figures is None else "finished",
            "learned": self.learned(tried),
            "figures": tried.figures,
            "scores": tried.scores,
        }

    def _of_combination(self, values: dict[str, float], some: Sequence[Tried]) -> dict[str, Any]:
        mean, std = mean_and_std([each.scores for each in some])
        learned = sum(map(self.learned, some))
        return {"values": values, "trials": len(some), "learned": learned, "mean": mean, "std": std}

    def say_what_did_not_learn(self) -> None:
        """A notice that names the trials which did not, if there are any."""
        names = [each.trial.name for each in self.tried if not self.learned(each)]
        if names:
            say(
                "degenerate",
                f"{len(names)} of {len(self.tried)} trials did not learn, no better than one answer for every row: "
                f"{', '.join(names)}. The means count them.",
            )


def mean_and_std(scores: Sequence[Mapping[str, float | None]]) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Means and sample standard deviations (of n - 1) by name, over those that are defined; None of too few."""
    names = dict.fromkeys(name for each in scores for name in each)
    there = {name: [value for each in scores if (value := each.get(name)) is not None] for name in names}
    mean = {name: statistics.fmean(values) if values else None for name, values in there.items()}
    std = {name: statistics.stdev(values) if len(values) > 1 else None for name, values in there.items()}
    return mean, std


def show(record: Mapping[str, Any], console: Console) -> None:
    """Prints a sweep's record: a row a trial and, of several seeds, a row a combination."""
    trials, combinations = record["trials"], record["combinations"]
    names = record.get("shown") or list(dict.fromkeys(name for each in trials for name in each["scores"]))
    rows = [[*_values(each), *_points(each["scores"], names), _note(each, record["kept"])] for each in trials]
    console.table(rows, [*trials[0]["values"], *names, ""])
    if len(trials) == len(combinations):
        return
    console.result()
    rows = []
    for each in combinations:
        mean, std = _points(each["mean"], names), _points(each["std"], names)
        shown = [f"{middle} ± {apart}" for middle, apart in zip(mean, std, strict=True)]
        rows.append([*_values(each), *shown, f"{each['learned']} of {each['trials']}"])
    console.table(rows, [*combinations[0]["values"], *(f"{name}, mean ± std" for name in names), "learned"])


def _values(of: Mapping[str, Any]) -> list[str]:
    return [f"{value:g}" for value in of["values"].values()]


def _points(scores: Mapping[str, float | None], names: Sequence[str]) -> list[str]:
    shown = dict(figure_rows(scores))  # of all: which figures are points already is told by their company
    return [shown.get(name, "-") for name in names]


def _note(trial: Mapping[str, Any], kept: str) -> str:
    if trial["state"] == "diverged":
        return "diverged"
    notes = ["kept"] if trial["name"] == kept else []
    return ", ".join(notes + ([] if trial["learned"] else ["did not learn"]))
