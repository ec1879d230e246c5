"""The settings of ``bertkit bench``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings
from bertkit.fields import Settings
from bertkit.settings.parts import TokenizerSettings
from bertkit.training.device import TrainingDeviceSettings
from bertkit.training.precision import Asked

Other = Literal["transformers"]


class BenchPretrainSettings(Settings):
    """``bertkit bench pretrain``."""

    size: Literal["tiny", "mini", "small", "medium", "base", "large"] | None = Field(
        None, description="tiny, mini, small, medium, base or large; unset: base on a GPU, mini on a CPU."
    )
    corpus: tuple[str, ...] = Field((), description="Text files or folders; unset: a text made up with the lengths of prose.")
    tokenizer: TokenizerSettings = Field(default_factory=TokenizerSettings)
    vs: Other | None = Field(None, description="Do the same work with transformers too, in turn.")
    vs_precision: Asked = Field("fp32", description="The numbers of the other side: fp32 (what transformers takes), bf16, auto.")
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
