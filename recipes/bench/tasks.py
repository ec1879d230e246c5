"""Fine-tunes one model on tasks of a data folder with bertkit's own defaults, and scores it on their real files.

Each task is `bertkit finetune TASK`, then `bertkit eval TASK` of the folder that it left, as people call them. The table `PLACES`
names every task's files and the parts that are reported; of several epochs the one that is best on the validation part is kept.
`--fresh` takes an unpretrained body of the same size with the same vocabulary in the model's place: what pretraining is worth.
Flags behind `--` go to `bertkit finetune` as they are. Rows of an evaluation whose texts also stand in the training file
(ChnSentiCorp has such as published) are left out of a copy below the output, and counted.

Command:  python recipes/bench/tasks.py --model all-MiniLM-L6-v2 [--tasks cola,squad-2000] [--rows 6000] [--fresh] [-- --epochs 2]
          (recipes/bench/chinese_model.sh makes the small model for chnsenticorp,afqmc,tnews,weibo_ner,drcd,cmrc2018)
Hardware: one core of a CPU or more (--threads); about 3 GB of memory.
Time:     by task, model and threads: the lines of results.jsonl have the seconds. What has its line there is not done again,
          and a task that was stopped goes on; one that fails is said, and the others are done.
Expected: one JSON line a task in results.jsonl, and a table: the figures, and what one answer for every row scores. Exit 1 where
          a task failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertkit.bench.commands import Lines, bertkit
from bertkit.bench.machine import machine_facts
from bertkit.corpus.wordpiece import load_wordpiece
from bertkit.errors import BertkitError
from bertkit.jobs.material import judged_task
from bertkit.model.config import EncoderConfig
from bertkit.model.hf import read_config
from bertkit.tasks.constant import constant_score
from bertkit.tasks.data import load_parts
from bertkit.tasks.models import build_model
from bertkit.tasks.registry import kind_of, task_named

DEV, TEST = "validation", "test"


@dataclass(frozen=True)
class Place:
    """Where a run's data lie below the data folder, and what of them is used.

    Attributes:
        folder: Without ``train``, the task's own folder.
        task: The task; None: the run's own name.
        train: Files of the folder; several in SQuAD's form are joined.
        validation: One beside ``train``; None: a tenth of the training rows is held out.
        test: One beside ``train``.
        large: Only the first ``--rows`` training rows are taken.
        held: Rows of an evaluation at most, the first ones.
        reported: The parts that are scored.
        apart: Rows of ``validation`` and ``test`` whose texts stand in ``train`` too are left out.
    """

    folder: str
    task: str | None = None
    train: tuple[str, ...] = ()
    validation: str | None = None
    test: str | None = None
    large: bool = False
    held: int | None = None
    reported: tuple[str, ...] = (DEV,)
    apart: bool = False


GLUE = {
    "cola": Place("glue/CoLA"),
    "sst2": Place("glue/SST-2", large=True),
    "mrpc": Place("glue/MRPC"),
    "qqp": Place("glue/QQP", large=True),
    "stsb": Place("glue/STS-B"),
    "mnli": Place("glue/MNLI", large=True),
    "qnli": Place("glue/QNLI", large=True),
    "rte": Place("glue/RTE"),
    "wnli": Place("glue/WNLI"),
}
V1, V2 = "dev-v1.1-1000.json", "dev-v2.0-1000.json"
PLACES = GLUE | {
    "squad": Place("squad", train=("train-v1.1-11877.json",), validation=V1),
    "squad-2000": Place("squad", "squad", train=("train-v1.1-2000.json",), validation=V1),
    "squad_v2": Place("squad", train=("train-v2.0-2000.json", "train-v2.0-extra-2000.json"), validation=V2),
    "squad_v2-2000": Place("squad", "squad_v2", train=("train-v2.0-2000.json",), validation=V2),
    "conll2003": Place("conll2003", reported=(DEV, TEST)),
    "swag": Place("codah", reported=(DEV, TEST)),
    "chnsenticorp": Place(
        "zh/chnsenticorp",
        train=("train.tsv",),
        validation="dev.tsv",
        test="test.tsv",
        large=True,
        reported=(DEV, TEST),
        apart=True,
    ),
    "afqmc": Place("zh/afqmc", large=True),
    "tnews": Place("zh/tnews", large=True),
    "weibo_ner": Place("zh/weibo_ner", reported=(DEV, TEST)),
    "drcd": Place("zh/drcd", train=("DRCD_dev.json",), test="DRCD_test.json", reported=(TEST,)),
    "cmrc2018": Place("zh/cmrc2018", held=1000),
}


class Run:
    """One task from one model.

    Args:
        name: Of the table, or of a task whose files lie in a folder of its name.
        given: The command line.
    """

    def __init__(self, name: str, given: argparse.Namespace) -> None:
        self.name, self.given = name, given
        self.place = PLACES.get(name, Place(name, large=True))
        self.task = task_named(self.place.task or name)
        self.data: Path = given.data / self.place.folder
        self.start = "fresh" if given.fresh else "model"
        self.model: str = given.model.resolve().name
        self.folder: Path = given.output / self.model / self.start / name
        self.prepared: Path = given.output / "data" / name
        self.rows = min((n for n in (given.limit, given.rows if self.place.large else None) if n), default=None)
        self.held = min((n for n in (given.limit, self.place.held) if n), default=None)
        self.left_out: dict[str, int] = {}

    @property
    def facts(self) -> dict[str, Any]:
        """What tells its line from others."""
        named = {"task": self.name, "from": self.start, "model": self.model}
        return named | {"rows": self.rows, "held": self.held, "finetune": self.given.finetune}

    def files(self) -> dict[str, str]:
        """The files by role, where the table names them; made below the output where they are not the published ones."""
        place = self.place
        found = {"train": self._joined()} if place.train else {}
        found |= {role: self.data / name for role, name in ((DEV, place.validation), (TEST, place.test)) if name}
        if place.apart:
            found |= {role: self._apart(role, found[role], found["train"]) for role in (DEV, TEST)}
        return {role: str(path) for role, path in found.items()}

    def _joined(self) -> Path:
        paths = [self.data / name for name in self.place.train]
        if len(paths) == 1:
            return paths[0]
        read = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
        return self._made("train.json", json.dumps(read[0] | {"data": [page for each in read for page in each["data"]]}))

    def _apart(self, role: str, path: Path, train: Path) -> Path:
        """A copy without the rows (label, tab, text; below a header) that the training file has too."""
        known = {_text(line) for line in train.read_text(encoding="utf-8").split("\n")[1:]}
        header, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        kept = [line for line in lines if _text(line) not in known]
        self.left_out[role] = len(lines) - len(kept)
        return self._made(path.name, "".join(f"{line}\n" for line in (header, *kept)))

    def _made(self, name: str, text: str) -> Path:
        self.prepared.mkdir(parents=True, exist_ok=True)
        target, draft = self.prepared / name, self.prepared / f".{name}.{os.getpid()}"
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
        return target

    def line(self) -> dict[str, Any]:
        """Trains and scores: the line."""
        files, given = self.files(), self.given
        model = fresh_body(given.model, given.output / self.model / "fresh-body", 1) if given.fresh else given.model
        named = [f"--{role}-file" for role in files]
        data = [word for pair in zip(named, files.values(), strict=True) for word in pair] or ["--data", str(self.data)]
        numbers = ["--precision", "fp32"]
        held = ["--max-eval-samples", str(self.held)] if self.held else []
        rows = ["--max-train-samples", str(self.rows)] if self.rows else []
        commands = [["finetune", self.task.name, "--model", str(model), *data, *numbers, *rows, *held]]
        commands[0] += ["--output", str(self.folder), *given.finetune]
        for role in self.place.reported:
            scored = [f"--{role}-file", files[role]] if files else ["--data", str(self.data), "--part", role]
            commands.append(["eval", self.task.name, "--model", str(self.folder), *scored, *numbers, *held])
        in_one_go = not self.folder.exists()
        trained, done = bertkit(*commands[0])
        figures, scoring = {}, {"eval_seconds": 0.0, "eval_cpu_seconds": 0.0}
        for words in commands[1:]:
            scored, took = bertkit(*words)
            scoring = {name: round(scoring[name] + seconds, 1) for name, seconds in took.times("eval_").items()}
            for part, told in scored["parts"].items():
                said = json.loads((Path(told["output"]) / "metrics.json").read_text(encoding="utf-8"))
                figures[part] = {
                    key: value for key, value in said.items() if isinstance(value, int | float) or key.endswith("_interval")
                }
        return {
            **self._constants(files, figures),
            **{key: trained["metrics"].get(key) for key in ("steps", "tokens", "train_seconds")},
            **done.times(),
            **scoring,
            "in_one_go": in_one_go,  # the seconds are those of the last start alone where it is not
            "machine": machine_facts(torch.device("cpu")).as_dict(),
            "commands": [shlex.join(["bertkit", *words]) for words in commands],
        }

    def _constants(self, files: dict[str, str], figures: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The parts' figures with their rows and what one answer for every row scores, and the task's primary figure."""
        roles = ("train", *self.place.reported)
        named = {f"{role}_file": path for role, path in files.items() if role in roles}
        data = named or {"folder": str(self.data)}
        found = load_parts(self.task, roles, max_train_samples=self.rows, max_eval_samples=self.held, **data)
        kind = kind_of(self.task)
        task = judged_task(self.task, kind, found["train"])
        labels = kind.labels(found["train"].rows, task, None, for_training=True)
        parts = {
            name: {
                "rows": len(found[name].rows),
                "left_out": self.left_out.get(found[name].role, 0),
                "constant": constant_score(kind, found[name].rows, task, labels),
                "figures": values,
            }
            for name, values in figures.items()
        }
        return {"primary": task.primary, "scale": 1 if kind.head == "span" else 100, "parts": parts}


