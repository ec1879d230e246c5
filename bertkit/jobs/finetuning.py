"""One fine-tuning in a run folder of its own: from the material to a trained model and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertkit.batches.labelled import LabelledSource
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console
from bertkit.jobs.ending import leave
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.material import Material, Rows
from bertkit.jobs.scoring import Scorer, figures_of
from bertkit.jobs.start import Machine, became_values
from bertkit.jobs.training import Course
from bertkit.jobs.training_job import Figures, TrainingJob, check_identity, resuming
from bertkit.model.config import EncoderConfig
from bertkit.settings.commands import FinetuneSettings
from bertkit.settings.compare import fill, with_values
from bertkit.tasks.added_figures import all_scores
from bertkit.tasks.defaults import training_defaults
from bertkit.tasks.labels import Labels
from bertkit.tasks.models import TaskModel, load_model
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.tuning import freeze, rate_scale


class Finetuning:
    """One fine-tuning: what is built before the course begins, and the course.

    Args:
        settings: As asked for.
        console: The streams.
        machine: Device and processes; the precision that the run began in.
        folder: Claimed, and not finished.
        material: What it is made of.
    """

    def __init__(
        self, settings: FinetuneSettings, console: Console, machine: Machine, folder: RunFolder, material: Material
    ) -> None:
        self.console, self.machine, self.folder, self.material = console, machine, folder, material
        self.task, self.kind = material.task, material.kind
        self.checkpoint = resuming(folder, machine)
        self.settings = self._resolved(settings)
        self.settings.kind.check_positions(material.config.max_position_embeddings)

    def trained(self) -> Figures:
        """Trains, leaves the run folder finished, and returns the figures."""
        rows = self.material.rows(self.settings)
        self.task = self.material.task  # the rows may have other figures than it declares
        model = self._model(rows.labels)
        source = LabelledSource(
            rows.train.encoded.examples,
            self.kind.collate,
            seed=self.settings.run.seed,
            batch_size=self._size(),
            micro_tokens=self.settings.batch.micro_tokens,
        )
        job = self._job(model, source, self._scorer(model, rows.labels), rows)
        self._announce(model, source, rows)
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
        return leave(course.run(), self.folder, self.settings, self.machine)

    def _resolved(self, settings: FinetuneSettings) -> FinetuneSettings:
        """Automatic values as they become; the task's declaration and the model's width say the rest."""
        config = self.material.config
        defaults = training_defaults(self.task, config.hidden_size)
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
        if settings.kind.max_length > config.max_position_embeddings and "max_length" not in settings.kind.model_fields_set:
            late["kind.max_length"] = config.max_position_embeddings
        before = became_values(self.folder)
        late |= {key: before[key] for key in late if before.get(key) is not None}
        return with_values(fill(settings, late), self.machine.became)

    def _model(self, labels: Labels) -> TaskModel:
        where = self.material.base if self.checkpoint is None else self.checkpoint.path
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
        if frozen := freeze(model, self.settings.tuning):
            self.console.say(f"{frozen:,} weights of the body stay as they are.")
        return model

    def _scorer(self, model: TaskModel, labels: Labels) -> Scorer:
        return Scorer(
            model=model,
            kind=self.kind,
            labels=labels,
            settings=self.settings.kind,
            machine=self.machine,
            micro_tokens=2 * (self.settings.batch.micro_tokens or self.machine.micro_tokens),
        )

    def _size(self) -> int:
        assert self.settings.batch.size is not None
        return self.settings.batch.size

    def _job(self, model: TaskModel, source: LabelledSource[Any], scorer: Scorer, rows: Rows) -> TrainingJob:
        def validate() -> dict[str, Any] | None:
            said: dict[str, list[Prediction]] = {}
            for name, part in rows.validation.items():
                predictions = scorer.predictions(part, stop=lambda: self.console.stop.number)
                if predictions is None:
                    return None
                said[name] = predictions
            return self.machine.peers.main_only(lambda: self._figures(said, rows))

        wordpiece = self.material.wordpiece
        identity = self.material.identity(rows)
        if self.checkpoint is not None:
            check_identity(self.checkpoint, identity, self.folder.path)
        steps = source.steps(0)
        epochs = self.settings.budget.epochs
        return TrainingJob(
            model=model,
            sources=(source,),
            write_model=lambda folder: write_model(model, wordpiece, folder),
            validate=validate,
            primary=self.task.primary,
            lower_is_better=False,
            validation_tokens=sum(part.tokens for part in rows.validation.values()),
            identity=identity,
            smaller=f"bertkit finetune {self.task.name} --max-train-samples {max(32, steps * self._size() // 10)} …",
            validations=max(1, round(epochs)) if epochs is not None else 5,
            patience=self.settings.run.patience,
            rate_scale=rate_scale(model, self.settings.tuning),
            longest=max(max(example.sizes) for example in rows.train.encoded.examples),
        )

    def _figures(self, said: Mapping[str, Sequence[Prediction]], rows: Rows) -> Figures:
        """What the predictions of the validation parts come to."""
        added = self.material.added.metrics
        scores = {
            name: all_scores(self.kind, predictions, rows.validation[name].part.rows, self.task, rows.labels, added)
            for name, predictions in said.items()
        }
        return figures_of(scores, self.task)

    def _announce(self, model: TaskModel, source: LabelledSource[Any], rows: Rows) -> None:
        say_, train = self.console.say, rows.train
        counts = ", ".join(f"{len(part.part.rows):,} {name}" for name, part in rows.validation.items())
        say_(f"{self.task.title}")
        say_(f"Data: {len(train.part.rows):,} training rows ({train.part.source}), {counts}.")
        weights = sum(p.numel() for p in model.parameters())
        say_(f"Model: {self.material.base}, {describe(self.material.config)}, {weights:,} weights.")
        say_(
            f"Training: {self.settings.optimizer.learning_rate:g} peak rate, batches of {self._size()} "
            f"({source.steps(0):,} steps an epoch), {self.settings.device.precision}, seed {self.settings.run.seed}, "
            f"into {self.folder.path}."
        )


def describe(config: EncoderConfig) -> str:
    """``4 layers of 256, 30,522 words``."""
    return f"{config.num_hidden_layers} layers of {config.hidden_size}, {config.vocab_size:,} words"


def write_model(model: TaskModel, wordpiece: WordPiece, folder: Path) -> None:
    """The model's and tokenizer's files, as transformers reads them."""
    model.save(folder)
    wordpiece.save(folder, max_length=model.config.max_position_embeddings)
