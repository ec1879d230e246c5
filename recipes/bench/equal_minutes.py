"""The same minutes of training through bertkit and through transformers' Trainer: which model guesses masked words better?

Command:  python recipes/bench/equal_minutes.py --corpus enwiki-train.txt --valid enwiki-valid.txt --tokenizer vocab.txt
Hardware: two cores of a CPU with nothing else to do.
Time:     twice --minutes (20), six times --search-minutes (5), and 10 minutes of preparing and scoring. What is done stands in
          OUTPUT and is not done again (`--minutes 0.3 --search-minutes 0.1 --size tiny --sequences 100` is a trial).
Expected: the last line: bertkit's loss is lower by 0.4 nat, or by 0.5 where both compute in bf16; else it ends with exit code 7.

bertkit is `bertkit pretrain --objective mlm` as people call it, whose clock counts saving and the last validation (of 8
sequences here) too. The other side is what transformers' run_mlm does without `--line_by_line`: `datasets` reads the file, a
fast tokenizer takes it line by line, the ids are joined and cut into blocks of 128, DataCollatorForLanguageModeling masks 15 %,
and Trainer, with its defaults, takes 32 blocks a step. Its rate goes up for a tenth of the time and then down to 0 by the same
clock as bertkit's, which stands still while it saves. Reading and tokenizing count on neither side. Each side trains with the
best of its rates, found by runs of --search-minutes. Both are scored by one evaluator: bertkit's, on the same masked sequences
of the validation file; the last models by transformers' BertForMaskedLM too, which must find the same. Other flags go to
`bertkit pretrain`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from bertkit.bench.commands import Lines, bertkit, run

GOALS = {"fp32": 0.4, "bf16": 0.5}  # nats
POINTS = 8  # of a curve
LENGTH, BATCH, WARMUP = 128, 32, 0.1
AGREEMENT = 1e-4  # of two evaluators, relative
SIDES = ("bertkit", "transformers")


def main() -> None:
    """Searches, trains, scores and compares."""
    arguments = read_arguments()
    if arguments.train:
        train_theirs(arguments)
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    prepare(arguments)
    curves = {}
    for side in SIDES:
        rates = (arguments.rates if side == "bertkit" else arguments.their_rates).split(",")
        tried = {rate: Run(arguments, side, rate, arguments.search_minutes).curve(1)[-1] for rate in rates}
        best = min(tried, key=lambda rate: float(tried[rate]["mlm_loss"]))
        print(
            json.dumps({"side": side, "rates": {rate: row["mlm_loss"] for rate, row in tried.items()}, "best": best}), flush=True
        )
        curves[side] = Run(arguments, side, best, arguments.minutes).curve(POINTS)
    show(curves)
    for side in SIDES:
        ours, theirs = (float(curves[side][-1][name]) for name in ("mlm_loss", "by_transformers"))
        if abs(ours - theirs) > AGREEMENT * ours:
            sys.exit(f"{side}'s model has a loss of {ours} by bertkit and of {theirs} by transformers.")
    gain = curves["transformers"][-1]["mlm_loss"] - curves["bertkit"][-1]["mlm_loss"]
    goal = GOALS[arguments.precision]
    print(json.dumps({"gain": round(gain, 3), "goal": goal, "minutes": arguments.minutes, "precision": arguments.precision}))
    sys.exit(0 if gain >= goal else 7)


def read_arguments() -> argparse.Namespace:
    """The flags, with ``auto`` as it becomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--valid", required=True)
    parser.add_argument("--tokenizer", required=True, help="a vocab.txt")
    parser.add_argument("--size", default="mini", choices=("tiny", "mini", "small", "medium", "base"))
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--search-minutes", type=float, default=5.0)
    parser.add_argument("--rates", default="5e-4,1e-3,2e-3", help="of bertkit")
    parser.add_argument("--their-rates", default="5e-4,1e-3,2e-3", help="of transformers")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--precision", default="auto", choices=("auto", "fp32", "bf16"))
    parser.add_argument("--sequences", type=int, default=1000, help="of the validation file")
    parser.add_argument("--output", type=Path, default=Path("equal-minutes"))
    for name in ("--train", "--rate", "--points"):  # what a fresh process is told
        parser.add_argument(name, help=argparse.SUPPRESS)
    arguments, more = parser.parse_known_args()
    arguments.more = more
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # before torch is there
    if arguments.precision == "auto":
        import torch

        from bertkit.training.precision import resolve

        arguments.precision = resolve("auto", torch.device("cpu"))
    return arguments


def tokenizer_of(arguments: argparse.Namespace) -> Any:
    """transformers' tokenizer of the vocabulary, with bertkit's reading of its case."""
    from transformers import BertTokenizerFast

    from bertkit.corpus.wordpiece import load_wordpiece

    return BertTokenizerFast(arguments.tokenizer, do_lower_case=load_wordpiece(Path(arguments.tokenizer)).lowercase)


