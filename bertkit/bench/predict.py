"""``bertkit bench predict``: texts and tokens a second from text to prediction over real rows; beside another way where asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit.bench.alternate import alternate
from bertkit.bench.figures import OURS, figures_of, show, show_memory
from bertkit.bench.machine import machine_facts
from bertkit.bench.memory import peak_of
from bertkit.bench.predicting import Predicting, Slices, onnxruntime, ours, pipeline
from bertkit.errors import DataError, UsageError
from bertkit.jobs.as_trained import data_as_trained
from bertkit.jobs.console import Console
from bertkit.jobs.evaluate import chosen_parts, scorer_of
from bertkit.jobs.material import task_of
from bertkit.jobs.models import model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import read_state
from bertkit.jobs.start import Machine
from bertkit.settings.bench import BenchPredictSettings
from bertkit.settings.commands import PredictSettings, predict_settings
from bertkit.settings.parts import BatchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every side needs: the model's folder, the rows in slices, the labels' names."""

    folder: Path
    settings: PredictSettings
    slices: Slices
    names: tuple[str, ...]
    text: str


def bench_predict(settings: BenchPredictSettings, console: Console) -> Outcome:
    """Measures prediction.

    Raises:
        UsageError: The task is not one over texts with one label each (exit 2).
        BertkitError: What ``bertkit predict`` raises of the same model and data.
    """
    machine = Machine.of(settings.device)
    facts = machine_facts(machine.device)
    console.say(f"{facts}, {machine.precision}.")
    work, own = _work(settings, machine)
    console.say(f"{work.text}, {work.slices.size:,} a round.")
    sides = [own, *_others(settings, machine, work)]
    with console.progress("Rounds", settings.rounds, safe=True) as update:
        rounds = alternate(sides, rounds=settings.rounds, seconds=0.0, warm=0.0, done=lambda done: update(done))
    figures = figures_of(rounds) | {"agreement": _agreement(sides)}
    show(console, figures)
    for name, share in figures["agreement"].items():
        console.result(f"{share:.2%} of the last round's labels are those of {name}")
    if settings.memory:
        console.say("Measuring memory …")
        figures["memory_bytes"] = {side.name: peak_of(_one_round, settings, side.name) for side in sides}
        show_memory(console, figures["memory_bytes"])
    rate = figures["texts_per_second"][OURS]["median"]
    extra = {"machine": facts.as_dict(), "precision": machine.precision, "bench": figures}
    return Outcome(metrics={"texts_per_second": rate}, extra=extra)


def _work(settings: BenchPredictSettings, machine: Machine) -> tuple[Work, Predicting]:
    folder = model_folder(settings.model)
    name = settings.task or (read_state(folder) or {}).get("task") or "classification"
    kind_of_task = {"max_length": settings.max_length} if "max_length" in settings.model_fields_set else {}
    asked = predict_settings(name)(
        task=name,
        model=settings.model,
        cased=settings.cased,
        data=settings.data,
        device=settings.device,
        batch=BatchSettings(),
        kind=task_of(name, settings.data)[1].settings(**kind_of_task),
    )
    asked = data_as_trained(asked, folder, places=False)
    task, kind = task_of(name, asked.data)
    if kind.name != "classification" or task.problem != "single_label_classification":
        raise UsageError(f"{name} gives no single label to a text, which is what is measured.", where="--task")
    part = next(iter(chosen_parts(task, asked, ("test",), streamed=True).values()))
    rows = list(islice(part.rows, settings.rows * settings.rounds))
    if not rows:
        raise DataError("There are no rows to predict.", where=part.source)
    scorer = scorer_of(folder, asked, task, kind, part, machine)
    wordpiece = tokenizer_of(folder, cased=settings.cased)
    segments = scorer.model.config.type_vocab_size
    examples = kind.encode(rows, wordpiece, scorer.labels, scorer.settings, segments=segments).examples
    lengths = [0] * len(rows)
    for example in examples:
        lengths[example.row] += example.length
    slices = Slices(rows, settings.rows, lengths)
    text = f"{len(rows):,} row{'s' * (len(rows) != 1)} of {part.source}, {sum(lengths) / len(lengths):.1f} tokens each"
    work = Work(folder=folder, settings=asked, slices=slices, names=scorer.labels.names, text=text)
    return work, ours(scorer, wordpiece, slices)


def _others(settings: BenchPredictSettings, machine: Machine, work: Work) -> list[Predicting]:
    import torch

    facts = {"max_length": work.settings.kind.max_length, "batch_size": settings.batch_size}
    if settings.vs == "transformers":
        return [pipeline(work.folder, work.slices, work.names, device=machine.device, **facts)]
    if settings.vs == "onnxruntime":
        return [onnxruntime(work.folder, work.slices, work.names, threads=torch.get_num_threads(), **facts)]
    return []


def _agreement(sides: Sequence[Predicting]) -> Mapping[str, float]:
    """The share of the last round's rows that get the same label, by the other side's name."""
    first = sides[0].labels
    return {
        side.name: sum(one == other for one, other in zip(first, side.labels, strict=True)) / len(first) for side in sides[1:]
    }


def _one_round(settings: BenchPredictSettings, name: str) -> None:
    machine = Machine.of(settings.device)
    work, own = _work(settings.model_copy(update={"rounds": 1}), machine)
    side: Any = own if name == OURS else next(each for each in _others(settings, machine, work) if each.name == name)
    side.run(0.0)
    side.run(0.0)
