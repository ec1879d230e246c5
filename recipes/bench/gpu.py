"""The parts of gpu.sh: what a CUDA machine computes rightly and how fast. A part that fails leaves the others alone.

Command:  python recipes/bench/gpu.py PART … --output runs/gpu [--corpus text.txt --tokenizer vocab.txt] [--dry]
Hardware: one CUDA GPU, better two; torch 2.10 or later. --dry: any CPU, tiny sizes, nothing that is worth reading.
Time:     gpu.sh gives each part its limit, under 8 minutes in all.
Expected: every line "ok": true. A check that does not hold, or a part that fails, ends with exit code 7.

Each figure is a line of JSON on stdout and in OUTPUT/figures.jsonl. Speeds are stated beside two ceilings: the product of two
large matrices measured here, and 989 TFLOP/s, which an H100 or H200 does in bf16 without sparsity by its data sheet.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import io
import json
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
SPARED = {"datasets", "evaluate"}  # which nothing here asks for
PEAK = 989e12  # FLOP/s
CLOSE = 2**-6  # of the largest reference value: how near bf16 and fp16 must be
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
Figures = Iterator[dict[str, Any]]


class Skipped(Exception):
    """A part that cannot run here, and why."""


class Here:
    """What all parts know."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.dry: bool = arguments.dry
        self.device = torch.device("cpu" if self.dry else "cuda")
        self.output: Path = arguments.output
        self.text: list[str] = []
        if arguments.corpus:
            self.text = ["--corpus", str(arguments.corpus), "--tokenizer", str(arguments.tokenizer)]
        self.tuned: list[str] = []
        if arguments.model:
            self.tuned = ["--model", str(arguments.model), "--data", str(arguments.data), "--task", arguments.task, "--no-memory"]

    def precisions(self) -> list[str]:
        """Those that are quick here."""
        return ["fp32"] if self.dry else ["fp32", "bf16", "fp16"]

    def bench(self, *more: str, work: str = "pretrain") -> dict[str, Any]:
        """What ``bertkit bench`` says of some work."""
        few = ["--rounds", "1", "--seconds", "0.01", "--no-memory"] if self.dry and work == "pretrain" else []
        return self.told("bench", work, *more, *few)

    def told(self, *argv: str) -> dict[str, Any]:
        """The object that a command prints; a failure is an error with its words."""
        from bertkit.cli.main import run

        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = run([*argv, "--json"])
        found: dict[str, Any] = json.loads(said.getvalue())
        if code:
            raise RuntimeError(f"bertkit {' '.join(argv)}: {found['error']}")
        return found


