"""The flags that commands share: names in the words of the Hugging Face scripts, short names beside them.

What a flag may hold is checked with the settings, not here, so that every fault is reported at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bertkit.settings.reading import Entry

_FILES, _TRAINING, _KEEPING, _COMMON = "Data and model", "Training", "Watching and keeping", "Every command"


def flag(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    """One flag with its names; its default is the settings', so none is shown."""
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False)


# Every command
Output = Annotated[
    str | None, flag("--output-dir", "--output", "-o", help="Where the result goes.", panel=_COMMON, metavar="PATH")
]
Overwrite = Annotated[
    bool, flag("--overwrite", help="Remove what an earlier run made there (nothing else) and start anew.", panel=_COMMON)
]
Recipe = Annotated[
    str | None, flag("--recipe", help="A preset (`bertkit recipes ls`) or a YAML file.", panel=_COMMON, metavar="NAME|FILE")
]
Set = Annotated[
    list[str] | None,
    flag("--set", help="Any other setting, such as run.seed=7; `--set help` lists them.", panel=_COMMON, metavar="KEY=VALUE"),
]
Json = Annotated[bool, flag("--json", help="One JSON object on stdout, on failure too.", panel=_COMMON)]
Processes = Annotated[
    str | None,
    flag("--processes", help="Start so many processes; auto: one for each GPU.", panel=_COMMON, metavar="N|auto"),
]
Quiet = Annotated[bool, flag("--quiet", "-q", help="Print the output's path and nothing else.", panel=_COMMON)]

# Data and model
Model = Annotated[str | None, flag("--model", help="A run folder, a BERT folder or a hub name.", panel=_FILES, metavar="MODEL")]
Data = Annotated[
    str | None, flag("--data", help="A folder with the task's own files, or a hub data set.", panel=_FILES, metavar="FOLDER|NAME")
]
TaskFile = Annotated[
    str | None, flag("--task-file", help="A Python file of yours that registers tasks; it is run.", panel=_FILES, metavar="FILE")
]
TrainFile = Annotated[str | None, flag("--train-file", help="A file to train on.", panel=_FILES, metavar="FILE")]
ValidFile = Annotated[
    str | None, flag("--validation-file", "--valid", help="A file to validate on.", panel=_FILES, metavar="FILE")
]
TestFile = Annotated[
    str | None, flag("--test-file", "--input", help="A file to test on or to predict.", panel=_FILES, metavar="FILE")
]
TextColumn = Annotated[str | None, flag("--text-column", help="The column of the text.", panel=_FILES, metavar="NAME")]
PairColumn = Annotated[str | None, flag("--pair-column", help="The column of the second text.", panel=_FILES, metavar="NAME")]
LabelColumn = Annotated[str | None, flag("--label-column", help="The column of the label.", panel=_FILES, metavar="NAME")]
Metric = Annotated[
    list[str] | None,
    flag("--metric", help="Also a metric of evaluate's: a script of yours, or of the hub.", panel=_FILES, metavar="NAME|PATH"),
]
Part = Annotated[
    str | None, flag("--part", "--split", help="The part of the data (validation, test).", panel=_FILES, metavar="PART")
]
MaxTrainSamples = Annotated[
    int | None, flag("--max-train-samples", help="Only the first N training rows.", panel=_FILES, metavar="N")
]
MaxEvalSamples = Annotated[
    int | None, flag("--max-eval-samples", help="Only the first N rows of an evaluation.", panel=_FILES, metavar="N")
]
Strict = Annotated[
    bool | None, flag("--strict/--no-strict", help="A malformed row is an error, not skipped and counted.", panel=_FILES)
]
Cased = Annotated[bool | None, flag("--cased/--uncased", help="Case is kept or not, where the files do not say.", panel=_FILES)]
MaxLength = Annotated[
    int | None, flag("--max-seq-length", "--max-length", help="Tokens of a sequence at most.", panel=_FILES, metavar="N")
]
Stride = Annotated[
    int | None, flag("--doc-stride", "--stride", help="Tokens that neighbouring windows share.", panel=_FILES, metavar="N")
]
Documents = Annotated[
    str | None, flag("--documents", help="What parts documents: blank, line or file.", panel=_FILES, metavar="blank|line|file")
]
EncodingErrors = Annotated[
    str | None,
    flag(
        "--encoding-errors",
        help="A byte that is not UTF-8 stops, or is counted.",
        panel=_FILES,
        metavar="strict|replace",
    ),
]
Words = Annotated[
    str | None,
    flag("--words", help="Chinese words: a list of them, jieba or rjieba.", panel=_FILES, metavar="FILE|jieba|rjieba"),
]
Dedup = Annotated[
    str | None, flag("--dedup", help="exact leaves out documents that stood before.", panel=_FILES, metavar="none|exact")
]
TextField = Annotated[
    str | None,
    flag("--text-field", help="The field of the text in JSON lines, Parquet and hub data.", panel=_FILES, metavar="NAME"),
]
VocabSize = Annotated[int | None, flag("--vocab-size", help="Entries of a trained vocabulary.", panel=_FILES, metavar="N")]