def prepare(arguments: argparse.Namespace) -> None:
    """run_mlm's preprocessing of the training text, once."""
    done = arguments.output / "blocks"
    if done.exists():
        return
    import datasets

    datasets.disable_progress_bars()
    tokenizer = tokenizer_of(arguments)

    def tokenize(examples: Any) -> Any:
        return tokenizer(examples["text"], return_special_tokens_mask=True)

    def group(examples: Any) -> dict[str, list[Any]]:
        joined = {key: list(chain(*examples[key])) for key in examples}
        length = len(joined["input_ids"]) // LENGTH * LENGTH
        return {key: [values[i : i + LENGTH] for i in range(0, length, LENGTH)] for key, values in joined.items()}

    cache = arguments.output / "cache"
    raw = datasets.load_dataset("text", data_files={"train": arguments.corpus}, cache_dir=str(cache))["train"]
    blocks = raw.map(tokenize, batched=True, remove_columns=["text"]).map(group, batched=True)
    writing = done.with_name("blocks.writing")
    shutil.rmtree(writing, ignore_errors=True)
    blocks.save_to_disk(str(writing))
    writing.rename(done)
    shutil.rmtree(cache)


class Run:
    """One training of one side, and its curve."""

    def __init__(self, arguments: argparse.Namespace, side: str, rate: str, minutes: float) -> None:
        self.arguments, self.side, self.rate, self.minutes = arguments, side, rate, minutes
        self.folder = arguments.output / f"{side}-{arguments.size}-{rate}-{minutes:g}-minutes"

    def curve(self, points: int) -> list[dict[str, Any]]:
        """Minutes and losses, the last one of the finished model; trained and scored unless it was before."""
        lines, facts = Lines(self.arguments.output / "results.jsonl"), {"training": self.folder.name}
        line = lines.find(facts)
        if line is None:
            (self.train_ours if self.side == "bertkit" else self.train)(points)
            rows = [self.score(folder, seconds) for seconds, folder in sorted(self.models())]
            rows[-1]["by_transformers"] = Evaluator.of(self.arguments).by_transformers(self.folder)
            line = lines.keep(facts | {"curve": rows})
        for row in line["curve"]:
            print(json.dumps(row), flush=True)
        return list(line["curve"])

    def train_ours(self, points: int) -> None:
        """`bertkit pretrain`; the same command again goes on, or finds it finished."""
        every = f"{60 * self.minutes / points:.3f}s" if points > 1 else "1000h"
        words = ["pretrain", "--objective", "mlm", "--output", str(self.folder)]
        for flag in ("corpus", "valid", "tokenizer", "size", "precision"):
            words += [f"--{flag}", str(getattr(self.arguments, flag))]
        words += ["--max-minutes", str(self.minutes), "--lr", self.rate, "--batch-size", str(BATCH), "--max-length", str(LENGTH)]
        words += ["--save-every", every, "--keep-checkpoints", "1000", "--eval-every", "1000h"]
        words += ["--set", f"device.threads={self.arguments.threads}", "--set", "inputs.validation_sequences=8"]
        bertkit(*words, *self.arguments.more)

    def train(self, points: int) -> None:
        """transformers, in a process of its own; one that was stopped begins anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        asked = vars(self.arguments) | {"train": self.folder, "rate": self.rate, "minutes": self.minutes, "points": points}
        flags = [part for name, value in asked.items() if name != "more" for part in (f"--{name.replace('_', '-')}", str(value))]
        run([sys.executable, __file__, *flags])

    def models(self) -> Iterator[tuple[float, Path]]:
        """Seconds of training, and the model's folder."""
        metrics = json.loads((self.folder / "metrics.json").read_text(encoding="utf-8"))
        for checkpoint in (self.folder / "checkpoints").glob("checkpoint-*"):
            state = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))["train"]
            if state["step"] < metrics["steps"]:  # the last one is the model itself
                yield float(state["seconds"]), checkpoint
        yield float(metrics["train_seconds"]), self.folder

    def score(self, folder: Path, seconds: float) -> dict[str, Any]:
        """One point."""
        loss = Evaluator.of(self.arguments).by_bertkit(folder)
        return {"side": self.side, "rate": self.rate, "minutes": round(seconds / 60, 2), "mlm_loss": round(loss, 4)}


