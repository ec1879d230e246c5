"""``bertkit bench finetune``: tokens and texts a second of training steps over a task's rows; beside transformers where asked."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.batches.labelled import LabelledSource
from bertkit.bench.alternate import Round, alternate
from bertkit.bench.finetuning import TheirTuning, Tuning
from bertkit.bench.machine import machine_facts, product_rate
from bertkit.bench.memory import peak_of
from bertkit.bench.over_texts import OURS, figures_of, show
from bertkit.bench.work import tuning_flops
from bertkit.jobs.console import Console
from bertkit.jobs.material import task_of
from bertkit.jobs.models import config_of, model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.settings.bench import BenchFinetuneSettings
from bertkit.tasks.data import load_parts, require_gold
from bertkit.tasks.kinds import Kind, Labels
from bertkit.tasks.models import TaskModel, load_model
from bertkit.training import precision

_FEW = 3  # steps that show the peak of memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What both sides do."""

    source: LabelledSource[Any]
    folder: Path
    kind: Kind
    labels: Labels
    text: str


def bench_finetune(settings: BenchFinetuneSettings, console: Console) -> Outcome:
    """Measures steps of fine-tuning.

    Raises:
        BertkitError: What ``bertkit finetune`` raises of the same model and data.
    """
    machine = Machine.of(settings.device)
    facts = machine_facts(machine.device)
    console.say(f"{facts.name}, {facts.threads} threads, torch {facts.torch}, {machine.precision}.")
    work = _work(settings, console, machine)
    console.say(f"{work.text}, {settings.batch_size} a step.")
    rounds = _rounds(settings, console, machine, work)
    # Measured last: a machine that has been working is the one whose ceiling it is.
    ceiling = product_rate(machine.device, precision.resolve(settings.device.precision, machine.device))
    figures = figures_of(rounds) | {"ceiling_flops": ceiling, "vs_precision": settings.vs_precision}
    lengths = [size for example in work.source.examples for size in example.sizes]
    config = config_of(work.folder)
    flops = tuning_flops(config, length=sum(n * n for n in lengths) / sum(lengths), texts=len(lengths) / sum(lengths))
    figures |= {"flops_per_token": flops, "share_of_ceiling": figures["rates"][OURS]["median"] * flops / ceiling}
    if settings.memory:
        console.say("Measuring memory …")
        figures["memory_bytes"] = {name: peak_of(_few_steps, settings, name) for name in rounds}
    show(console, figures)
    console.result(f"{figures['share_of_ceiling']:.0%} of the {ceiling / 1e9:,.0f} GFLOP/s of a large matrix product here")
    extra = {"machine": facts.as_dict(), "precision": machine.precision, "bench": figures}
    return Outcome(metrics={"tokens_per_second": figures["rates"][OURS]["median"]}, extra=extra)


def _work(settings: BenchFinetuneSettings, console: Console, machine: Machine) -> Work:
    task, kind = task_of(settings.task, settings.data)
    folder = model_folder(settings.model)
    config = config_of(folder)
    kind_settings = kind.settings(max_length=settings.max_length)
    kind_settings.check_positions(config.max_position_embeddings)
    data = settings.data
    parts = load_parts(
        task,
        ("train",),
        folder=data.folder,
        train_file=data.train_file,
        max_train_samples=data.max_train_samples,
        strict=data.strict,
    )
    part = parts["train"]
    require_gold(kind, task, part)
    labels = kind.labels(part.rows, task, config.labels, for_training=True)
    encoded = kind.encode(
        part.rows,
        tokenizer_of(folder, cased=settings.cased),
        labels,
        kind_settings,
        segments=config.type_vocab_size,
        for_training=True,
    )
    source = LabelledSource(
        encoded.examples,
        kind.collate,
        seed=settings.seed,
        batch_size=settings.batch_size,
        micro_tokens=machine.micro_tokens,
    )
    tokens = sum(example.length for example in encoded.examples)
    count = sum(len(example.sizes) for example in encoded.examples)
    text = f"{len(part.rows):,} rows of {part.source}, {tokens / count:.1f} tokens a sequence"
    return Work(source=source, folder=folder, kind=kind, labels=labels, text=text)


def _model(work: Work, settings: BenchFinetuneSettings) -> TaskModel:
    labels = work.labels
    model, _ = load_model(
        work.folder,
        work.kind.head,
        labels=labels.names or None,
        problem_type=labels.problem or None,
        new_head=labels.new_head,
        seed=settings.seed,
        changes=_dropout(settings.dropout, "head_dropout"),
    )
    return model


def _dropout(share: float | None, head: str) -> dict[str, float]:
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", head)
    return {} if share is None else dict.fromkeys(names, share)


def _their_model(work: Work, settings: BenchFinetuneSettings) -> Any:
    from bertkit.bench import reference

    reference.quiet()
    config = config_of(work.folder).to_json(architecture=reference.CLASSES[work.kind.head].__name__)
    changes: dict[str, Any] = dict(_dropout(settings.dropout, "classifier_dropout"))
    if work.labels.names:
        changes |= {
            "id2label": dict(enumerate(work.labels.names)),
            "label2id": {name: number for number, name in enumerate(work.labels.names)},
            "problem_type": work.labels.problem or None,
        }
    return reference.begun(work.folder, work.kind.head, config | changes)


def _sides(settings: BenchFinetuneSettings, machine: Machine, work: Work, names: Sequence[str] = ()) -> list[Any]:
    """Every side that the settings ask for, or those named."""
    made: list[Any] = []
    if not names or OURS in names:
        made.append(Tuning(work.source, _model(work, settings), machine))
    whole = copy.copy(work.source)
    whole.micro_tokens = None  # one pass a step
    columns: dict[str, list[int | None]] = {
        "max": [settings.max_length],
        "longest": [None],
        "both": [settings.max_length, None],
    }
    for each in columns[settings.pad] if settings.vs else ():
        if names and (f"transformers, {each or 'longest'}") not in names:
            continue
        numbers = precision.resolve(settings.vs_precision, machine.device)
        made.append(TheirTuning(whole, _their_model(work, settings), each, machine.device, numbers))
    return made


def _rounds(settings: BenchFinetuneSettings, console: Console, machine: Machine, work: Work) -> dict[str, list[Round]]:
    sides = _sides(settings, machine, work)
    try:
        with console.progress("Rounds", settings.rounds, safe=True) as update:
            return alternate(sides, rounds=settings.rounds, seconds=settings.seconds, done=lambda done: update(done))
    finally:
        for side in sides:
            side.close()


def _few_steps(settings: BenchFinetuneSettings, name: str) -> None:
    machine = Machine.of(settings.device)
    work = _work(settings, Console(quiet=True), machine)
    (side,) = _sides(settings, machine, work, [name])
    for _ in range(_FEW):
        side.run(0.0)
    side.close()
