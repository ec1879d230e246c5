"""Time to the first result: each command from a cold start, beside the same through transformers written plainly.

    python recipes/bench/cold_start.py --classifier runs/sst2 --masked MODEL --data SST-2

Fresh processes in turn, medians of wall and CPU seconds. `eval` scores 100 rows, `predict` labels one text, `fill-mask` fills one
mask, `finetune` reads 32 rows, trains one step on them, scores 32 rows and saves the model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

TEXT = "a gripping and funny film ."
MASKED = "The capital of France is [MASK]."

READ = """
import csv, sys, torch, transformers
from transformers import AutoTokenizer, BertForSequenceClassification
transformers.utils.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar()
model_name, data = sys.argv[1:3]
def rows(name, count):
    with open(f"{data}/{name}.tsv", encoding="utf-8") as file:
        found = [row for row, _ in zip(csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE), range(count))]
    return [row["sentence"] for row in found], [int(row["label"]) for row in found]
tokenizer = AutoTokenizer.from_pretrained(model_name)
model = BertForSequenceClassification.from_pretrained(model_name)
def encode(texts):
    return tokenizer(texts, truncation=True, max_length=128, padding=True, return_tensors="pt")
def accuracy(texts, labels):
    model.eval()
    right = 0
    with torch.inference_mode():
        for low in range(0, len(texts), 32):
            said = model(**encode(texts[low : low + 32])).logits.argmax(-1)
            right += int((said == torch.tensor(labels[low : low + 32])).sum())
    return right / len(texts)
"""
PLAIN = {
    "eval": READ + "print(accuracy(*rows('dev', 100)))",
    "predict": """
import sys, transformers
transformers.utils.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar()
print(transformers.pipeline("text-classification", sys.argv[1])(sys.stdin.readline().strip()))
""",
    "fill-mask": """
import sys, transformers
transformers.utils.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar()
print(transformers.pipeline("fill-mask", sys.argv[1])(sys.argv[2])[0]["token_str"])
""",
    "finetune": READ
    + """
texts, labels = rows("train", 32)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
model(**encode(texts), labels=torch.tensor(labels)).loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
print(accuracy(*rows("dev", 32)))
model.save_pretrained(sys.argv[3]); tokenizer.save_pretrained(sys.argv[3])
""",
}


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of one process."""

    wall: float
    cpu: float


def spent(command: Sequence[str], stdin: str, threads: int) -> Spent:
    """Runs a command to its end.

    Raises:
        CalledProcessError: It failed; what it said is printed.
    """
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(list(command), input=stdin, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(wall, cpu)


def commands(arguments: argparse.Namespace, scratch: Path) -> dict[str, tuple[list[str], list[str], str]]:
    """For each piece of work bertkit's command, transformers' and what both read from stdin."""
    model, data = arguments.classifier, arguments.data
    ours = [sys.executable, "-m", "bertkit"]
    few = ["--max-train-samples", "32", "--max-eval-samples", "32", "--steps", "1"]
    rows = ["--data", data, "--max-eval-samples", "100"]

    def plain(name: str, *more: str) -> list[str]:
        return [sys.executable, "-c", PLAIN[name], *more]

    return {
        "eval": ([*ours, "eval", "sst2", "--model", model, *rows, "-o", f"{scratch}/e"], plain("eval", model, data), ""),
        "predict": ([*ours, "predict", "sst2", "--model", model], plain("predict", model), TEXT + "\n"),
        "fill-mask": ([*ours, "fill-mask", arguments.masked, MASKED], plain("fill-mask", arguments.masked, MASKED), ""),
        "finetune": (
            [*ours, "finetune", "sst2", "--model", model, "--data", data, *few, "--overwrite", "-o", f"{scratch}/f"],
            plain("finetune", model, data, f"{scratch}/g"),
            "",
        ),
    }


def main() -> None:
    """Prints one JSON line for each piece of work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classifier", required=True, help="a run of `bertkit finetune sst2`")
    parser.add_argument("--masked", required=True, help="a BERT folder with a masked-LM head")
    parser.add_argument("--data", required=True, help="SST-2's folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", nargs="*", choices=sorted(PLAIN))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name, (ours, theirs, stdin) in commands(arguments, Path(scratch)).items():
            if arguments.only and name not in arguments.only:
                continue
            found: dict[str, list[Spent]] = {"bertkit": [], "transformers": []}
            for number in range(arguments.rounds + 1):  # the first round fills the disk's cache
                for side, command in (("bertkit", ours), ("transformers", theirs)):
                    one = spent(command, stdin, arguments.threads)
                    found[side] += [one] if number else []
            line = {
                side: {"wall": round(median(x.wall for x in each), 2), "cpu": round(median(x.cpu for x in each), 2)}
                for side, each in found.items()
            }
            print(json.dumps({"work": name} | line), flush=True)


if __name__ == "__main__":
    main()
