"""``bertkit bench pretrain``."""

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
    str | None, flags.flag("--vs-precision", help="Its numbers (fp32).", panel="Measuring", metavar="fp32|bf16|auto")
]
Rounds = Annotated[int | None, flags.flag("--rounds", help="Times that each side runs (5).", panel="Measuring", metavar="N")]
Seconds = Annotated[float | None, flags.flag("--seconds", help="Seconds of one run (10).", panel="Measuring", metavar="X")]
Dropout = Annotated[float | None, flags.flag("--dropout", help="On both sides (0.1).", panel="Measuring", metavar="X")]
Memory = Annotated[bool | None, flags.flag("--memory/--no-memory", help="Measure the peak of memory too.", panel="Measuring")]


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

    Tokens a second, and their share of what the machine can do. With --vs transformers the same sequences go through its
    BertForPreTraining in turn, and the ratio is told as median and spread. Run it on an idle machine.
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
