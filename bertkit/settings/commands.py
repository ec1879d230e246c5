"""The settings of each command: the leaf models of the rooms, put together, and what in them contradicts itself.

``contradictions`` of a model yields the keys involved and a sentence; they are reported together with all other faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pydantic import Field, create_model

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.phases import Phases, phases_text
from bertkit.corpus.documents import CorpusSettings
from bertkit.corpus.named import short_name
from bertkit.fields import Settings
from bertkit.settings.gates import GateSettings
from bertkit.settings.parts import (
    BatchSettings,
    BudgetSettings,
    DataSettings,
    InputSettings,
    ModelSettings,
    RunSettings,
    TokenizerSettings,
    TrainingBatchSettings,
)
from bertkit.settings.sweep import SweepSettings
from bertkit.settings.sweep import contradictions as of_sweep
from bertkit.settings.tools import Output, QuickstartSettings, TokenizerTrainSettings
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.registry import kind_of, task_named
from bertkit.tasks.tuning import TuningSettings
from bertkit.training.device import DeviceSettings, TrainingDeviceSettings
from bertkit.training.optimizer import OptimizerSettings
from bertkit.training.schedule import ScheduleSettings

DEFAULT_MODEL = "google-bert/bert-base-uncased"
__all__ = [
    "DEFAULT_MODEL",
    "EvalSettings",
    "FillMaskSettings",
    "FinetuneSettings",
    "PredictSettings",
    "PretrainSettings",
    "QuickstartSettings",
    "TokenizerTrainSettings",
    "eval_settings",
    "finetune_settings",
    "predict_settings",
    "run_name",
    "task_defaults",
]
Contradiction = tuple[tuple[str, ...], str]


class Training(Output):
    """What every training has."""

    optimizer: OptimizerSettings = Field(default_factory=OptimizerSettings)
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings)
    device: TrainingDeviceSettings = Field(default_factory=TrainingDeviceSettings)
    batch: TrainingBatchSettings = Field(default_factory=TrainingBatchSettings)
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    run: RunSettings = Field(default_factory=RunSettings)

    def contradictions(self) -> Iterator[Contradiction]:
        """Pairs of settings that cannot both be right."""
        warmup, steps = self.schedule.warmup, self.budget.steps
        if warmup >= 1 and steps is None and self.budget.max_minutes is not None and self.budget.epochs is None:
            yield (
                ("schedule.warmup", "budget.max_minutes"),
                f"A warm-up of {warmup:g} steps has no length under max_minutes: give it as a share, such as 0.1.",
            )
        if warmup >= 1 and steps is not None and warmup > steps:
            yield ("schedule.warmup", "budget.steps"), f"The warm-up of {warmup:g} steps is longer than the training of {steps}."


class PretrainSettings(Training):
    """``bertkit pretrain``."""

    inputs: InputSettings
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    tokenizer: TokenizerSettings = Field(default_factory=TokenizerSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    examples: ExampleSettings = Field(default_factory=ExampleSettings)
    masking: MaskingSettings = Field(default_factory=MaskingSettings)
    phases: Phases = Field(
        (), description="Lengths one after another, with their shares: 128:0.9,512:0.1; unset: one, examples.max_length."
    )

    def contradictions(self) -> Iterator[Contradiction]:
        """Pairs of settings that cannot both be right."""
        yield from super().contradictions()
        budget, warmup = self.budget, self.schedule.warmup
        if warmup >= 1 and budget.steps is None and budget.epochs is None and budget.max_minutes is None:
            yield (
                ("schedule.warmup",),
                f"A warm-up of {warmup:g} steps has no length where the clock ends the training, as it does unless steps or "
                "epochs are given: give it as a share, such as 0.1.",
            )
        longest = max((phase.max_length for phase in self.phases), default=None)
        if longest is not None and "max_length" in self.examples.model_fields_set and self.examples.max_length != longest:
            yield (
                ("examples.max_length", "phases"),
                f"The phases {phases_text(self.phases)} say how long sequences are, {longest} tokens at most: leave "
                f"max_length ({self.examples.max_length}) away.",
            )
        if self.model.init_from is not None and self.model.size is not None:
            yield (
                ("model.init_from", "model.size"),
                "A model that is gone on from has its size: give init_from or size, not both.",
            )
        if self.model.add_words is not None and self.model.init_from is None:
            yield (
                ("model.add_words", "model.init_from"),
                "Words are added to the vocabulary of a model that is gone on from: add_words needs init_from.",
            )
        yield from self.tokenizer.read_and_trained()


class FinetuneRun(RunSettings):
    """Fine-tuning keeps its best model unless told otherwise."""

    keep_best: bool = Field(default=True, description="The run folder ends with the model of the best validation, not the last.")
    patience: int | None = Field(
        None, ge=1, description="The training ends after so many validations in a row without a better primary figure."
    )


class FinetuneSettings(Training):
    """``bertkit finetune TASK``; its ``kind`` is the task's kind's own settings: use :func:`finetune_settings`."""

    task: str = Field(description="A task that `bertkit tasks` lists.")
    task_file: str | None = Field(None, description="A Python file of yours that registers tasks; run only where you name it.")
    model: str = Field(DEFAULT_MODEL, description="A run folder, a Hugging Face BERT folder or a hub name.")
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    metrics: tuple[str, ...] = Field((), description="Metrics of evaluate's beside the task's own: scripts, or names of the hub.")
    data: DataSettings = Field(default_factory=DataSettings)
    kind: KindSettings = Field(default_factory=KindSettings)
    run: FinetuneRun = Field(default_factory=FinetuneRun)
    tuning: TuningSettings = Field(default_factory=TuningSettings)
    sweep: SweepSettings = Field(default_factory=SweepSettings)

    def contradictions(self) -> Iterator[Contradiction]:
        """Pairs of settings that cannot both be right."""
        if (other := task_named(self.task).served_by) is not None:
            yield (
                ("task",),
                f"{self.task} has nothing to train on: models of {other} answer it. `bertkit finetune {other}`, "
                f"then `bertkit predict {self.task}`.",
            )
        yield from super().contradictions()
        yield from _data(self.data)
        yield from of_sweep(self, task_defaults(self.task))


class EvalSettings(Output):
    """``bertkit eval TASK``."""

    task: str = Field(description="A task that `bertkit tasks` lists.")
    task_file: str | None = Field(None, description="A Python file of yours that registers tasks; run only where you name it.")
    model: str | None = Field(None, description="A run folder, a Hugging Face BERT folder or a hub name; unset: the newest run.")
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    part: str | None = Field(None, description="The part of the data, such as validation or test; unset: every validation part.")
    predictions: str | None = Field(None, description="Score this file of predictions instead of a model.")
    metrics: tuple[str, ...] = Field((), description="Metrics of evaluate's beside the task's own: scripts, or names of the hub.")
    data: DataSettings = Field(default_factory=DataSettings)
    kind: KindSettings = Field(default_factory=KindSettings)
    device: DeviceSettings = Field(default_factory=DeviceSettings)
    batch: BatchSettings = Field(default_factory=BatchSettings)
    gates: GateSettings = Field(default_factory=GateSettings)

    def contradictions(self) -> Iterator[Contradiction]:
        """Pairs of settings that cannot both be right."""
        yield from _data(self.data)
        if self.model is not None and self.predictions is not None:
            yield ("model", "predictions"), "Either a model is scored or a file of predictions: give model or predictions."
        yield from self.gates.contradictions()


class PredictSettings(Output):
    """``bertkit predict TASK``."""

    task: str = Field(description="A task that `bertkit tasks` lists.")
    task_file: str | None = Field(None, description="A Python file of yours that registers tasks; run only where you name it.")
    model: str | None = Field(None, description="A run folder, a Hugging Face BERT folder or a hub name; unset: the newest run.")
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    part: str | None = Field(None, description="The part of the data; unset: test.")
    data: DataSettings = Field(default_factory=DataSettings)
    kind: KindSettings = Field(default_factory=KindSettings)
    device: DeviceSettings = Field(default_factory=DeviceSettings)
    batch: BatchSettings = Field(default_factory=BatchSettings)


class FillMaskSettings(Output):
    """``bertkit fill-mask MODEL TEXT…``."""

    model: str = Field(description="A run folder, a Hugging Face BERT folder or a hub name.")
    texts: tuple[str, ...] = Field((), description="Texts with [MASK]; none: the lines of stdin.")
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    top: int = Field(5, ge=1, description="Words for each mask.")
    device: DeviceSettings = Field(default_factory=DeviceSettings)


def _data(data: DataSettings) -> Iterator[Contradiction]:
    files = [name for name in ("train_file", "validation_file", "test_file") if getattr(data, name) is not None]
    if data.folder is not None and files:
        keys = ("data.folder", *(f"data.{name}" for name in files))
        yield keys, f"Give the data as a folder or by its files, not both ({', '.join(keys)})."


def _of_kind(base: type[Settings], task: str) -> type[Settings]:
    return _with_kind(base, kind_of(task_named(task)).settings)


@cache
def _with_kind(base: type[Settings], kind: type[KindSettings]) -> type[Settings]:
    return create_model(base.__name__, __base__=base, __doc__=base.__doc__, kind=(kind, Field(default_factory=kind)))


def finetune_settings(task: str) -> type[FinetuneSettings]:
    """``FinetuneSettings`` with the settings of the task's kind.

    Raises:
        UsageError: There is no such task.
    """
    return _of_kind(FinetuneSettings, task)  # type: ignore[return-value]


def eval_settings(task: str) -> type[EvalSettings]:
    """``EvalSettings`` with the settings of the task's kind."""
    return _of_kind(EvalSettings, task)  # type: ignore[return-value]


def predict_settings(task: str) -> type[PredictSettings]:
    """``PredictSettings`` with the settings of the task's kind."""
    return _of_kind(PredictSettings, task)  # type: ignore[return-value]


def task_defaults(task: str) -> dict[str, object]:
    """The defaults that a task's declaration has over those of its kind, by dotted key.

    Its budget is not among them: it holds only where nobody says any, else 2 epochs would end a run of ``--steps 40``.
    """
    declared = task_named(task)
    places = {"batch_size": "batch.size", "learning_rate": "optimizer.learning_rate"}
    found: dict[str, object] = {f"kind.{name}": value for name, value in declared.settings.items()}
    return found | {places[name]: value for name, value in declared.training.items() if name in places}


def run_name(settings: PretrainSettings, size: str) -> str:
    """The default name of a pretraining: ``wiki-mini`` for wiki.txt."""
    return f"{short_name(settings.inputs.corpus[0])}-{size}"
