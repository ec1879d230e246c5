"""``bertkit bench pretrain``, ``finetune`` and ``predict``."""

from __future__ import annotations

from typing import Annotated

from bertkit.cli import flags
from bertkit.cli.session import checked, perform

Size = Annotated[
    str | None, flags.flag("--size", help="tiny, mini, small, medium, base or large.", panel="Data and model", metavar="NAME")
]
Corpus = Annotated[
    list[str] | None, flags.flag("--corpus", help="Text; without, one is made up.", panel="Data and model", metavar="PATH")
]
Tokenizer = Annotated[
    str | None, flags.flag("--tokenizer", help="A vocab.txt or a model folder.", panel="Data and model", metavar="PATH")
]
Vs = Annotated[
    str | None, flags.flag("--vs", help="The same work through transformers, in turn.", panel="Measuring", metavar="transformers")
]
VsPrecision = Annotated[
    str | None, flags.flag("--vs-precision", help="Its numbers (fp32).", panel="Measuring", metavar="auto|fp32|bf16|fp16")
]
Rounds = Annotated[int | None, flags.flag("--rounds", help="Times that each side runs (5).", panel="Measuring", metavar="N")]
Seconds = Annotated[float | None, flags.flag("--seconds", help="Seconds of one run (10).", panel="Measuring", metavar="X")]
Dropout = Annotated[float | None, flags.flag("--dropout", help="On both sides (0.1).", panel="Measuring", metavar="X")]
Task = Annotated[str | None, flags.flag("--task", help="One that `bertkit tasks` lists.", panel="Data and model", metavar="TASK")]
VsPredict = Annotated[
    str | None,
    flags.flag("--vs", help="The same rows another way, in turn.", panel="Measuring", metavar="transformers|onnxruntime"),
]
Pad = Annotated[
    str | None, flags.flag("--pad", help="What the other side pads to (max).", panel="Measuring", metavar="max|longest|both")
]
Rows = Annotated[int | None, flags.flag("--rows", help="Rows of one run (2048).", panel="Measuring", metavar="N")]
Memory = Annotated[
    bool | None, flags.flag("--memory/--no-memory", help="Measure the peak of memory too (on).", panel="Measuring")
]


def pretrain(
    size: Size = None,
    corpus: Corpus = None,
    tokenizer: Tokenizer = None,
    max_length: flags.MaxLength = None,
    batch_size: flags.BatchSize = None,
    precision: flags.Precision = None,
    compile_: flags.Compile = None,
    vs: Vs = None,
    vs_precision: VsPrecision = None,
    rounds: Rounds = None,
    seconds: Seconds = None,
    dropout: Dropout = None,
    memory: Memory = None,
    set_: flags.Set = None,
    json: flags.Json = False,
) -> None:
    """Measure the speed and memory of pretraining.

    Tokens a second (padding not counted), as the median of all rounds and in brackets the least and the greatest, and their
    share of what the machine can do. With --vs transformers the same sequences go through its BertForPreTraining in turn.
    Run it on an idle machine.
    """
    given = flags.given(
        ("size", "--size", size),
        ("corpus", "--corpus", corpus),
        ("tokenizer.path", "--tokenizer", tokenizer),
        ("examples.max_length", "--max-length", max_length),
        ("batch_size", "--batch-size", batch_size),
        ("device.precision", "--precision", precision),
        ("device.compile", "--compile", compile_),
        ("vs", "--vs", vs),
        ("vs_precision", "--vs-precision", vs_precision),
        ("rounds", "--rounds", rounds),
        ("seconds", "--seconds", seconds),
        ("dropout", "--dropout", dropout),
        ("memory", "--memory/--no-memory", memory),
    )
    from bertkit.settings.bench import BenchPretrainSettings

    settings = checked(BenchPretrainSettings, command="bench pretrain", flags=given, sets=set_)
    from bertkit.bench.pretrain import bench_pretrain as job  # slow, and not needed to refuse wrong settings

    perform("bench pretrain", lambda console: job(settings, console))


