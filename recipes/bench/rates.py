"""Which settings pretrain a size best: `bertkit pretrain` over a grid of any settings, by the loss on a validation file.

Command:  python recipes/bench/rates.py --size tiny --corpus enwiki-train.txt --valid enwiki-valid.txt --tokenizer vocab.txt \
              --seconds 120 --vary optimizer.learning_rate=1e-3,2e-3,4e-3 --vary batch.size=16,32 --then optimizer.name=muon
Hardware: two cores of a CPU. `--pace-only` first, on an idle machine; the runs themselves may share it.
Time:     a minute for the paces; then --seconds of an idle machine a run.
Expected: one JSON line a run, the best one last.

Every run gets the same time, but not by its own clock, which a busy machine would spoil: what a step costs is measured apart
(`--pace-only`, and where that was not, before the first run that needs it), and a run takes as many steps as --seconds hold of
it. --steps gives every run the same steps instead. Runs that are done stand in OUTPUT/results.jsonl and are not made again; one
that was stopped goes on. Other flags are those of `bertkit pretrain`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import Any

from bertkit.bench.commands import Lines, bertkit

FREE = ("optimizer.learning_rate", "optimizer.beta", "optimizer.weight_decay", "schedule.", "run.seed", "model.unigram_bias")
"""Settings, by their beginnings, that make no step dearer or cheaper."""
PACED = 16  # steps that tell the pace, the first quarter of them left out
KEPT = ("mlm_loss", "mlm_accuracy", "nsp_loss", "unigram_loss", "tokens")

Settings = dict[str, str]


def points(varied: list[str]) -> Iterator[Settings]:
    """Each combination of ``name=value,value`` texts."""
    names = [text.partition("=")[0] for text in varied]
    for values in product(*(text.partition("=")[2].split(",") for text in varied)):
        yield dict(zip(names, values, strict=True))


def name_of(settings: Settings, steps: int) -> str:
    """A folder's name."""
    return "-".join([*(f"{name.rpartition('.')[2]}-{value}" for name, value in sorted(settings.items())), str(steps)])


class Grid:
    """The runs of one size and one text, and what is known of them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.output = arguments, arguments.output
        self.results, self.paces = (Lines(self.output / name) for name in ("results.jsonl", "paces.jsonl"))

    def pretrain(self, settings: Settings, steps: int, *more: str) -> tuple[Path, dict[str, Any]]:
        """One run, or what is left of it: its folder and its metrics."""
        folder = self.output / name_of(settings, steps)
        words = ["pretrain", "--output", str(folder), "--steps", str(steps)]
        for flag in ("size", "corpus", "valid", "tokenizer"):
            words += [f"--{flag}", str(getattr(self.arguments, flag))]
        for name, value in settings.items():
            words += ["--set", f"{name}={value}"]
        told, _ = bertkit(*words, *self.arguments.more, *more)
        return folder, told["metrics"]

    def pace(self, settings: Settings) -> float:
        """Seconds a step, measured once for all points that cost the same."""
        paid = {name: value for name, value in settings.items() if not name.startswith(FREE)}
        asked = {"size": self.arguments.size, "settings": paid}
        row = self.paces.find(asked)
        if row is None:
            folder, _ = self.pretrain(paid, PACED, "--log-every", "1", "--set", "inputs.validation_sequences=8")
            log = map(json.loads, (folder / "log.jsonl").read_text(encoding="utf-8").splitlines())
            times = [line["seconds"] for line in log if "loss" in line]
            seconds = median(after - before for before, after in pairwise(times[PACED // 4 :]))
            row = self.paces.keep(asked | {"seconds": round(seconds, 4)})
            shutil.rmtree(folder)
        return float(row["seconds"])  # as it is kept: another start must come to the same steps

    def steps(self, settings: Settings) -> int:
        """How long a run is."""
        return int(self.arguments.steps or max(1, round(self.arguments.seconds / self.pace(settings))))

    def row(self, settings: Settings) -> dict[str, Any]:
        """What a run came to; run unless it was before."""
        steps = self.steps(settings)
        asked = {"size": self.arguments.size, "settings": settings, "steps": steps, "more": self.arguments.more}
        row = self.results.find(asked)
        if row is None:
            folder, metrics = self.pretrain(settings, steps)
            row = self.results.keep(asked | {name: metrics[name] for name in KEPT if name in metrics})
            shutil.rmtree(folder)
        print(json.dumps(row), flush=True)
        return row


def main() -> None:
    """Makes the runs that are not made yet, and prints them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--valid", required=True)
    parser.add_argument("--tokenizer", required=True)
    several = {"action": "append", "default": [], "metavar": "NAME=VALUE,..."}
    parser.add_argument("--vary", **several, help="a setting and its values: every combination of all of these is run")
    parser.add_argument("--then", **several, help="afterwards, one after another: other values of one setting of the best so far")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--seconds", type=float, help="of an idle machine, for each run")
    length.add_argument("--steps", type=int, help="for each run, whatever they cost")
    parser.add_argument("--pace-only", action="store_true", help="measure what steps cost, and no more")
    parser.add_argument("--output", type=Path, default=Path("rates"))
    arguments, more = parser.parse_known_args()
    arguments.more = more  # whatever else `bertkit pretrain` takes
    grid = Grid(arguments)
    if arguments.pace_only:
        others = [{}, *(point for then in arguments.then for point in points([then]))]
        for settings, other in product(points(arguments.vary), others):
            print(json.dumps({"settings": settings | other, "seconds a step": grid.pace(settings | other)}), flush=True)
        return
    found = [grid.row(settings) for settings in points(arguments.vary)]
    for then in arguments.then:
        found += [grid.row(best(found)["settings"] | settings) for settings in points([then])]
    print(json.dumps({"best": best(found)["settings"], "mlm_loss": best(found)["mlm_loss"], "of": len(found)}))


def best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The one of the lowest loss."""
    return min(rows, key=lambda row: float(row["mlm_loss"]))


if __name__ == "__main__":
    main()
