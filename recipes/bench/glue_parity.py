"""Fine-tunes one model on CoLA, MRPC, RTE and STS-B with bertkit and with transformers' Trainer, several seeds, with dropout.

The two share the model, the rows and the hyper-parameters, and nothing else: bertkit is `bertkit finetune TASK` as people call
it; transformers is what its run_glue.py does (AutoTokenizer, BertForSequenceClassification, Trainer, DataCollatorWithPadding),
scored by scikit-learn and scipy. Both draw their own heads, orders and dropout, so means over seeds are compared: bertkit's
mean - theirs > -2.5 * sqrt((s1^2 + s2^2) / seeds). Each side of each seed is a process of its own, timed from its start to its
end, validation and saving included.

RTE's 2 490 rows teach a small body little: give that task a model fine-tuned on MNLI (tasks.py makes one), whose head goes.

Command:  python recipes/bench/glue_parity.py --model all-MiniLM-L6-v2 [--tasks cola,rte] [--seeds 1,2,3] [--time cpu]
Hardware: one core of a CPU or more (--threads), otherwise idle where seconds by the clock are judged; about 3 GB of memory.
Time:     about 3 h of one core for 6 layers of 384, two thirds of it transformers'; a task, side and seed that has its line
          in results.jsonl is not done again, one that was stopped begins anew, because it is timed.
Expected: every check true; exit 7 where one fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.bench.commands import CLOCKS, Lines, bertkit, run
from bertkit.bench.machine import machine_facts
from bertkit.tasks.data import TaskPart, load_parts
from bertkit.tasks.registry import task_named
from bertkit.training.optimizer import OptimizerSettings

SIDES = ("bertkit", "transformers")
WARMUP, LENGTH, WITHIN = 0.1, 128, 2.5  # a share; tokens at most; standard errors


@dataclass(frozen=True)
class Plan:
    """One task: its folder below the data, how it is trained, and the figure that is compared."""

    folder: str
    epochs: int
    batch: int
    rate: float
    figure: str
    least: float | None  # what transformers must reach to have learned; None: the largest class and 5 points


PLANS = {
    "cola": Plan("CoLA", 3, 32, 1e-4, "matthews", 0.2),
    "mrpc": Plan("MRPC", 2, 16, 1e-4, "accuracy", None),
    "rte": Plan("RTE", 2, 16, 5e-5, "accuracy", None),
    "stsb": Plan("STS-B", 1, 32, 1e-4, "pearson", 0.5),
}


def rows_of(task: str, given: argparse.Namespace) -> tuple[TaskPart, TaskPart]:
    """Training and validation rows, the same for both sides."""
    parts = load_parts(
        task_named(task),
        folder=str(given.data / PLANS[task].folder),
        max_train_samples=given.limit,
        max_eval_samples=given.limit,
    )
    return parts["train"], parts["validation"]


def bertkit_side(task: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """`bertkit finetune`."""
    plan, folder = PLANS[task], given.output / task / f"bertkit-{seed}"
    words = ["finetune", task, "--model", str(given.model), "--data", str(given.data / plan.folder), "--output", str(folder)]
    words += ["--seed", str(seed), "--epochs", str(plan.epochs), "--lr", str(plan.rate), "--batch-size", str(plan.batch)]
    words += ["--warmup", str(WARMUP), "--max-length", str(LENGTH), "--precision", "fp32", "--keep-last", "--overwrite"]
    words += ["--eval-every", "1000000"]  # validated once, at the end, as the other side
    words += ["--max-train-samples", str(given.limit), "--max-eval-samples", str(given.limit)] if given.limit else []
    told, done = bertkit(*words)
    figures = told["metrics"]
    return {"score": figures[plan.figure], "tokens": figures["tokens"] / plan.epochs, **done.times()}


def transformers_side(task: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """The other side, by :func:`trainer`."""
    words = ["--model", str(given.model), "--data", str(given.data), "--output", str(given.output)]
    words += ["--threads", str(given.threads), *(["--limit", str(given.limit)] if given.limit else [])]
    done = run([sys.executable, __file__, *words, "--tasks", task, "--trainer", str(seed)])
    return json.loads(done.out) | done.times()


def trainer(task: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """As transformers' examples/pytorch/text-classification/run_glue.py trains and evaluates."""
    import numpy as np
    from datasets import Dataset
    from scipy.stats import pearsonr
    from sklearn.metrics import matthews_corrcoef
    from transformers import (
        AutoConfig,
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    plan, declared = PLANS[task], task_named(task)
    train, validation = rows_of(task, given)
    numbers = {name: number for number, name in enumerate(declared.labels)}
    set_seed(seed)
    config = AutoConfig.from_pretrained(given.model, num_labels=len(numbers) or 1)
    if (config.hidden_dropout_prob, config.attention_probs_dropout_prob) != (0.1, 0.1):
        sys.exit("The comparison is of dropout 0.1, and the model's config.json has another.")
    tokenizer = AutoTokenizer.from_pretrained(given.model, use_fast=True)
    model = AutoModelForSequenceClassification.from_pretrained(
        given.model,
        config=config,
        dtype=torch.float32,
        ignore_mismatched_sizes=True,  # the head of another task goes, as bertkit's does
    )

    def encoded(part: TaskPart) -> Dataset:
        rows = [
            {"a": row.text, "b": row.pair, "label": numbers[str(row.label)] if numbers else float(row.label)} for row in part.rows
        ]
        pair = rows[0]["b"] is not None

        def tokenize(some: dict[str, list[Any]]) -> Any:
            texts = (some["a"], some["b"]) if pair else (some["a"],)
            return tokenizer(*texts, padding=False, max_length=LENGTH, truncation=True)

        return Dataset.from_list(rows).map(tokenize, batched=True, remove_columns=["a", "b"])

    with contextlib.redirect_stdout(sys.stderr):
        training, held = encoded(train), encoded(validation)
        defaults = OptimizerSettings()
        folder = given.output / task / f"transformers-{seed}"
        work = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=str(folder),
                seed=seed,
                num_train_epochs=plan.epochs,
                per_device_train_batch_size=plan.batch,
                per_device_eval_batch_size=64,
                learning_rate=plan.rate,
                lr_scheduler_type="linear",
                warmup_steps=math.ceil(WARMUP * plan.epochs * math.ceil(len(training) / plan.batch)),
                adam_beta1=defaults.beta1,
                adam_beta2=defaults.beta2,
                adam_epsilon=defaults.epsilon,
                weight_decay=defaults.weight_decay,
                max_grad_norm=defaults.max_grad_norm,
                save_strategy="no",
                eval_strategy="no",
                logging_steps=100,
                disable_tqdm=True,
                report_to="none",
            ),
            train_dataset=training,
            data_collator=DataCollatorWithPadding(tokenizer),
            processing_class=tokenizer,
        )
        work.train()
        work.save_model(str(folder))
        said = work.predict(held)
    gold, logits = np.asarray(held["label"]), np.asarray(said.predictions)
    if plan.figure == "pearson":
        score = pearsonr(np.clip(logits.squeeze(-1), *declared.bounds), gold).statistic  # bertkit's answers stay within them, too
    elif plan.figure == "matthews":
        score = matthews_corrcoef(gold, logits.argmax(-1))
    else:
        score = (logits.argmax(-1) == gold).mean()
    return {"score": float(score), "tokens": sum(map(len, training["input_ids"]))}


