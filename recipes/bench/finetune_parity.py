"""Fine-tunes one model on five tasks with bertkit and with transformers' own classes, and compares the scores.

Both sides start from one folder (the same body, the same new head, no dropout) and see the same batches in the same order
under the same AdamW, clipping and schedule. bertkit's side is `bertkit finetune`, then `bertkit eval` of the folder that it
left; transformers' is the plain loop of bertkit/bench/reference.py. Both sides' answers are scored by one arithmetic, and both
are timed from the start of their processes to the end, reading, encoding and validation included.

Command:  python recipes/bench/finetune_parity.py --model all-MiniLM-L6-v2 [--tasks conll2003,squad] [--limit 64] [--time cpu]
Hardware: one core of a CPU or more (--threads), otherwise idle where seconds by the clock are judged; about 3 GB of memory.
Time:     about 45 min for all five tasks on two cores; a side that has its line in results.jsonl is not done again, one that was
          stopped begins anew, because it is timed.
Expected: every check "yes"; exit 7 where one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import string
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.batches.labelled import LabelledSource
from bertkit.bench import reference
from bertkit.bench.commands import CLOCKS, Lines, bertkit, run
from bertkit.bench.machine import machine_facts
from bertkit.corpus.wordpiece import load_wordpiece
from bertkit.tasks.data import load_parts
from bertkit.tasks.labels import Labels
from bertkit.tasks.registry import kind_of, task_named
from bertkit.training.optimizer import OptimizerSettings

BATCH, SEED, WARMUP = 32, 42, 0.1
SIDES = ("bertkit", "transformers")
EVERY = 10.0  # seconds between two lines of progress


@dataclass(frozen=True)
class Plan:
    """One task: its files below the data folder, and how it is trained."""

    train: str
    validation: str
    rows: int | None  # of the training file, the first; None: all
    epochs: int
    rate: float
    length: int  # tokens at most
    least: float | None  # points that show that transformers' side has learned; None: the largest class and 5 more


PLANS = {
    "cola": Plan("glue/CoLA/train.tsv", "glue/CoLA/dev.tsv", None, 3, 1e-4, 64, 20.0),
    "sst2": Plan("glue/SST-2/train.tsv", "glue/SST-2/dev.tsv", 6000, 1, 1e-4, 64, None),
    "mnli": Plan("glue/MNLI/train.tsv", "glue/MNLI/dev_matched.tsv", None, 1, 1e-4, 128, None),
    "conll2003": Plan("conll2003/train.txt", "conll2003/valid.txt", None, 1, 2e-4, 128, 60.0),
    "squad": Plan("squad/train-v1.1-2000.json", "squad/dev-v1.1-1000.json", None, 1, 2e-4, 256, 30.0),
}
EXPECTED_LOSS = 1e-4  # of the first step, relative
WITHIN = 1.0  # points


class Trial:
    """One task with its data and the folder that both sides start from."""

    def __init__(self, name: str, given: argparse.Namespace) -> None:
        self.name, self.plan, self.limit = name, PLANS[name], given.limit
        self.train_file, self.validation_file = (str(given.data / f) for f in (self.plan.train, self.plan.validation))
        self.rows = min(n for n in (self.plan.rows, given.limit, 10**9) if n)
        self.words = ["--model", str(given.model), "--data", str(given.data), "--output", str(given.output)]
        self.words += ["--threads", str(given.threads), *(["--limit", str(given.limit)] if given.limit else [])]
        self.settings = asdict(self.plan) | {"limit": given.limit, "batch": BATCH, "seed": SEED, "threads": given.threads}
        self.settings |= {"model": given.model.resolve().name}
        self.task = task_named(name)
        self.kind = kind_of(self.task)
        self.kind_settings = self.kind.settings(max_length=self.plan.length)
        parts = load_parts(
            self.task,
            train_file=self.train_file,
            validation_file=self.validation_file,
            max_train_samples=self.rows,
            max_eval_samples=given.limit,
        )
        self.train, self.validation = parts["train"].rows, next(p for n, p in parts.items() if n != "train").rows
        self.labels: Labels = self.kind.labels(self.train, self.task, None, for_training=True)
        self.folder = given.output / name
        self.start = self.folder / "start"
        if not self.start.exists():
            draft = self.start.with_name(".start")
            reference.write_start(given.model, draft, self.kind.head, self.labels.names, seed=SEED)
            draft.rename(self.start)
        self.wordpiece = load_wordpiece(self.start)

    @property
    def scale(self) -> float:
        """From the figures to points."""
        return 1.0 if self.name == "squad" else 100.0

    @property
    def largest_class(self) -> float | None:
        """Points of always giving the most frequent label."""
        if self.kind.name != "classification":
            return None
        return 100.0 * max(Counter(str(row.label) for row in self.validation).values()) / len(self.validation)

    @property
    def least(self) -> float:
        """Points that transformers' side must reach."""
        return self.plan.least if self.plan.least is not None else (self.largest_class or 0.0) + 5.0


