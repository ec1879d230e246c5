"""The settings that belong to no other room: files, budgets, intervals, how a run is kept. Numbers and texts only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bertkit.fields import Settings
from bertkit.labelled.columns import LabelForm

Size = Literal["tiny", "mini", "small", "medium", "base", "large"]
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _interval(value: int | str) -> int | str:
    every(value)
    return value


Interval = Annotated[int | str, AfterValidator(_interval)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """An interval: in steps, or in seconds."""

    steps: int | None = None
    seconds: float | None = None


def every(interval: int | str) -> Every:
    """``500`` as 500 steps, ``"10m"`` as 600 seconds (``s``, ``m``, ``h``)."""
    if isinstance(interval, int) and interval > 0:
        return Every(steps=interval)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh])", str(interval))
    if match is None or float(match[1]) == 0:
        raise ValueError(f"is a number of steps, or a time such as 10m, not {interval!r}")
    return Every(seconds=float(match[1]) * _SECONDS[match[2]])


class InputSettings(Settings):
    """What pretraining reads."""

    corpus: tuple[str, ...] = Field(
        min_length=1, description="Texts (files, folders, patterns, data sets of the hub), or token stores."
    )
    validation: tuple[str, ...] = Field(
        (), description="Text files to validate on; unset: 1 % of the documents are held out, chosen by hash."
    )
    validation_sequences: int = Field(1000, ge=1, description="Sequences of the validation text that are scored each time.")


class TokenizerSettings(Settings):
    """Where the vocabulary comes from."""

    path: str | None = Field(None, description="A vocab.txt or a model folder; unset: a vocabulary is trained on the corpus.")
    vocab_size: int | None = Field(
        None,
        ge=6,
        description="Entries of a trained vocabulary; unset: 8 000 under 20 MB of text, 16 000 under 200 MB, else 30 522.",
    )
    min_frequency: int | None = Field(
        None, ge=1, description="Times that two pieces must stand together to become one of a trained vocabulary; unset: 2."
    )
    cased: bool | None = Field(None, description="Keep case; unset: as the files say, and uncased for a trained vocabulary.")

    def read_and_trained(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Keys, and a sentence, of settings of a training beside a vocabulary that is read."""
        for name, what in (("vocab_size", "has its size"), ("min_frequency", "is not trained")):
            if self.path is not None and getattr(self, name) is not None:
                yield (
                    ("tokenizer.path", f"tokenizer.{name}"),
                    f"A vocabulary that is read {what}: give tokenizer.path or tokenizer.{name}, not both.",
                )


class ModelSettings(Settings):
    """Which encoder is pretrained."""

    size: Size | None = Field(None, description="tiny, mini, small, medium, base or large; unset: base on a GPU, mini on a CPU.")
    init_from: str | None = Field(None, description="Go on from this model: a run, a folder or a hub name.")
    add_words: str | None = Field(
        None, description="With init_from: a file of words, one a line, that the vocabulary and the model's rows grow by."
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="Dropout of hidden states and attention; unset: the model's.")
    attention_dropout: float | None = Field(
        None, ge=0, lt=1, description="Of attention alone; unset: as dropout. 0 lets CUDA attend without padding."
    )
    unigram_bias: bool = Field(True, description="A new masked-LM output bias starts at the corpus's log unigram frequencies.")


class DataSettings(Settings):
    """Whose data a task reads."""

    folder: str | None = Field(None, description="A folder with the task's own file names, or a hub data set.")
    train_file: str | None = Field(None, description="A file to train on.")
    validation_file: str | None = Field(None, description="A file to validate on.")
    test_file: str | None = Field(None, description="A file to test on.")
    text_column: str | None = Field(None, description="The column of the text.")
    pair_column: str | None = Field(None, description="The column of the second text.")
    label_column: str | None = Field(
        None, description="The column of the label; of several labels also columns of 0 and 1, parted by commas."
    )
    label_separator: str | None = Field(None, min_length=1, description="What parts several labels in a cell; unset: a comma.")
    candidate_columns: str | None = Field(
        None,
        min_length=1,
        description="Of choices: columns parted by commas, one column of lists, or the name that numbered columns share; unset: "
        "candidates, choices, options or endings.",
    )
    label_form: LabelForm | None = Field(
        None,
        description="Of choices, what names the right candidate: number (from 0), number_from_1, letter, text; unset: as the "
        "labels themselves say.",
    )
    max_train_samples: int | None = Field(None, ge=1, description="Only the first so many training rows.")
    max_eval_samples: int | None = Field(None, ge=1, description="Only the first so many rows of an evaluation.")
    strict: bool = Field(False, description="A malformed row is an error instead of being skipped and counted.")


class BatchSettings(Settings):
    """How much goes into a step."""

    size: int | None = Field(
        None, ge=1, description="Sequences per optimizer step over all processes; unset: by the model's width."
    )
    micro_tokens: int | None = Field(None, ge=16, description="Tokens per forward pass of a process; unset: by the device.")


class TrainingBatchSettings(BatchSettings):
    """How much goes into a step of training."""

    save_memory: bool = Field(
        False, description="Compute each layer again on the way back (gradient checkpointing): less memory, a third more time."
    )


class BudgetSettings(Settings):
    """When training ends: at the first of these that is reached."""

    steps: int | None = Field(None, ge=1, description="Optimizer steps.")
    epochs: float | None = Field(None, gt=0, description="Passes over the data, each of as many steps as the first.")
    max_minutes: float | None = Field(
        None, gt=0, description="Minutes of training over all starts, validation and saving included."
    )


class RunSettings(Settings):
    """How a run is repeated, watched and kept."""

    seed: int = Field(42, ge=0, lt=2**63, description="The seed of everything that is drawn.")
    workers: int | None = Field(
        None, ge=0, le=128, description="Processes that make batches; unset: by the machine. Never changes a batch."
    )
    log_every: Interval = Field("10s", description="Steps, or a time such as 10m, between two lines of the log.")
    eval_every: Interval | None = Field(None, description="Steps or a time between two validations; unset: by the budget.")
    save_every: Interval = Field("10m", description="Steps or a time between two checkpoints.")
    keep_checkpoints: int = Field(2, ge=1, description="Newest checkpoints that stay; the best stays beside them.")
    keep_best: bool = Field(False, description="The run folder ends with the model of the best validation, not the last.")
    report_to: tuple[str, ...] = Field((), description="Trackers: tensorboard, wandb.")