def _text(line: str) -> str:
    return line.partition("\t")[2].strip()


def fresh_body(model: Path, folder: Path, seed: int) -> Path:
    """Writes a body of the model's size with new weights, under its vocabulary."""
    if not folder.exists():
        config = EncoderConfig.read(read_config(model), str(model))
        draft = folder.with_name(f".{folder.name}.{os.getpid()}")
        draft.mkdir(parents=True)
        build_model("encoder", config, seed=seed).save(draft)
        load_wordpiece(model).save(draft, max_length=config.max_position_embeddings)
        try:
            draft.rename(folder)
        except OSError:  # a run beside this one was quicker, with the same weights
            if not folder.exists():
                raise
            shutil.rmtree(draft)
    return folder


def main() -> int:
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a BERT folder")
    parser.add_argument("--data", type=Path, help="the folder with glue/, squad/, zh/, …; default: $BERTKIT_DATA/data")
    parser.add_argument("--tasks", help=f"default: those of GLUE that the data folder has; there are {', '.join(PLACES)}")
    parser.add_argument("--rows", type=int, default=6000, help="training rows at most of the large tasks, the first ones; 0: all")
    parser.add_argument("--fresh", action="store_true", help="from an unpretrained body of the model's size")
    parser.add_argument("--output", type=Path, default=Path("runs/tasks"))
    parser.add_argument("--limit", type=int, help="rows of training and of validation at most, of every task: for a trial")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args(own)
    given.finetune = sys.argv[len(own) + 2 :]
    given.data = given.data or Path(os.environ.get("BERTKIT_DATA", ".")) / "data"
    if given.limit:
        given.output = given.output.with_name(f"{given.output.name}-limit-{given.limit}")
    there = [name for name, place in GLUE.items() if (given.data / place.folder).is_dir()]
    names = given.tasks.split(",") if given.tasks else there
    runs = [Run(name, given) for name in names]
    if missing := [run.name for run in runs if not run.data.is_dir()]:
        parser.error(f"--data {given.data} has no folder of {', '.join(missing)}")
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    torch.set_num_threads(given.threads)
    lines, failed = Lines(given.output / "results.jsonl"), []
    table = [("task", "from", "part", "rows", "figure", "score", "one answer", "seconds", "CPU seconds")]
    for run in runs:
        line = lines.find(run.facts)
        if line is None:
            print(f"{run.name}, from {run.start}", file=sys.stderr, flush=True)
            try:
                line = lines.keep(run.facts | run.line())
            except (subprocess.CalledProcessError, BertkitError, OSError) as error:
                print(f"{run.name}: {error}", file=sys.stderr, flush=True)
                failed.append(run.name)
                continue
        for part, told in line["parts"].items():
            score = told["figures"].get(line["primary"])
            points = ["-" if value is None else f"{line['scale'] * value:.2f}" for value in (score, told["constant"])]
            took = [f"{line[key]:.0f}" for key in ("seconds", "cpu_seconds")]
            table.append((run.name, line["from"], part, str(told["rows"]), line["primary"], *points, *took))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
