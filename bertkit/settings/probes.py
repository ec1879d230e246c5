"""The settings of ``bertkit eval mlm`` and ``bertkit eval blimp``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from bertkit.batches.fixed_masks import WordMaskingSettings
from bertkit.corpus.documents import CorpusSettings
from bertkit.fields import Settings
from bertkit.settings.gates import GateSettings, ThresholdSettings
from bertkit.settings.parts import BatchSettings
from bertkit.settings.tools import Output
from bertkit.training.device import DeviceSettings


class ProbeSettings(Output):
    """What the evaluations of a pretrained model share."""

    model: str | None = Field(
        None, description="A run folder, a Hugging Face BERT folder or a hub name; unset: the newest pretraining."
    )
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    device: DeviceSettings = Field(default_factory=DeviceSettings)
    batch: BatchSettings = Field(default_factory=BatchSettings)
    gates: ThresholdSettings = Field(default_factory=ThresholdSettings)

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        yield from self.gates.contradictions()


class MlmInputs(Settings):
    """What ``eval mlm`` reads."""

    corpus: tuple[str, ...] = Field(min_length=1, description="Texts: files, folders, patterns, data sets of the hub, or -.")


class MlmData(Settings):
    """How much of it."""

    max_eval_samples: int | None = Field(None, ge=1, description="Only the first so many documents.")


class MlmSettings(ProbeSettings):
    """``bertkit eval mlm``."""

    inputs: MlmInputs
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    data: MlmData = Field(default_factory=MlmData)
    masking: WordMaskingSettings = Field(default_factory=WordMaskingSettings)
    objective: Literal["mlm+nsp", "mlm+sop", "mlm"] | None = Field(
        None, description="Whether pairs are scored beside masked words; unset: what the model was trained for."
    )
    max_length: int | None = Field(
        None, ge=8, le=65_535, description="Tokens of a sequence at most; unset: what the run was trained with, else 128."
    )
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of the masks and the pairs.")


class BlimpData(Settings):
    """What ``eval blimp`` reads."""

    folder: str = Field(description="The folder of BLiMP's sets, NAME.jsonl each.")
    max_eval_samples: int | None = Field(None, ge=1, description="Only the first so many pairs of each set.")


class BlimpSettings(ProbeSettings):
    """``bertkit eval blimp``."""

    data: BlimpData
    gates: GateSettings = Field(default_factory=GateSettings)


PROBE_SETTINGS: dict[str, type[ProbeSettings]] = {"mlm": MlmSettings, "blimp": BlimpSettings}
