"""A pretraining in two phases, stopped in each, at the change and by kill -9, beside one that never is: the same to the bit?

Command:  python recipes/bench/phases.py --corpus enwiki-train.txt --valid enwiki-valid.txt --tokenizer vocab.txt --minutes 10
Hardware: two cores of a CPU.
Time:     twice --minutes, and a minute of starts. --minutes is turned into a fixed count of steps by a short run before; --steps
          gives it outright (--size tiny --phases 32:0.9,64:0.1 --batch-size 16 --steps 40 is a trial of a minute).
Expected: every line "ok": true. Anything else ends with exit code 7.

Both runs are `bertkit pretrain` as people call it, with the same arguments. The second one gets a SIGTERM in its first phase, one
during the last step of that phase (so that it stops exactly at the change), one in its second phase, and a SIGKILL behind that.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

TRIES = 5  # of a stop exactly at the change: a signal may come a step too early
failed = False


def report(check: str, ok: bool, **figures: Any) -> None:
    """One JSON line."""
    global failed
    failed |= not ok
    print(json.dumps({"check": check, "ok": bool(ok), **figures}), flush=True)


def change_of(phases: str, steps: int) -> int:
    """The last step of the first phase."""
    return int(float(phases.split(",")[0].split(":")[1]) * steps + 0.5)


class Run:
    """One run folder and the command that starts it or goes on."""

    def __init__(self, arguments: argparse.Namespace, name: str, steps: int) -> None:
        self.folder = arguments.output / name
        self.errors = arguments.output / f"{name}.err"
        every = max(2, steps // 8)
        while (change_of(arguments.phases, steps) - 1) % every == 0:  # saving would stand where the signal is to come
            every += 1
        self.command = [sys.executable, "-m", "bertkit", "pretrain", "--output", str(self.folder), "--steps", str(steps)]
        for flag in ("size", "corpus", "valid", "tokenizer", "phases", "batch_size", "seed"):
            value = getattr(arguments, flag)
            self.command += [f"--{flag.replace('_', '-')}", str(value)] if value is not None else []
        self.command += ["--precision", "fp32", "--log-every", "1", "--save-every", str(every), "--eval-every", str(steps)]
        self.command += arguments.more

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it, or goes on."""
        with self.errors.open("ab") as errors:
            return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=errors)

    def whole(self) -> float:
        """Runs it to its end; returns its trained seconds."""
        if (code := self.start().wait()) != 0:
            raise SystemExit(f"{' '.join(self.command)} ended with {code}: see {self.errors}")
        metrics = json.loads((self.folder / "metrics.json").read_text(encoding="utf-8"))
        return float(metrics["train_seconds"])

    def lines(self) -> list[dict[str, Any]]:
        """Of log.jsonl, those of steps; a last line that is being written is left out."""
        try:
            texts = (self.folder / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        except OSError:
            return []
        lines = [json.loads(text) for text in texts if text.endswith("\n")]
        return [line for line in lines if "loss" in line]

    def checkpoint(self) -> int:
        """The step of the newest checkpoint; 0 before the first."""
        found = (self.folder / "checkpoints").glob("checkpoint-*")
        return max((int(path.name.partition("-")[2]) for path in found), default=0)

    def lose(self, step: int) -> None:
        """Takes a checkpoint away, so that the next start goes on from the one before."""
        shutil.rmtree(self.folder / "checkpoints" / f"checkpoint-{step}")

    def _log(self) -> int | None:
        """Which file the log is: each start writes what it keeps of it anew."""
        try:
            return (self.folder / "log.jsonl").stat().st_ino
        except OSError:
            return None

    def stop(self, step: int, number: signal.Signals) -> int:
        """Goes on until step ``step`` is being computed, and sends the signal; returns the step that it stopped at."""
        before = self._log()
        process = self.start()
        while True:
            lines = self.lines() if self._log() != before else []
            if lines and lines[-1]["step"] >= step - 1:
                break
            if process.poll() is not None:
                raise SystemExit(f"The run ended with {process.returncode} before step {step}: see {self.errors}")
            time.sleep(0.005)
        seconds = [after["seconds"] - before["seconds"] for before, after in pairwise(lines)][-20:]
        time.sleep(0.4 * sorted(seconds)[len(seconds) // 2] if seconds else 0.0)  # into the step, not between two
        process.send_signal(number)
        code, expected = process.wait(), -signal.SIGKILL if number is signal.SIGKILL else 143
        if code != expected:
            raise SystemExit(f"The run ended with {code} and not with {expected}: see {self.errors}")
        return self.checkpoint()


def planned(arguments: argparse.Namespace) -> int:
    """Steps that take ``--minutes``, by a short run of the same shape."""
    if arguments.steps:
        return int(arguments.steps)
    parts = [part.split(":") for part in arguments.phases.split(",")]
    even = ",".join(f"{length}:{1 / len(parts)}" for length, _ in parts)
    run = Run(argparse.Namespace(**{**vars(arguments), "phases": even}), "pace", 12 * len(parts))
    run.whole()
    seconds: dict[int, list[float]] = {}
    for before, after in pairwise(run.lines()):
        if before["phase"] == after["phase"]:
            seconds.setdefault(after["phase"], []).append(after["seconds"] - before["seconds"])
    pace = sum(float(share) * sorted(times)[len(times) // 2] for (_, share), times in zip(parts, seconds.values(), strict=True))
    return max(40, int(60 * arguments.minutes / pace))


def stopped(run: Run, change: int, steps: int) -> None:
    """Stops the run in each phase, at the change and by SIGKILL, and lets it end."""
    behind = (change + steps) // 2
    for name, step, number in (
        ("in the first phase", change // 2, signal.SIGTERM),
        ("at the change", change, signal.SIGTERM),
        ("in the second phase", behind, signal.SIGTERM),
        ("by kill -9", behind + max(2, (steps - behind) // 2), signal.SIGKILL),
    ):
        at = run.stop(step, number)
        for _ in range(TRIES if step == change else 0):
            if at >= change:
                break
            run.lose(at)  # a step too early
            at = run.stop(step, number)
        hit = at == change if step == change else 0 < at < change if step < change else change < at < steps
        report(f"stopped {name}", hit, newest_checkpoint=at, change=change, steps=steps)
    run.whole()


def compare(one: Run, other: Run, steps: int) -> None:
    """Weights, Adam's moments and every logged loss of both."""
    for name, file in (
        ("weights", "model.safetensors"),
        ("Adam's moments", f"checkpoints/checkpoint-{steps}/training_state.safetensors"),
    ):
        mine, theirs = load_file(one.folder / file), load_file(other.folder / file)
        different = [key for key in sorted(mine.keys() | theirs.keys()) if not _same(mine.get(key), theirs.get(key))]
        report(f"{name} bit by bit", not different, tensors=len(mine), different=different[:5])
    keys = ("step", "epoch", "batch", "phase", "max_length", "loss", "lr", "tokens")
    rows = [[[line.get(key) for key in keys] for line in run.lines()] for run in (one, other)]
    report("every logged step", rows[0] == rows[1], steps=len(rows[0]), of=steps)


def _same(one: Any, other: Any) -> bool:
    """Equal to the bit; NaN would equal nothing, and no weight is NaN."""
    return one is not None and other is not None and one.dtype == other.dtype and one.equal(other)


def main() -> None:
    """Runs both and compares them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--valid")
    parser.add_argument("--tokenizer")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--phases", default="128:0.9,512:0.1")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--minutes", type=float, default=10.0, help="of each of the two runs")
    parser.add_argument("--steps", type=int, help="of each of the two runs, instead of --minutes")
    parser.add_argument("--output", type=Path, default=Path("phases"), help="a folder that is new, for both runs")
    arguments, more = parser.parse_known_args()
    arguments.more = more  # whatever else `bertkit pretrain` takes
    arguments.output.mkdir(parents=True)
    steps = planned(arguments)
    whole, parts = Run(arguments, "whole", steps), Run(arguments, "stopped", steps)
    seconds = whole.whole()
    lines = whole.lines()
    change = max(line["step"] for line in lines if line["phase"] == 1)
    planned_change = change == change_of(arguments.phases, steps)
    report("the run that was never stopped", len(lines) == steps and planned_change, steps=steps, change=change, seconds=seconds)
    began = time.monotonic()
    stopped(parts, change, steps)
    report("the run that was stopped", True, wall_seconds=round(time.monotonic() - began, 1))
    compare(whole, parts, steps)
    sys.exit(7 if failed else 0)


if __name__ == "__main__":
    main()