# Training
LearningRate = Annotated[float | None, flag("--learning-rate", "--lr", help="Peak learning rate.", panel=_TRAINING, metavar="X")]
Warmup = Annotated[
    str | None,
    flag("--warmup", help="Warm-up: a share of the training, or steps.", panel=_TRAINING, metavar="SHARE|STEPS"),
]
BatchSize = Annotated[
    int | None, flag("--batch-size", help="Sequences per optimizer step over all processes.", panel=_TRAINING, metavar="N")
]
MicroTokens = Annotated[int | None, flag("--micro-tokens", help="Tokens per forward pass.", panel=_TRAINING, metavar="N")]
Epochs = Annotated[
    float | None, flag("--num-train-epochs", "--epochs", help="Passes over the data.", panel=_TRAINING, metavar="X")
]
Steps = Annotated[int | None, flag("--max-steps", "--steps", help="Optimizer steps.", panel=_TRAINING, metavar="N")]
MaxMinutes = Annotated[float | None, flag("--max-minutes", help="Minutes of training, all in all.", panel=_TRAINING, metavar="X")]
Precision = Annotated[
    str | None,
    flag("--mixed-precision", "--precision", help="auto, fp32, bf16 or fp16.", panel=_TRAINING, metavar="auto|fp32|bf16|fp16"),
]
Compile = Annotated[str | None, flag("--compile", help="Compile parts of each layer.", panel=_TRAINING, metavar="auto|on|off")]
Seed = Annotated[int | None, flag("--seed", help="The seed of everything drawn.", panel=_TRAINING, metavar="N")]
Workers = Annotated[int | None, flag("--workers", help="Processes that make batches.", panel=_TRAINING, metavar="N")]

# Watching and keeping
LogEvery = Annotated[str | None, flag("--log-every", help="Steps, or 10m.", panel=_KEEPING, metavar="STEPS|TIME")]
EvalEvery = Annotated[str | None, flag("--eval-every", help="Steps, or 10m.", panel=_KEEPING, metavar="STEPS|TIME")]
SaveEvery = Annotated[str | None, flag("--save-every", help="Steps, or 10m.", panel=_KEEPING, metavar="STEPS|TIME")]
KeepCheckpoints = Annotated[int | None, flag("--keep-checkpoints", help="How many stay.", panel=_KEEPING, metavar="N")]
KeepBest = Annotated[
    bool | None, flag("--keep-best/--keep-last", help="End with the model of the best validation.", panel=_KEEPING)
]
ReportTo = Annotated[list[str] | None, flag("--report-to", help="tensorboard or wandb.", panel=_KEEPING, metavar="NAME")]


# Several of these are a sweep (finetune); :func:`swept` reads them
LearningRates = Annotated[
    str | None, flag("--learning-rate", "--lr", help="Peak learning rate; several: a grid.", panel=_TRAINING, metavar="X,X..")
]
EpochCounts = Annotated[
    str | None,
    flag("--num-train-epochs", "--epochs", help="Passes over the data; several: a grid.", panel=_TRAINING, metavar="X,X.."),
]
BatchSizes = Annotated[
    str | None,
    flag(
        "--batch-size",
        help="Sequences per optimizer step over all processes; several: a grid.",
        panel=_TRAINING,
        metavar="N,N..",
    ),
]
Seeds = Annotated[str | None, flag("--seeds", help="A run for each seed; mean and deviation.", panel=_TRAINING, metavar="N,N..")]


def given(*values: tuple[str, str, Any]) -> dict[str, Entry]:
    """The settings of the flags that were given, of ``(dotted key, flag, value)``.

    A switch without an opposite (``--overwrite``) is given when it is on; one with (``--strict/--no-strict``) either way.
    """
    from bertkit.settings.reading import Entry, scalar

    found: dict[str, Entry] = {}
    for key, name, value in values:
        if value is None or value == [] or (value is False and "/" not in name):
            continue
        mixed = isinstance(value, str) and key.endswith(("_every", ".warmup"))  # "a number or …" arrives as text
        found[key] = Entry(scalar(value) if mixed else value, name.partition("/")[0])
    return found


def swept(given: dict[str, Entry], seeds: str | None) -> dict[str, Entry]:
    """``given`` with ``--lr``, ``--epochs`` and ``--batch-size`` read: one value is a setting, several a sweep's list."""
    from bertkit.settings.reading import Entry, scalar
    from bertkit.settings.sweep import AXES

    found = dict(given)
    for axis in AXES:
        entry = Entry(seeds, "--seeds") if axis.word == "seed" else found.get(axis.key)
        if entry is None or not isinstance(entry.value, str):
            continue
        if axis.word != "seed":
            del found[axis.key]
        values = [scalar(word.strip()) for word in entry.value.split(",")]
        if len(values) == 1 and axis.word != "seed":
            found[axis.key] = Entry(values[0], entry.where)
        else:
            found[f"sweep.{axis.field}"] = Entry(values, entry.where)
    return found
