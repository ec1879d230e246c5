"""Fine-tunes one model on every task of a data folder (GLUE's, or the Chinese ones) with bertkit's own defaults, and scores it.

Each task is `bertkit finetune TASK`, then `bertkit eval TASK` of the folder that it left, as people call them. `--fresh` takes
an unpretrained body of the same size with the same vocabulary in the model's place: what pretraining is worth. Flags behind
`--` go to `bertkit finetune` as they are.

Command:  python recipes/bench/glue.py --model all-MiniLM-L6-v2 [--tasks cola,rte] [--rows 6000] [--fresh] [-- --epochs 2]
Hardware: two cores of a CPU; about 3 GB of memory.
Time:     about 2 h for the nine tasks of GLUE from 6 layers of 384; what has its line in results.jsonl is not done again,
          and a task that was stopped goes on.
Expected: one JSON line a task, and a table: the figures, and what one answer for every row scores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bertkit.corpus.wordpiece import load_wordpiece
from bertkit.model.config import EncoderConfig
from bertkit.model.hf import read_config
from bertkit.tasks.constant import constant_score
from bertkit.tasks.data import load_parts
from bertkit.tasks.models import build_model
from bertkit.tasks.registry import kind_of, task_named

GLUE = {
    "cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "qqp": "QQP", "stsb": "STS-B",
    "mnli": "MNLI", "qnli": "QNLI", "rte": "RTE", "wnli": "WNLI",
}  # fmt: skip
LARGE = ("sst2", "qqp", "mnli", "qnli", "snli", "chnsenticorp", "afqmc", "tnews", "ocnli", "cmnli", "iflytek", "csl")


def folder_of(task: str, given: argparse.Namespace) -> Path:
    """The task's data below the data folder: as GLUE's archives call it, or by the task's own name."""
    folder: Path = given.data / GLUE.get(task, task)
    return folder


def fresh_body(model: Path, folder: Path, seed: int) -> Path:
    """Writes a body of the model's size with new weights, under its vocabulary."""
    if not (folder / "config.json").exists():
        config = EncoderConfig.read(read_config(model), str(model))
        wordpiece = load_wordpiece(model)
        folder.mkdir(parents=True, exist_ok=True)
        build_model("encoder", config, seed=seed).save(folder)
        wordpiece.save(folder, max_length=config.max_position_embeddings)
    return folder


def command(*words: str) -> dict[str, Any]:
    """Runs one command of bertkit in a process of its own; its progress goes to stderr, its JSON object comes back."""
    with subprocess.Popen([sys.executable, "-m", "bertkit", *words], stdout=subprocess.PIPE) as process:
        try:
            said = process.communicate()[0].decode()
        except KeyboardInterrupt:  # came to the command too, which is writing a checkpoint
            process.wait()
            raise
    if process.returncode:
        sys.exit(f"bertkit {' '.join(words)}: exit {process.returncode}\n{said}")
    found: dict[str, Any] = json.loads(said)
    return found


def run_task(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """One task: its line."""
    data, start = folder_of(name, given), "fresh" if given.fresh else "model"
    run = given.output / start / name
    model = fresh_body(given.model, given.output / "fresh-body", 1) if given.fresh else given.model
    rows = ["--max-train-samples", str(given.rows)] if given.rows and name in LARGE else []
    rows += ["--max-train-samples", str(given.limit), "--max-eval-samples", str(given.limit)] if given.limit else []
    both = ["--data", str(data), "--precision", "fp32", "--json"]
    started = time.perf_counter()
    trained = command("finetune", name, "--model", str(model), *both, *rows, "--output", str(run), *given.finetune)
    seconds = time.perf_counter() - started
    held = ["--max-eval-samples", str(given.limit)] if given.limit else []
    scored = command("eval", name, "--model", str(run), *both, *held)
    task = task_named(name)
    kind = kind_of(task)
    parts = load_parts(task, folder=str(data), max_train_samples=given.limit or given.rows, max_eval_samples=given.limit)
    labels = kind.labels(parts["train"].rows, task, None, for_training=True)
    decides = next(part for part in parts.values() if part.role == "validation")
    return {
        "primary": task.primary,
        "constant": constant_score(kind, decides.rows, task, labels),
        "figures": {key: value for key, value in scored["metrics"].items() if isinstance(value, (int, float, list))},
        "train_seconds": trained["metrics"].get("train_seconds"),
        "steps": trained["metrics"].get("steps"),
        "seconds": round(seconds, 1),
    }


def main() -> int:
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a BERT folder")
    parser.add_argument("--data", type=Path, help="the folder with CoLA/, SST-2/, …; default: $BERTKIT_DATA/data/glue")
    parser.add_argument("--tasks", help="default: those of GLUE that the data folder has")
    parser.add_argument("--rows", type=int, help="training rows at most of the large tasks, the first ones")
    parser.add_argument("--fresh", action="store_true", help="from an unpretrained body of the model's size")
    parser.add_argument("--output", type=Path, default=Path("runs/glue"))
    parser.add_argument("--limit", type=int, help="rows of training and of validation at most, of every task: for a trial")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args(own)
    given.finetune = sys.argv[len(own) + 2 :]
    given.data = given.data or Path(os.environ.get("BERTKIT_DATA", ".")) / "data" / "glue"
    tasks = given.tasks.split(",") if given.tasks else [name for name in GLUE if folder_of(name, given).is_dir()]
    if missing := [name for name in tasks if not folder_of(name, given).is_dir()]:
        parser.error(f"--data {given.data} has no folder of {', '.join(missing)}")
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    given.output.mkdir(parents=True, exist_ok=True)
    results = given.output / "results.jsonl"
    table = [("task", "from", "figure", "score", "constant", "seconds")]
    for name in tasks:
        facts = {"task": name, "from": "fresh" if given.fresh else "model", "model": given.model.name}
        facts |= {"rows": given.rows if name in LARGE else None, "limit": given.limit, "finetune": given.finetune}
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []
        line = next((line for line in lines if facts.items() <= line.items()), None)
        if line is None:
            print(f"{name}, from {facts['from']}", file=sys.stderr, flush=True)
            line = facts | run_task(name, given)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, allow_nan=False) + "\n")
        score = line["figures"].get(line["primary"])
        shown = "-" if score is None else f"{100 * score:.2f}"
        table.append((name, line["from"], line["primary"], shown, f"{100 * line['constant']:.2f}", f"{line['seconds']:.0f}"))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
