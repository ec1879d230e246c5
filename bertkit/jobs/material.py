"""What a fine-tuning is made of that no seed, rate or batch changes: the task, the model's files, encoded rows, added metrics.

The trials of a sweep share one, so that what is equal among them is read and encoded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bertkit.jobs.added_metrics import AddedMetrics
from bertkit.jobs.console import Console
from bertkit.jobs.models import config_of, model_folder, tokenizer_of
from bertkit.jobs.scoring import EncodedPart
from bertkit.settings.commands import FinetuneSettings
from bertkit.tasks.data import TaskPart, load_parts, require_gold, with_columns
from bertkit.tasks.kinds import JudgesByRows, Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.registry import kind_of, task_named
from bertkit.tasks.task import Task
from bertkit.training.peers import Peers


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A task's rows, ready to train on and to validate with.

    Attributes:
        labels: By the head's outputs.
        train: To train on.
        validation: By the part's name; the first decides which model is best.
    """

    labels: Labels
    train: EncodedPart
    validation: dict[str, EncodedPart]


class Material:
    """Read from the settings' files: the small ones now, the rows when they are asked for.

    Args:
        settings: As asked for, or of any trial of the sweep.
        console: Told what is read and what the settings put out of reach.
        peers: The first process fetches; the others find it.
    """

    def __init__(self, settings: FinetuneSettings, console: Console, peers: Peers) -> None:
        self.console, self.peers = console, peers
        self.task, self.kind = task_of(settings.task, settings.data)
        self.base = peers.main_only(lambda: model_folder(settings.model))
        self.config = config_of(self.base)
        self.wordpiece = tokenizer_of(self.base, cased=settings.cased)
        self.added = AddedMetrics(settings.metrics, console, peers)
        self._rows: Rows | None = None

    def rows(self, settings: FinetuneSettings) -> Rows:
        """The rows under resolved settings; once they are read, the same ones."""
        if self._rows is None:
            parts = self._parts(settings)
            train = parts["train"]
            self.task = judged_task(self.task, self.kind, train)
            labels = self.kind.labels(train.rows, self.task, self.config.labels, for_training=True)
            validation = {name: part for name, part in parts.items() if part.role == "validation"}
            for part in validation.values():  # what `eval` of the model would refuse is refused before it is trained
                self.kind.labels(part.rows, self.task, labels.names or None, for_training=False)
            self.added.rehearse(self.kind, validation.values(), labels)
            self._rows = Rows(
                labels=labels,
                train=self._encode(train, labels, settings, training=True),
                validation={name: self._encode(part, labels, settings) for name, part in validation.items()},
            )
        return self._rows

    def identity(self, rows: Rows) -> dict[str, str]:
        """Fingerprints that a run which goes on must meet again, by what they are of."""
        return {"training data": rows.train.part.fingerprint(), "tokenizer": self.wordpiece.fingerprint}

    def _parts(self, settings: FinetuneSettings) -> dict[str, TaskPart]:
        data = settings.data
        with self.console.progress("Reading", None):
            parts = self.peers.main_only(
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

    def _encode(self, part: TaskPart, labels: Labels, settings: FinetuneSettings, *, training: bool = False) -> EncodedPart:
        encoded = self.kind.encode(
            part.rows,
            self.wordpiece,
            labels,
            settings.kind,
            segments=self.config.type_vocab_size,
            for_training=training,
        )
        for line in encoded.coverage.lines():
            self.console.say(f"{part.name}: {line}")
        return EncodedPart(part=part, encoded=encoded)


def judged_task(task: Task, kind: Kind, part: TaskPart) -> Task:
    """The task with the figures that rows such as these have."""
    return kind.judged(task, part.rows) if isinstance(kind, JudgesByRows) else task


def task_of(name: str, data: Any) -> tuple[Task, Kind]:
    """A task with people's own column names, and its kind."""
    task = with_columns(
        task_named(name),
        text=data.text_column,
        pair=data.pair_column,
        label=data.label_column,
        separator=data.label_separator,
        candidates=data.candidate_columns,
        label_form=data.label_form,
    )
    return task, kind_of(task)