def environment(here: Here) -> Figures:
    """What the machine is, which of bertkit's packages it has, and what torch can do; first, what is missing."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed]
    versions: dict[str, str | None] = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    missing = [name for name, version in versions.items() if version is None and name not in SPARED]
    gpus = [
        {"name": each.name, "memory_bytes": each.total_memory, "capability": f"{each.major}.{each.minor}"}
        for each in map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    ]
    yield {
        "python": platform.python_version(),
        "packages": versions,
        "missing": missing,
        "gpus": gpus,
        "cuda": torch.version.cuda,
        "variable_length_attention": importlib.util.find_spec("torch.nn.attention.varlen") is not None,
        "ok": not missing,
    }
    from bertkit.bench.machine import machine_facts

    yield {"machine": machine_facts(here.device).as_dict()}


def product(here: Here) -> Figures:
    """The ceiling that is measured."""
    from bertkit.bench.machine import product_rate

    for precision in here.precisions():
        rate = product_rate(here.device, precision)  # type: ignore[arg-type]
        yield {"precision": precision, "tflops": rate / 1e12, "share_of_peak": rate / PEAK}


def attention(here: Here) -> Figures:
    """The kernel that attends here beside the formula in fp64, and a row of nothing but padding beside others."""
    from bertkit.bench import kernels

    for precision in here.precisions():
        limit = 1e-5 if precision == "fp32" else CLOSE
        found = kernels.attention_apart(here.device, TYPES[precision])
        yield {"precision": precision, **found.as_dict(), "limit": limit, "ok": found.worst <= limit}
        moved = kernels.empty_row_apart(here.device, TYPES[precision])
        yield {"precision": precision, "row_of_padding": moved, "limit": limit, "ok": moved <= limit}


def _source(here: Here, micro_tokens: int) -> Any:
    from bertkit.batches.examples import ExampleSettings
    from bertkit.batches.masking import MaskingSettings
    from bertkit.batches.pretraining import PretrainingSource
    from bertkit.bench.made_text import made_text

    store, words = made_text(20_000 if here.dry else 1_000_000)
    examples, batch = ExampleSettings(max_length=32 if here.dry else 128), 4 if here.dry else 128
    return PretrainingSource(store, words, examples, MaskingSettings(), seed=1, batch_size=batch, micro_tokens=micro_tokens)


def _trained(
    here: Here, precision: str, *, steps: int, micro_tokens: int = 8192, dropout: float = 0.1, **options: Any
) -> list[Any]:
    """The reports of a new model's first steps."""
    from bertkit.bench.curves import curve
    from bertkit.bench.made_text import VOCABULARY
    from bertkit.jobs.start import Machine
    from bertkit.model.config import EncoderConfig
    from bertkit.tasks.models import build_model
    from bertkit.training.device import DeviceSettings, make_accelerator
    from bertkit.training.peers import Peers

    settings = DeviceSettings(precision=precision, device="cpu" if here.dry else "auto")  # type: ignore[arg-type]
    accelerator = make_accelerator(settings, scale=options.pop("scale", None))
    shares = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = EncoderConfig.of_size("tiny" if here.dry else "mini", vocab_size=VOCABULARY, pad_token_id=0, **shares)
    machine = Machine(accelerator=accelerator, peers=Peers(accelerator))
    model = build_model("pretraining", config, seed=1)
    return curve(model, _source(here, micro_tokens), machine, steps=steps, rate=1e-3, **options)


def curves(here: Here) -> Figures:
    """The mean loss of some steps of mini: bf16 and fp16 within twice the spread of three fp32 runs cut otherwise.

    With dropout, whose draws go by micro-batches; then without, which is the variable-length kernel's case, by the same spread.
    """
    from bertkit.bench.curves import mean_loss

    steps = 3 if here.dry else 100
    means = []
    for micro_tokens in (8192, 4096, 2048):
        reports = _trained(here, "fp32", steps=steps, micro_tokens=micro_tokens)
        means.append(mean_loss(reports))
        yield {"precision": "fp32", "micro_tokens": micro_tokens, "mean": means[-1], "losses": [r.loss for r in reports]}
    limit = 2 * (max(means) - min(means))
    for dropout in (0.1, 0.0):
        expected = means[0] if dropout else mean_loss(_trained(here, "fp32", steps=steps, dropout=dropout))
        for precision in here.precisions()[1:]:
            reports = _trained(here, precision, steps=steps, dropout=dropout)
            mean = mean_loss(reports)
            figures = {"precision": precision, "dropout": dropout, "mean": mean, "losses": [r.loss for r in reports]}
            yield {**figures, "apart": mean - expected, "limit": limit, "ok": abs(mean - expected) <= limit}