def bertkit_side(trial: Trial) -> dict[str, Any]:
    """`bertkit finetune`, then `bertkit eval` of what it left."""
    plan, run_folder = trial.plan, trial.folder / "bertkit"
    both = ["--validation-file", trial.validation_file, "--max-length", str(plan.length), "--precision", "fp32"]
    both += ["--max-eval-samples", str(trial.limit)] if trial.limit else []
    trained, done = bertkit(
        "finetune", trial.name, "--model", str(trial.start), "--train-file", trial.train_file, "--output", str(run_folder), *both,
        "--max-train-samples", str(trial.rows), "--epochs", str(plan.epochs), "--lr", str(plan.rate), "--warmup", str(WARMUP),
        "--batch-size", str(BATCH), "--seed", str(SEED), "--keep-last", "--log-every", "1", "--eval-every", "1000000",
        "--overwrite",
    )  # fmt: skip
    evaluated, _ = bertkit("eval", trial.name, "--model", str(run_folder), *both)
    figures = {name: value for name, value in trained["metrics"].items() if name in evaluated["metrics"]}
    lines = (run_folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    first = next(line for line in map(json.loads, lines) if line["step"] == 1)
    return {
        "score": figures[trial.task.primary] * trial.scale,
        "train_seconds": trained["metrics"]["train_seconds"],
        **done.times(),
        "tokens": trained["metrics"]["tokens"],
        "steps": trained["metrics"]["steps"],
        "first_loss": first["loss"],
        "new_head": any(warning["kind"] == "new-head" for warning in trained["warnings"]),
        "eval_equals": figures == evaluated["metrics"],
        "figures": evaluated["metrics"],
    }


def transformers_side(trial: Trial) -> dict[str, Any]:
    """The other side, in a process of its own."""
    done = run([sys.executable, __file__, *trial.words, "--tasks", trial.name, "--trainer"])
    return json.loads(done.out) | done.times()


def trainer(trial: Trial) -> dict[str, Any]:
    """transformers' class of the kind, trained by the plain loop."""
    plan, kind = trial.plan, trial.kind
    encoded = kind.encode(trial.train, trial.wordpiece, trial.labels, trial.kind_settings, for_training=True)
    source = LabelledSource(encoded.examples, kind.collate, seed=SEED, batch_size=BATCH)
    batches = (batch for epoch in range(plan.epochs) for i in range(source.steps(epoch)) for batch in source.step(epoch, i))
    steps = sum(source.steps(epoch) for epoch in range(plan.epochs))
    model = reference.load(trial.start, kind.head)
    first: tuple[float, float] | None = None
    tokens, started = 0, time.perf_counter()
    said = started
    settings = OptimizerSettings(learning_rate=plan.rate)
    for step, loss, own, some in reference.train(model, batches, steps=steps, settings=settings, warmup=WARMUP):
        first = first or (loss, own)
        tokens += some
        now = time.perf_counter()
        if now - said >= EVERY:
            said, pace = now, (now - started) / step
            say(f"transformers {trial.name}: {step} of {steps}, loss {loss:.3f}, {tokens / (now - started):,.0f} tokens/s, "
                f"{pace * (steps - step):,.0f} s left")  # fmt: skip
    seconds = time.perf_counter() - started
    assert first is not None
    encoded = kind.encode(trial.validation, trial.wordpiece, trial.labels, trial.kind_settings)
    outputs = reference.outputs(model, encoded.examples, kind.collate)
    predictions = kind.decode(outputs, encoded.examples, trial.validation, trial.labels, trial.kind_settings)
    scores = kind.score(predictions, trial.validation, trial.task, trial.labels)
    return {
        "score": float(scores.best or 0.0) * trial.scale,
        "train_seconds": round(seconds, 1),
        "tokens": tokens,
        "steps": steps,
        "first_loss": first[0],
        "first_own_loss": first[1],
        "apart": counted_apart(trial, outputs, encoded.examples, predictions),
        "figures": scores.values,
    }


def counted_apart(trial: Trial, outputs: Sequence[np.ndarray], examples: Sequence[Any], predictions: Sequence[Any]) -> Any:
    """A figure of the same answers by a few lines of one's own: accuracy from logits, or SQuAD's exact match; with its name."""
    if trial.kind.name == "classification":
        gold = np.array([trial.labels.number(str(row.label)) for row in trial.validation])
        return ["accuracy", float((np.stack(outputs).argmax(1) == gold).mean())]
    if trial.kind.name == "choice":
        hits = [output.argmax() == row.label for output, row in zip(outputs, trial.validation, strict=True)]
        return ["accuracy", float(np.mean(hits))]
    if trial.kind.name == "tagging":
        hits = words = 0
        for output, example in zip(outputs, examples, strict=True):
            tags = [trial.labels.names[number] for number in output[example.positions].argmax(1)]
            said = predictions[example.row]
            hits += sum(said.gold[word] == tag for word, tag in zip(example.words.tolist(), tags, strict=True))
            words += len(tags)
        return ["accuracy", hits / words]

    def plain(text: str) -> list[str]:
        kept = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", kept).split()

    pairs = zip(predictions, trial.validation, strict=True)
    right = [plain(str(said.value)) in [plain(answer.text) for answer in row.answers] for said, row in pairs]
    return ["exact", 100.0 * sum(right) / len(right)]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_pair(trial: Trial, lines: Lines) -> dict[str, dict[str, Any]]:
    """Both sides of a task, those with a line in the results file excepted."""
    found = {}
    for side, work in zip(SIDES, (bertkit_side, transformers_side), strict=True):
        facts = {"task": trial.name, "side": side, "settings": trial.settings}
        line = lines.find(facts)
        if line is None:
            plan = trial.plan
            say(f"{trial.name}, {side}: {len(trial.train):,} training rows, {plan.epochs} epochs, {plan.rate:g} peak rate")
            machine = machine_facts(torch.device("cpu")).as_dict()
            line = lines.keep(facts | work(trial) | {"machine": machine})
        found[side] = line
    return found


def checks(trial: Trial, ours: dict[str, Any], theirs: dict[str, Any], clock: str) -> dict[str, bool]:
    """What must hold, by name; less time by ``clock``."""
    name, apart = theirs["apart"]
    return {
        "within 1 point or above": ours["score"] >= theirs["score"] - WITHIN,
        "in less time": ours[clock] < theirs[clock],
        f"transformers reached {trial.least:.1f}": theirs["score"] >= trial.least,
        "same start": abs(ours["first_loss"] / theirs["first_loss"] - 1) < EXPECTED_LOSS and not ours["new_head"],
        "same tokens": ours["tokens"] == theirs["tokens"] and ours["steps"] == theirs["steps"],
        "eval equal": ours["eval_equals"],
        "counted apart": abs(apart - theirs["figures"][name]) < 1e-9,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a BERT folder")
    parser.add_argument("--data", type=Path, help="the folder with glue/, conll2003/, squad/; default: $BERTKIT_DATA/data")
    parser.add_argument("--tasks", default=",".join(PLANS))
    parser.add_argument("--output", type=Path, default=Path("runs/finetune-parity"))
    parser.add_argument("--limit", type=int, help="rows of training and of validation at most, for a trial")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--time", choices=CLOCKS, default="wall", help="whose seconds are judged; both are printed")
    parser.add_argument("--trainer", action="store_true", help="only transformers' side of one task: one JSON line")
    given = parser.parse_args()
    tasks = given.tasks.split(",")
    if unknown := set(tasks) - set(PLANS):
        parser.error(f"--tasks: {', '.join(sorted(unknown))}; there are {', '.join(PLANS)}")
    given.data = given.data or Path(os.environ.get("BERTKIT_DATA", ".")) / "data"
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    torch.set_num_threads(given.threads)
    reference.quiet()
    if given.limit and not given.trainer:
        given.output = given.output.with_name(f"{given.output.name}-limit-{given.limit}")
    if given.trainer:
        print(json.dumps(trainer(Trial(tasks[0], given))))
        return 0
    lines, clock = Lines(given.output / "results.jsonl"), CLOCKS[given.time]
    rows, failed = [], False
    for name in tasks:
        trial = Trial(name, given)
        pair = run_pair(trial, lines)
        ours, theirs = (pair[side] for side in SIDES)
        found = checks(trial, ours, theirs, clock)
        failed |= not all(found.values())
        padding = f" ({theirs['first_own_loss']:.6f} with padding in the softmax)" if name == "squad" else ""
        say(f"{name}: first loss {ours['first_loss']:.6f} and {theirs['first_loss']:.6f}{padding}")
        say(f"{name}: " + ", ".join(f"{check} {'yes' if ok else 'NO'}" for check, ok in found.items()))
        wrong = [check for check, ok in found.items() if not ok]
        times = [f"{side[key]:.0f}" for key in CLOCKS.values() for side in (ours, theirs)]
        scores = [f"{figure:.2f}" for figure in (ours["score"], theirs["score"], trial.least)]
        rows.append((name, trial.task.primary, *scores, *times, ", ".join(wrong) or "none"))
    header = ("task", "figure", "bertkit", "transformers", "at least", "s", "s", "CPU s", "CPU s", "checks failed")
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 7 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
