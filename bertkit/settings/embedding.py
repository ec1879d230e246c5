"""The settings of ``bertkit embed``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from bertkit.settings.parts import BatchSettings
from bertkit.settings.tools import Output
from bertkit.training.device import DeviceSettings


class EmbedSettings(Output):
    """``bertkit embed FILE…``."""

    model: str = Field(description="A run folder, a Hugging Face BERT folder or a hub name.")
    files: tuple[str, ...] = Field((), description="Texts, one a line, tables of them (.csv .tsv .jsonl .parquet), or - (stdin).")
    text_column: str | None = Field(None, description="The column of the text in tables; unset: text.")
    pooling: Literal["mean", "cls"] = Field(
        "mean", description="A text's vector: the mean over all its tokens, [CLS] and [SEP] among them, or the state of [CLS]."
    )
    layer: int = Field(-1, description="Which states: 0 the embeddings, 1 … the layers; -1 the last, -2 the one before.")
    tokens: bool = Field(False, description="A vector for each token instead of each text; into Parquet alone.")
    normalize: bool = Field(False, description="Vectors of length 1.")
    cased: bool | None = Field(None, description="Keep case, where the model's files do not say.")
    max_length: int | None = Field(
        None, ge=3, description="Tokens of a text at most, special ones included; unset: the model's positions."
    )
    device: DeviceSettings = Field(default_factory=DeviceSettings)
    batch: BatchSettings = Field(default_factory=BatchSettings)

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        if self.tokens and "pooling" in self.model_fields_set:
            yield ("tokens", "pooling"), "Each token has a vector of its own, so nothing is pooled: give tokens or pooling."
        if self.tokens and self.output is not None and self.output.lower().endswith(".npy"):
            yield (
                ("tokens", "output"),
                "An .npy has no place for which token a vector is of: give --output a name that ends in .parquet.",
            )
