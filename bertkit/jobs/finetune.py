"""``bertkit finetune``: a task's rows and a BERT in, a run folder with a scored model out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bertkit.batches.labelled import LabelledSource
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.card import write_card
from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.models import config_of, model_folder, tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.scoring import EncodedPart, Scorer, figures_of
from bertkit.jobs.start import Machine, became_values, check_inputs, claimed, input_sizes
from bertkit.jobs.training import Course
from bertkit.jobs.training_job import TrainingJob, check_identity, resuming
from bertkit.model.config import EncoderConfig
from bertkit.notices import say
from bertkit.settings.commands import FinetuneSettings
from bertkit.settings.compare import fill, with_values
from bertkit.tasks.data import TaskPart, load_parts, require_gold, with_columns
from bertkit.tasks.defaults import training_defaults
from bertkit.tasks.kinds import Kind, Labels, Scores
from bertkit.tasks.models import TaskModel, load_model
from bertkit.tasks.registry import kind_of, task_named
from bertkit.tasks.task import Task


def finetune(settings: FinetuneSettings, console: Console) -> Outcome:
    """Fine-tunes a model for a task, or goes on where an earlier start of the same run was stopped.

    Raises:
        BertkitError: Each with its exit code; see :mod:`bertkit.errors`.
    """
    machine = Machine.of(settings.device, report_to=settings.run.report_to)
    data = settings.data
    sizes = input_sizes((data.folder, data.train_file, data.validation_file))
    facts = {"task": settings.task, "input_bytes": sizes}
    with claimed(settings, console, machine.peers, command="finetune", name=settings.task, facts=facts) as folder:
        if folder.situation == "finished":
            check_inputs(folder, sizes)
            return already_finished(folder, console)
        return _Finetuning(settings, console, machine.as_before(folder, settings), folder).run()


def already_finished(folder: RunFolder, console: Console) -> Outcome:
    """The same command again, after it ended: nothing to do."""
    console.say(f"Already finished: {folder.path}. --overwrite starts anew.")
    path = folder.path / "metrics.json"
    figures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    console.metrics(figures)
    return Outcome(state="already finished", output=folder.path, metrics=figures)


class _Finetuning:
    """One fine-tuning: what is read and built before the course begins."""

    def __init__(self, settings: FinetuneSettings, console: Console, machine: Machine, folder: RunFolder) -> None:
        self.console, self.machine, self.folder = console, machine, folder
        self.task, self.kind = task_of(settings.task, settings.data)
        self.checkpoint = resuming(folder, machine)
        self.base = machine.peers.main_only(lambda: model_folder(settings.model))
        self.config = config_of(self.base)
        self.settings = self._resolved(settings)
        self.settings.kind.check_positions(self.config.max_position_embeddings)
        self.wordpiece = tokenizer_of(self.base, cased=settings.cased)

    def run(self) -> Outcome:
        """Reads, trains, and leaves the run folder finished."""
        parts = self._parts()
        train = parts["train"]
        labels = self.kind.labels(train.rows, self.task, self.config.labels, for_training=True)
        model = self._model(labels)
        encoded = self._encode(train, labels, training=True)
        validation = {name: self._encode(part, labels) for name, part in parts.items() if part.role == "validation"}
        source = LabelledSource(
            encoded.encoded.examples,
            self.kind.collate,
            seed=self.settings.run.seed,
            batch_size=self._size(),
            micro_tokens=self.settings.batch.micro_tokens,
        )
        scorer = Scorer(
            model=model,
            kind=self.kind,
            task=self.task,
            labels=labels,
            settings=self.settings.kind,
            machine=self.machine,
            micro_tokens=2 * (self.settings.batch.micro_tokens or self.machine.micro_tokens),
        )
        job = self._job(model, source, scorer, validation, encoded)
        self._announce(model, encoded, validation, source)
        if self.machine.peers.main:
            self.folder.resolve(self.settings)
        course = Course(
            job=job,
            settings=self.settings,
            console=self.console,
            folder=self.folder,
            machine=self.machine,
            checkpoint=self.checkpoint,
        )
        return finished(course.run(), self.folder, self.console, self.settings, self.machine)

    def _resolved(self, settings: FinetuneSettings) -> FinetuneSettings:
        """Automatic values as they become; the task's declaration and the model's width say the rest."""
        defaults = training_defaults(self.task, self.config.hidden_size)
        late: dict[str, Any] = {
            "optimizer.learning_rate": defaults["learning_rate"],
            "schedule.warmup": defaults["warmup"],
            "batch.size": defaults["batch_size"],
            "batch.micro_tokens": self.machine.micro_tokens,
            "run.workers": 0,
        }
        budget = settings.budget
        if budget.steps is None and budget.epochs is None and budget.max_minutes is None:
            late["budget.epochs"] = float(defaults["epochs"])
        if settings.kind.max_length > self.config.max_position_embeddings and "max_length" not in settings.kind.model_fields_set:
            late["kind.max_length"] = self.config.max_position_embeddings
        before = became_values(self.folder)
        late |= {key: before[key] for key in late if before.get(key) is not None}
        return with_values(fill(settings, late), self.machine.became)

    def _parts(self) -> dict[str, TaskPart]:
        data = self.settings.data
        with self.console.progress("Reading", None):
            parts = self.machine.peers.main_only(
                lambda: load_parts(
                    self.task,
                    ("train", "validation"),
                    folder=data.folder,
                    train_file=data.train_file,
                    validation_file=data.validation_file,
                    test_file=data.test_file,
                    max_train_samples=data.max_train_samples,
                    max_eval_samples=data.max_eval_samples,
                    strict=data.strict,
                )
            )
        for part in parts.values():
            require_gold(self.kind, self.task, part)
        return parts

    def _model(self, labels: Labels) -> TaskModel:
        where = self.base if self.checkpoint is None else self.checkpoint.path
        model, _ = load_model(
            where,
            self.kind.head,
            labels=labels.names or None,
            problem_type=labels.problem or None,
            new_head=labels.new_head and self.checkpoint is None,
            must_have_head=self.checkpoint is not None,
            seed=self.settings.run.seed,
            save_memory=self.settings.batch.save_memory,
        )
        return model

    def _encode(self, part: TaskPart, labels: Labels, *, training: bool = False) -> EncodedPart:
        encoded = self.kind.encode(
            part.rows,
            self.wordpiece,
            labels,
            self.settings.kind,
            segments=self.config.type_vocab_size,
            for_training=training,
        )
        for line in encoded.coverage.lines():
            self.console.say(f"{part.name}: {line}")
        return EncodedPart(part=part, encoded=encoded)

    def _size(self) -> int:
        assert self.settings.batch.size is not None
        return self.settings.batch.size

    def _job(
        self,
        model: TaskModel,
        source: LabelledSource[Any],
        scorer: Scorer,
        validation: dict[str, EncodedPart],
        train: EncodedPart,
    ) -> TrainingJob:
        def validate() -> dict[str, Any] | None:
            found: dict[str, Scores] = {}
            for name, part in validation.items():
                predictions = scorer.predictions(part, stop=lambda: self.console.stop.number)
                if predictions is None:
                    return None
                if self.machine.peers.main:
                    found[name] = scorer.scores(part, predictions)
            return self.machine.peers.share(figures_of(found, self.task) if self.machine.peers.main else {})

        identity = {
            "training data": train.part.fingerprint(),
            "tokenizer": self.wordpiece.fingerprint,
        }
        if self.checkpoint is not None:
            check_identity(self.checkpoint, identity, self.folder.path)
        steps = source.steps(0)
        epochs = self.settings.budget.epochs
        return TrainingJob(
            model=model,
            sources=(source,),
            write_model=lambda folder: write_model(model, self.wordpiece, folder),
            validate=validate,
            primary=self.task.primary,
            lower_is_better=False,
            validation_tokens=sum(part.tokens for part in validation.values()),
            identity=identity,
            smaller=f"bertkit finetune {self.task.name} --max-train-samples {max(32, steps * self._size() // 10)} …",
            validations=max(1, round(epochs)) if epochs is not None else 5,
            longest=max(example.length for example in train.encoded.examples),
        )

    def _announce(
        self, model: TaskModel, train: EncodedPart, validation: dict[str, EncodedPart], source: LabelledSource[Any]
    ) -> None:
        say_ = self.console.say
        rows = ", ".join(f"{len(part.part.rows):,} {name}" for name, part in validation.items())
        say_(f"{self.task.title}")
        say_(f"Data: {len(train.part.rows):,} training rows ({train.part.source}), {rows}.")
        say_(f"Model: {self.base}, {describe(self.config)}, {sum(p.numel() for p in model.parameters()):,} weights.")
        say_(
            f"Training: {self.settings.optimizer.learning_rate:g} peak rate, batches of {self._size()} "
            f"({source.steps(0):,} steps an epoch), {self.settings.device.precision}, seed {self.settings.run.seed}, "
            f"into {self.folder.path}."
        )


def task_of(name: str, data: Any) -> tuple[Task, Kind]:
    """A task with people's own column names, and its kind."""
    task = with_columns(
        task_named(name),
        text=data.text_column,
        pair=data.pair_column,
        label=data.label_column,
        separator=data.label_separator,
    )
    return task, kind_of(task)


def describe(config: EncoderConfig) -> str:
    """``4 layers of 256, 30,522 words``."""
    return f"{config.num_hidden_layers} layers of {config.hidden_size}, {config.vocab_size:,} words"


def write_model(model: TaskModel, wordpiece: WordPiece, folder: Path) -> None:
    """The model's and tokenizer's files, as transformers reads them."""
    model.save(folder)
    wordpiece.save(folder, max_length=model.config.max_position_embeddings)


def finished(figures: dict[str, Any], folder: RunFolder, console: Console, settings: Any, machine: Machine) -> Outcome:
    """Writes the figures, the model card and the state of a finished training, and prints the figures."""

    def write() -> None:
        folder.write_metrics(figures)
        write_card(folder, settings, figures)
        folder.finish("finished")

    machine.peers.main_only(write)
    console.metrics(figures)
    console.say(f"The model is in {folder.path}")
    if not figures:
        say("metrics", "There are no figures.")
    return Outcome(output=folder.path, metrics=figures)