def overflow(here: Here) -> Figures:
    """fp16 that starts with a loss scale of 2^24: steps that overflow move neither the rate nor the count, without a warning."""
    if here.dry:
        raise Skipped("fp16 trains on CUDA alone")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        reports = _trained(here, "fp16", steps=10, warmup=5, scale=2.0**24)
    applied = [report for report in reports if report.applied]
    steps = [report.step for report in applied]
    rising = [report.rate for report in applied][:5]
    skipped = len(reports) - len(applied)
    still = all(
        left.step == (before.step if before else 0) and left.rate == after.rate
        for before, left, after in zip([None, *reports], reports, reports[1:], strict=False)
        if not left.applied
    )
    told = [str(each.message) for each in heard if "lr_scheduler" in str(each.message) or "optimizer.step" in str(each.message)]
    yield {
        "skipped": skipped,
        "steps": steps,
        "rates": rising,
        "warnings": told,
        "ok": skipped > 0 and steps == list(range(1, 11)) and rising == sorted(set(rising)) and still and not told,
    }


def waits(here: Here) -> Figures:
    """Where a step waits for the device, as torch tells it; each place once, with how often in ten steps."""
    if here.dry:
        raise Skipped("a CPU does not wait for itself")
    _trained(here, "bf16", steps=2)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            _trained(here, "bf16", steps=10)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    places: dict[str, int] = {}
    for each in heard:
        if "synchroniz" in str(each.message):
            place = f"{Path(each.filename).name}:{each.lineno}"
            places[place] = places.get(place, 0) + 1
    yield {"steps": 10, "places": places}


def vocabulary(here: Here) -> Figures:
    """Seconds of the loss over the vocabulary, forward and backward, by the logits held at a time."""
    from bertkit.tasks.pretraining import masked_lm_loss

    rows, words, width = (64, 512, 64) if here.dry else (4864, 30_528, 768)
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(rows, width, generator=generator).to(here.device).requires_grad_()
    matrix = torch.randn(words, width, generator=generator).mul_(0.02).to(here.device).requires_grad_()
    bias = torch.zeros(words, device=here.device, requires_grad=True)
    labels = torch.randint(0, words, (rows,), generator=generator).to(here.device)
    for chunk in (2**23, 2**25, 2**28):
        times = []
        for _ in range(2 if here.dry else 12):
            began = time.perf_counter()
            with torch.autocast(here.device.type, torch.bfloat16, enabled=not here.dry):
                total = masked_lm_loss(states, matrix, bias, labels, words, chunk=chunk).total
            float(torch.autograd.grad(total, states)[0].sum())  # waits for the device
            times.append(time.perf_counter() - began)
        yield {"logits_at_a_time": chunk, "rows": rows, "seconds": min(times)}


def _speed(here: Here, length: int, batch: int, *more: str) -> dict[str, Any]:
    size = ("tiny", 32, 4, "fp32") if here.dry else ("base", length, batch, "bf16")
    asked = ["--size", size[0], "--max-length", str(size[1]), "--batch-size", str(size[2]), "--precision", size[3], *more]
    told = here.bench(*asked, *here.text)
    figures = told["bench"]
    rate, flops = figures["rates"]["bertkit"], figures["flops_per_token"]
    return {
        "command": " ".join(["bertkit bench pretrain", *asked]),
        "tokens_per_second": rate,
        "tflops": rate["median"] * flops / 1e12,
        "share_of_peak": rate["median"] * flops / PEAK,
        "share_of_product": figures["share_of_ceiling"],
        "parts": figures["parts"],
        **{name: figures[name] for name in ("ratio", "rates", "memory_bytes") if name in figures},
    }


def speed128(here: Here) -> Figures:
    """Base at 128 tokens, as the recipes train it (no dropout)."""
    _not_again(here)
    yield _speed(here, 128, 256, "--dropout", "0", "--rounds", "3", "--seconds", "5", "--no-memory")


def speed512(here: Here) -> Figures:
    """Base at 512 tokens."""
    _not_again(here)
    yield _speed(here, 512, 64, "--dropout", "0", "--rounds", "3", "--seconds", "5", "--no-memory")


def dropped(here: Here) -> Figures:
    """Base at 128 tokens with dropout, which takes another kernel."""
    _not_again(here)
    yield _speed(here, 128, 256, "--dropout", "0.1", "--rounds", "2", "--seconds", "4", "--no-memory")


