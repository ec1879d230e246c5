"""The settings of the commands that need no torch: nothing here imports a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from bertkit.batches.masking import MaskingSettings
from bertkit.corpus.documents import CorpusSettings
from bertkit.fields import Settings
from bertkit.settings.parts import TokenizerSettings

_MOST_SHARDS = 100_000


class Output(Settings):
    """Where the result goes; never recorded, never compared."""

    output: str | None = Field(None, description="The folder or file to write; unset: by the command.")
    overwrite: bool = Field(False, description="Remove what an earlier run made there (and nothing else) and start anew.")


class TokenizerTrainSettings(Output):
    """``bertkit tokenizer train FILES…``."""

    files: tuple[str, ...] = Field(min_length=1, description="Texts: files, folders, patterns, data sets of the hub.")
    vocab_size: int | None = Field(None, ge=6, description="Entries; unset: by the size of the text.")
    cased: bool = Field(False, description="Keep case and accents.")
    min_frequency: int = Field(2, ge=1, description="Times that two pieces must stand together to become one.")
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)


class ExplainSettings(Settings):
    """``bertkit explain A [B]``."""

    texts: tuple[str, ...] = Field(min_length=1, max_length=2, description="One text, or two: A and what may follow it.")
    model: str | None = Field(
        None, description="A run folder, a BERT folder or a hub name; unset: the newest pretraining, where no tokenizer is named."
    )
    tokenizer: str | None = Field(None, description="A vocab.txt or a model folder; unset: the model's.")
    cased: bool | None = Field(None, description="Keep case, where the files do not say.")
    words: str | None = Field(
        None, description="Chinese words, which whole-word masking takes together: a file of words, or jieba or rjieba."
    )
    masking: MaskingSettings = Field(default_factory=MaskingSettings)
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of what is drawn.")
    top: int = Field(5, ge=1, le=100, description="Likeliest words for each place.")

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        if self.words is not None and self.masking.kind == "token":
            yield ("words", "masking.kind"), "Chinese words are given, but masking is by token: take word or span."


class QuickstartSettings(Output):
    """``bertkit quickstart``."""

    text: str | None = Field(None, description="A text file of at least 9 documents; unset: Python's own help.")
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of everything that is drawn.")
    device: Literal["auto", "cpu"] = Field("auto", description="auto takes a GPU where there is one.")


class _OfText(Output):
    """What the commands share that read a text as a pretraining does."""

    paths: tuple[str, ...] = Field(
        min_length=1, description="Texts: files, folders, patterns, data sets of the hub, or - (stdin)."
    )
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    tokenizer: TokenizerSettings = Field(default_factory=TokenizerSettings)
    workers: int | None = Field(
        None, ge=0, le=128, description="Processes that build; unset: by the machine. Never changes the result."
    )

    def contradictions(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Pairs of settings that cannot both be right."""
        yield from self.tokenizer.read_and_trained()


class CorpusBuildSettings(_OfText):
    """``bertkit corpus build PATH…``."""

    shard: str | None = Field(None, description="Build part i of n alone, written i/n, counted from 1.")

    @field_validator("shard")
    @classmethod
    def _shard(cls, value: str | None) -> str | None:
        if value is not None:
            match = re.fullmatch(r"([0-9]+)/([0-9]+)", value)
            if match is None or not 1 <= int(match[1]) <= int(match[2]) <= _MOST_SHARDS:
                raise ValueError(f"is i/n with i from 1 to n, such as 3/8, and n up to {_MOST_SHARDS:,}, not {value!r}")
        return value

    def shard_numbers(self) -> tuple[int, int] | None:
        """``(i, n)``; None: all of the text."""
        if self.shard is None:
            return None
        number, _, count = self.shard.partition("/")
        return int(number), int(count)


class CorpusInspectSettings(_OfText):
    """``bertkit corpus inspect PATH…|STORE|RUN``."""

    max_lengths: tuple[int, ...] = Field(
        (), description="Lengths that an epoch is planned for; unset: a run's own, else 128 and 512."
    )
    validation: tuple[str, ...] = Field((), description="Text files to validate on: is their text in this one?")
    against: tuple[str, ...] = Field((), description="A task's files or folders: is their text in this one?")
    strict: bool = Field(False, description="Any fault of the text is an error.")
    seed: int = Field(42, ge=0, lt=2**63, description="The seed of the examples that are shown.")
    examples: int = Field(3, ge=0, le=100, description="Masked examples that are shown.")
    step: int | None = Field(None, ge=1, description="Of a run: show the batch of this step instead.")

    @field_validator("max_lengths")
    @classmethod
    def _lengths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(not 8 <= length <= 65_535 for length in value):
            raise ValueError("holds lengths from 8 to 65 535")
        return value
