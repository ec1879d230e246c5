"""``bertkit bench finetune``: steps of training over a task's rows; beside transformers where asked."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.batches.labelled import LabelledSource
from bertkit.bench.figures import OURS
from bertkit.bench.finetuning import TheirTuning, Tuning
from bertkit.bench.training import Trainer, bench_training
from bertkit.bench.work import tuning_flops
from bertkit.jobs.console import Console
from bertkit.jobs.material import task_of
from bertkit.jobs.models import config_of, model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.start import Machine
from bertkit.settings.bench import BenchFinetuneSettings
from bertkit.tasks.data import load_parts, require_gold
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.models import TaskModel, load_model
from bertkit.training import precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The batches, the model's folder and the labels of all sides."""

    settings: BenchFinetuneSettings
    machine: Machine
    source: LabelledSource[Any]
    folder: Path
    kind: Kind
    labels: Labels
    text: str

    def flops(self) -> float:
        """Useful FLOP a token, by the lengths of all sequences and the tokens that the head reads."""
        examples = self.source.examples
        lengths = [size for example in examples for size in example.sizes]
        tokens = sum(lengths)
        read = {"span": tokens, "tagging": sum(len(getattr(each, "positions", ())) for each in examples)}
        return tuning_flops(
            config_of(self.folder),
            length=sum(n * n for n in lengths) / tokens,
            read=read.get(self.kind.head, len(lengths)) / tokens,
        )

    def sides(self, names: Sequence[str] = ()) -> list[Trainer]:
        """Every side that the settings ask for, or those named."""
        settings, machine = self.settings, self.machine
        made: list[Trainer] = []
        if not names or OURS in names:
            made.append(Tuning(self.source, _model(self, settings), machine))
        whole = copy.copy(self.source)
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
            made.append(TheirTuning(whole, _their_model(self, settings), each, machine.device, numbers))
        return made


def bench_finetune(settings: BenchFinetuneSettings, console: Console) -> Outcome:
    """Measures steps of fine-tuning.

    Raises:
        BertkitError: What ``bertkit finetune`` raises of the same model and data.
    """
    return bench_training(settings, console, _work)


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
    rows = f"{len(part.rows):,} row{'s' * (len(part.rows) != 1)} of {part.source}"
    text = f"{rows}, {tokens / count:.1f} tokens a sequence, {settings.batch_size} a step."
    return Work(settings=settings, machine=machine, source=source, folder=folder, kind=kind, labels=labels, text=text)


def _model(work: Work, settings: BenchFinetuneSettings) -> TaskModel:
    labels = work.labels
    model, _ = load_model(
        work.folder,
        work.kind.head,
        labels=labels.names or None,
        problem_type=labels.problem or None,
        new_head=labels.new_head,
        seed=settings.seed,
        changes=_dropout(settings.dropout),
    )
    return model


def _dropout(share: float | None) -> dict[str, float]:
    """The changes of a configuration, bertkit's or transformers'."""
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    return {} if share is None else dict.fromkeys(names, share)


def _their_model(work: Work, settings: BenchFinetuneSettings) -> Any:
    from bertkit.bench import reference

    reference.quiet()
    config = config_of(work.folder).to_json(architecture=reference.CLASSES[work.kind.head].__name__)
    changes: dict[str, Any] = dict(_dropout(settings.dropout))
    if work.labels.names:
        changes |= {
            "id2label": dict(enumerate(work.labels.names)),
            "label2id": {name: number for number, name in enumerate(work.labels.names)},
            "problem_type": work.labels.problem or None,
        }
    return reference.begun(work.folder, work.kind.head, config | changes)