class Evaluator:
    """The masked sequences of the validation file, and the loss of a model on them."""

    made: Evaluator | None = None

    def __init__(self, arguments: argparse.Namespace) -> None:
        import torch

        from bertkit.batches.examples import ExampleSettings
        from bertkit.batches.masking import MaskingSettings
        from bertkit.batches.pretraining import PretrainingSource
        from bertkit.corpus.documents import CorpusSettings
        from bertkit.corpus.wordpiece import load_wordpiece
        from bertkit.jobs.building import read_text
        from bertkit.jobs.console import Console
        from bertkit.jobs.named_corpus import NamedCorpus

        torch.set_num_threads(arguments.threads)
        wordpiece, settings = load_wordpiece(Path(arguments.tokenizer)), CorpusSettings()
        store = read_text(
            settings, NamedCorpus.of((arguments.valid,), settings), wordpiece, Console(), "Reading the validation text"
        )
        source = PretrainingSource(
            store,
            wordpiece,
            ExampleSettings(objective="mlm", max_length=LENGTH),
            MaskingSettings(),
            seed=42,
            batch_size=BATCH,
            purpose="validation",
            limit=arguments.sequences,
        )
        self.batches = [batch for index in range(source.steps(0)) for batch in source.step(0, index)]
        self.targets = sum(batch.counts()["mlm"] for batch in self.batches)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Evaluator:
        """The one of this process."""
        cls.made = cls.made or cls(arguments)
        return cls.made

    def by_bertkit(self, folder: Path) -> float:
        """Nats a masked token, fp32."""
        import torch

        from bertkit.tasks.models import load_model

        model, _ = load_model(folder, "masked_lm", must_have_head=True)
        with torch.no_grad():
            return sum(float(model.eval()(batch)["mlm"].total) for batch in self.batches) / self.targets

    def by_transformers(self, folder: Path) -> float:
        """The same through transformers' class."""
        import torch
        from transformers import BertForMaskedLM

        model = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
        total = 0.0
        with torch.no_grad():
            for batch in self.batches:
                total += float(model(**batch.to_padded()).loss) * batch.counts()["mlm"]
        return total / self.targets


def train_theirs(arguments: argparse.Namespace) -> None:
    """transformers' side: Trainer as it is, but for the clock that ends it and sets its rate."""
    import datasets
    import torch
    from torch.optim.lr_scheduler import LambdaLR
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainerCallback,
        TrainingArguments,
        set_seed,
    )

    from bertkit.model.config import SIZES
    from bertkit.training.schedule import Schedule

    folder, total = Path(arguments.train), 60 * arguments.minutes
    schedule = Schedule(peak=1.0, warmup=WARMUP)
    tokenizer = tokenizer_of(arguments)

    class Clock(TrainerCallback):
        """Ends the training on time, and keeps the models of the curve without counting that."""

        def __init__(self) -> None:
            self.began, self.kept = 0.0, 1

        def share(self) -> float:
            return (time.monotonic() - self.began) / total if self.began else 0.0

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.began = time.monotonic()

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            control.should_training_stop = self.share() >= 1
            if self.share() >= self.kept / int(arguments.points) and not control.should_training_stop:
                stopped, self.kept = time.monotonic(), self.kept + 1
                step = state.global_step
                keep(folder / "checkpoints" / f"checkpoint-{step}", step, self.share() * total)
                self.began += time.monotonic() - stopped

    class ByTheClock(Trainer):
        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, lambda step: schedule.rate(step, clock.share()))
            return self.lr_scheduler

    def keep(path: Path, step: int, seconds: float) -> None:
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        (path / "state.json").write_text(json.dumps({"train": {"step": step, "seconds": seconds}}), encoding="utf-8")

    torch.set_num_threads(arguments.threads)
    set_seed(42)
    layers, width = SIZES[arguments.size]
    sizes = {"num_hidden_layers": layers, "num_attention_heads": width // 64, "intermediate_size": 4 * width}
    model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), hidden_size=width, **sizes))
    clock = Clock()
    trainer = ByTheClock(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=BATCH,
            learning_rate=float(arguments.rate),
            max_steps=10**7,
            bf16=arguments.precision == "bf16",
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=datasets.load_from_disk(str(arguments.output / "blocks")),
        data_collator=DataCollatorForLanguageModeling(tokenizer=tokenizer, mlm_probability=0.15),
        callbacks=[clock],
    )
    trainer.train()
    seconds, step = clock.share() * total, trainer.state.global_step
    keep(folder, step, seconds)
    metrics = {"train_seconds": seconds, "steps": step}
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")


def show(curves: dict[str, list[dict[str, Any]]]) -> None:
    """Both curves, one point a row."""
    print(f"{'minutes':>8}  {'bertkit':>8}    {'minutes':>8}  {'transformers':>12}   masked-LM loss on the validation file")
    for ours, theirs in zip_longest(*(curves[side] for side in SIDES)):
        cells = [f"{row['minutes']:8.2f}  {row['mlm_loss']:8.4f}" if row else 18 * " " for row in (ours, theirs)]
        print("    ".join(cells))


if __name__ == "__main__":
    main()