def _not_again(here: Here) -> None:
    if here.dry:
        raise Skipped("the part `beside` shows as much")


def beside(here: Here) -> Figures:
    """Base, 32 x 128: speed and peak of memory beside transformers in the same numbers."""
    few = ["--rounds", "2", "--seconds", "3", "--vs", "transformers", "--vs-precision", "fp32" if here.dry else "bf16"]
    yield _speed(here, 128, 32, *few, "--memory")


def tuning(here: Here) -> Figures:
    """Fine-tuning from a run of the task, and prediction with it."""
    if not here.tuned:
        raise Skipped("no --model and --data were given")
    yield {"work": "finetune", "bench": here.bench(*here.tuned, "--rounds", "2", "--seconds", "4", work="finetune")["bench"]}
    yield {"work": "predict", "bench": here.bench(*here.tuned, "--rounds", "2", work="predict")["bench"]}


def processes(here: Here) -> Figures:
    """Two processes learn what one learns, and how much faster."""
    if torch.cuda.device_count() < 2:
        raise Skipped(f"{torch.cuda.device_count()} GPUs")
    if not here.text:
        raise Skipped("no --corpus was given")
    losses, seconds = [], []
    for count in (1, 2):
        folder = here.output / f"processes-{count}"
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "bertkit", "pretrain", *here.text, "--size", "mini", "--steps", "30", "--log-every", "1"]
        command += ["--precision", "fp32", "--processes", str(count), "--output", str(folder), "--json", "--batch-size", "128"]
        command += ["--set", "model.dropout=0", "--eval-every", "30"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        steps = [line for line in lines if "loss" in line]
        losses.append([line["loss"] for line in steps])
        seconds.append(steps[-1]["seconds"] - steps[9]["seconds"])
    apart = max(abs(one - two) / one for one, two in zip(*losses, strict=True))
    yield {"losses": losses, "apart": apart, "limit": 1e-3, "ok": apart <= 1e-3, "speed_of_two": seconds[0] / seconds[1]}


PARTS: dict[str, Callable[[Here], Figures]] = {
    part.__name__: part
    for part in (
        environment,
        product,
        attention,
        overflow,
        curves,
        speed128,
        speed512,
        waits,
        vocabulary,
        dropped,
        beside,
        tuning,
        processes,
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, where none is named: {', '.join(PARTS)}")
    parser.add_argument("--output", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--corpus", type=Path, help="a text of at most 20 MB; without it one is made up")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--model", type=Path, help="a fine-tuned run, for the part `tuning`")
    parser.add_argument("--data", type=Path, help="the data of its task")
    parser.add_argument("--task", default="mnli", metavar="TASK")
    parser.add_argument("--dry", action="store_true", help="tiny sizes on the CPU: does everything run?")
    arguments = parser.parse_args()
    if bool(arguments.corpus) != bool(arguments.tokenizer):
        parser.error("--corpus and --tokenizer come together")
    if bool(arguments.model) != bool(arguments.data):
        parser.error("--model and --data come together")
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    here, good = Here(arguments), True
    with (arguments.output / "figures.jsonl").open("a", encoding="utf-8") as kept:
        for name in arguments.parts or PARTS:
            for line in _lines(name, here):
                good &= line["ok"]
                text = json.dumps(line)
                kept.write(f"{text}\n")
                kept.flush()
                print(text, flush=True)
    return 0 if good else 7


def _lines(name: str, here: Here) -> Figures:
    """What a part gives, and at its end, well or not, one line more."""
    began, state = time.monotonic(), {"ok": True}
    try:
        for figures in PARTS[name](here):
            yield {"part": name, "ok": True, **figures}
    except Skipped as why:
        state = {"ok": True, "skipped": str(why)}
    except Exception as error:  # what it is, is told; the other parts go on
        traceback.print_exc()
        state = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    yield {"part": name, **state, "seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    sys.exit(main())
