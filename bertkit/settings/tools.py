"""The settings of the commands that need no torch: nothing here imports a model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bertkit.corpus.documents import CorpusSettings
from bertkit.fields import Settings


class Output(Settings):
    """Where the result goes; never recorded, never compared."""

    output: str | None = Field(None, description="The folder or file to write; unset: by the command.")
    overwrite: bool = Field(False, description="Remove what an earlier run made there (and nothing else) and start anew.")


class TokenizerTrainSettings(Output):
    """``bertkit tokenizer train FILES…``."""

    files: tuple[str, ...] = Field(min_length=1, description="Text files or folders of them.")
    vocab_size: int | None = Field(None, ge=6, description="Entries; unset: by the size of the text.")
    cased: bool = Field(False, description="Keep case and accents.")
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)


class QuickstartSettings(Output):
    """``bertkit quickstart``."""

    text: str | None = Field(None, description="A text file of at least 9 documents; unset: Python's own help.")
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of everything that is drawn.")
    device: Literal["auto", "cpu"] = Field("auto", description="auto takes a GPU where there is one.")