def run_task(task: str, given: argparse.Namespace, lines: Lines) -> dict[str, list[dict[str, Any]]]:
    """Both sides' lines, by side, each in the order of the seeds; those that are in the results file are not run again."""
    settings = asdict(PLANS[task]) | {"limit": given.limit, "threads": given.threads, "model": given.model.resolve().name}
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for seed in map(int, given.seeds.split(",")):  # the sides in turn, so that both see a machine that drifts
        for side, work in zip(SIDES, (bertkit_side, transformers_side), strict=True):
            facts = {"task": task, "side": side, "seed": seed, "settings": settings}
            line = lines.find(facts)
            if line is None:
                say(f"{task}, {side}, seed {seed}")
                line = lines.keep(facts | work(task, seed, given) | {"machine": machine_facts(torch.device("cpu")).as_dict()})
            found[side].append(line)
    return found


def least(task: str, given: argparse.Namespace) -> float:
    """What shows that transformers' side has learned."""
    fixed = PLANS[task].least
    if fixed is not None:
        return fixed
    gold = Counter(str(row.label) for row in rows_of(task, given)[1].rows)
    return max(gold.values()) / gold.total() + 0.05


def judged(
    task: str, sides: dict[str, list[dict[str, Any]]], given: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, bool]]:
    """The figures of a task, and what must hold."""
    scores = [[line["score"] for line in sides[side]] for side in SIDES]
    means = [statistics.fmean(each) for each in scores]
    deviations = [statistics.stdev(each) if len(each) > 1 else 0.0 for each in scores]
    room = WITHIN * math.sqrt(sum(each**2 for each in deviations) / len(scores[0]))
    times = {key: [round(sum(line[key] for line in sides[side]), 1) for side in SIDES] for key in CLOCKS.values()}
    judged_by = times[CLOCKS[given.time]]
    reach = least(task, given)
    checks = {
        "not worse": means[0] - means[1] > -room or means[0] == means[1],
        "less time": judged_by[0] < judged_by[1],
        "learned": means[1] >= reach,
        "same tokens": {line["tokens"] for line in sides["bertkit"]} == {line["tokens"] for line in sides["transformers"]},
    }
    figures = {"means": means, "std": deviations, "room": room, "least": reach, **times, "judged by": given.time}
    return figures, checks


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a BERT folder with dropout 0.1")
    parser.add_argument("--data", type=Path, help="the folder with CoLA/, MRPC/, …; default: $BERTKIT_DATA/data/glue")
    parser.add_argument("--tasks", default=",".join(PLANS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--output", type=Path, default=Path("runs/glue-parity"))
    parser.add_argument("--limit", type=int, help="rows of training and of validation at most, for a trial")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--time", choices=CLOCKS, default="wall", help="whose seconds are judged; both are printed")
    parser.add_argument("--trainer", type=int, metavar="SEED", help="only transformers' side of one task and seed: one JSON line")
    given = parser.parse_args()
    tasks = given.tasks.split(",")
    if unknown := set(tasks) - set(PLANS):
        parser.error(f"--tasks: {', '.join(sorted(unknown))}; there are {', '.join(PLANS)}")
    given.data = given.data or Path(os.environ.get("BERTKIT_DATA", ".")) / "data" / "glue"
    os.environ |= {"OMP_NUM_THREADS": str(given.threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    torch.set_num_threads(given.threads)
    if given.trainer is not None:
        print(json.dumps(trainer(tasks[0], given.trainer, given)))
        return 0
    if given.limit:
        given.output = given.output.with_name(f"{given.output.name}-limit-{given.limit}")
    lines, failed = Lines(given.output / "results.jsonl"), False
    for task in tasks:
        figures, checks = judged(task, run_task(task, given, lines), given)
        failed |= not all(checks.values())
        print(json.dumps({"task": task, "figure": PLANS[task].figure, **figures, "checks": checks}), flush=True)
    return 7 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
