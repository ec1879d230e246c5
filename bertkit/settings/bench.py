"""The settings of ``bertkit bench``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.fields import Settings
from bertkit.settings.parts import DataSettings
from bertkit.training.device import DeviceSettings, TrainingDeviceSettings
from bertkit.training.precision import Asked

Other = Literal["transformers"]


class VocabularySettings(Settings):
    """The vocabulary of a corpus that is measured; none is trained."""

    path: str | None = Field(None, description="A vocab.txt or a model folder.")
    cased: bool | None = Field(None, description="Keep case; unset: as the files say.")


def of_the_other_side(
    settings: BenchPretrainSettings | BenchFinetuneSettings | BenchPredictSettings, *names: str
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Which of the settings ``names`` speak of a side that nobody asked for."""
    for name in names:
        if settings.vs is None and name in settings.model_fields_set:
            yield (name, "vs"), f"{name} is of what bertkit is measured beside: give vs too."


class BenchPretrainSettings(Settings):
    """``bertkit bench pretrain``."""

    size: Literal["tiny", "mini", "small", "medium", "base", "large"] | None = Field(
        None, description="tiny, mini, small, medium, base or large; unset: base on a GPU, mini on a CPU."
    )
    corpus: tuple[str, ...] = Field((), description="Text files or folders; unset: a text made up with the lengths of prose.")
    tokenizer: VocabularySettings = Field(default_factory=VocabularySettings)
    vs: Other | None = Field(None, description="Do the same work with transformers too, in turn.")
    vs_precision: Asked = Field(
        "fp32", description="The numbers of the other side: fp32 (what transformers takes), bf16, fp16, auto."
    )
    rounds: int = Field(5, ge=1, description="Times that each side runs.")
    seconds: float = Field(10.0, gt=0, description="Seconds of one run of one side.")
    memory: bool = Field(True, description="Measure the peak of memory too, each side in a process of its own.")
    batch_size: int | None = Field(None, ge=1, description="Sequences a step; unset: 32 on a CPU, 256 on a GPU.")
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout of hidden states and attention, on both sides.")
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of everything that is drawn.")
    examples: ExampleSettings = Field(default_factory=ExampleSettings)
    masking: MaskingSettings = Field(default_factory=MaskingSettings)
    device: TrainingDeviceSettings = Field(default_factory=TrainingDeviceSettings)

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        if bool(self.corpus) != (self.tokenizer.path is not None):
            yield (
                ("corpus", "tokenizer.path"),
                "A corpus is measured with a tokenizer: give both corpus and tokenizer.path, or neither.",
            )
        yield from of_the_other_side(self, "vs_precision")


class _Measured(Settings):
    """What the benches over a task's rows share."""

    model: str = Field(description="A run folder, a Hugging Face BERT folder or a hub name.")
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    data: DataSettings = Field(default_factory=DataSettings)
    max_length: int = Field(128, ge=3, description="Tokens of a sequence at most, special tokens included.")
    rounds: int = Field(5, ge=1, description="Times that each side runs.")
    memory: bool = Field(True, description="Measure the peak of memory too, each side in a process of its own.")


class BenchFinetuneSettings(_Measured):
    """``bertkit bench finetune``."""

    device: TrainingDeviceSettings = Field(default_factory=TrainingDeviceSettings)
    task: str = Field("mnli", description="A task that `bertkit tasks` lists.")
    vs: Other | None = Field(None, description="Do the same work with transformers too, in turn.")
    vs_precision: Asked = Field(
        "fp32", description="The numbers of the other side: fp32 (what transformers takes), bf16, fp16, auto."
    )
    pad: Literal["max", "longest", "both"] = Field(
        "max", description="What the other side pads to: max_length, as run_glue does, the longest of the batch, or both in turn."
    )
    seconds: float = Field(10.0, gt=0, description="Seconds of one run of one side.")
    batch_size: int = Field(32, ge=1, description="Sequences a step.")
    dropout: float | None = Field(None, ge=0, lt=1, description="Of every kind, on both sides; unset: as the model's files say.")
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of everything that is drawn.")

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        yield from of_the_other_side(self, "vs_precision", "pad")


class BenchPredictSettings(_Measured):
    """``bertkit bench predict``."""

    device: DeviceSettings = Field(default_factory=DeviceSettings)
    task: str | None = Field(None, description="A task over texts; unset: the one that the model was trained for.")
    vs: Literal["transformers", "onnxruntime"] | None = Field(None, description="Do the same work another way too, in turn.")
    rows: int = Field(2048, ge=1, description="Rows of one run of one side, those that follow in the file each time.")
    batch_size: int = Field(32, ge=1, description="Texts that the other side takes at once.")

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        yield from of_the_other_side(self, "batch_size")