def finetune(
    task: Task = None,
    model: flags.Model = None,
    data: flags.Data = None,
    train_file: flags.TrainFile = None,
    text_column: flags.TextColumn = None,
    pair_column: flags.PairColumn = None,
    label_column: flags.LabelColumn = None,
    max_train_samples: flags.MaxTrainSamples = None,
    max_length: flags.MaxLength = None,
    batch_size: flags.BatchSize = None,
    precision: flags.Precision = None,
    vs: Vs = None,
    vs_precision: VsPrecision = None,
    pad: Pad = None,
    rounds: Rounds = None,
    seconds: Seconds = None,
    dropout: Dropout = None,
    memory: Memory = None,
    set_: flags.Set = None,
    json: flags.Json = False,
) -> None:
    """Measure the speed and memory of fine-tuning.

    Tokens and texts a second over a task's training rows. With --vs transformers the same batches go through its class of the
    head in turn, padded to the length as run_glue does, to the longest of the batch, or both.
    """
    given = flags.given(
        ("task", "--task", task),
        ("model", "--model", model),
        ("data.folder", "--data", data),
        ("data.train_file", "--train-file", train_file),
        ("data.text_column", "--text-column", text_column),
        ("data.pair_column", "--pair-column", pair_column),
        ("data.label_column", "--label-column", label_column),
        ("data.max_train_samples", "--max-train-samples", max_train_samples),
        ("max_length", "--max-length", max_length),
        ("batch_size", "--batch-size", batch_size),
        ("device.precision", "--precision", precision),
        ("vs", "--vs", vs),
        ("vs_precision", "--vs-precision", vs_precision),
        ("pad", "--pad", pad),
        ("rounds", "--rounds", rounds),
        ("seconds", "--seconds", seconds),
        ("dropout", "--dropout", dropout),
        ("memory", "--memory/--no-memory", memory),
    )
    from bertkit.settings.bench import BenchFinetuneSettings

    settings = checked(BenchFinetuneSettings, command="bench finetune", flags=given, sets=set_)
    from bertkit.bench.finetune import bench_finetune as job  # slow, and not needed to refuse wrong settings

    perform("bench finetune", lambda console: job(settings, console))


def predict(
    model: flags.Model = None,
    task: Task = None,
    data: flags.Data = None,
    test_file: flags.TestFile = None,
    text_column: flags.TextColumn = None,
    pair_column: flags.PairColumn = None,
    label_column: flags.LabelColumn = None,
    max_length: flags.MaxLength = None,
    precision: flags.Precision = None,
    vs: VsPredict = None,
    rows: Rows = None,
    rounds: Rounds = None,
    memory: Memory = None,
    set_: flags.Set = None,
    json: flags.Json = False,
) -> None:
    """Measure the speed and memory of prediction, tokenizing included.

    Texts and tokens a second over real rows. With --vs the same rows go through transformers' pipeline or a session of
    onnxruntime (the extra `onnx`) in turn, 32 at once.
    """
    given = flags.given(
        ("model", "--model", model),
        ("task", "--task", task),
        ("data.folder", "--data", data),
        ("data.test_file", "--test-file", test_file),
        ("data.text_column", "--text-column", text_column),
        ("data.pair_column", "--pair-column", pair_column),
        ("data.label_column", "--label-column", label_column),
        ("max_length", "--max-length", max_length),
        ("device.precision", "--precision", precision),
        ("vs", "--vs", vs),
        ("rows", "--rows", rows),
        ("rounds", "--rounds", rounds),
        ("memory", "--memory/--no-memory", memory),
    )
    from bertkit.settings.bench import BenchPredictSettings

    settings = checked(BenchPredictSettings, command="bench predict", flags=given, sets=set_)
    from bertkit.bench.predict import bench_predict as job  # slow, and not needed to refuse wrong settings

    perform("bench predict", lambda console: job(settings, console))
