"""``bertkit pretrain``."""

from __future__ import annotations

from typing import Annotated

from bertkit.cli import flags
from bertkit.cli.session import checked, perform, spread
from bertkit.cli.training import PRETRAINING, TRAINING, rows

Corpus = Annotated[
    list[str] | None,
    flags.flag(
        "--corpus",
        help="Texts, folders, patterns, hf:owner/name or token stores; any number.",
        panel="Data and model",
        metavar="PATH",
    ),
]
Validation = Annotated[
    list[str] | None,
    flags.flag(
        "--validation-file", "--valid", help="Text files or token stores to validate on.", panel="Data and model", metavar="FILE"
    ),
]
Tokenizer = Annotated[
    str | None, flags.flag("--tokenizer", help="A vocab.txt or a model folder.", panel="Data and model", metavar="PATH")
]
Size = Annotated[
    str | None,
    flags.flag("--size", help="tiny, mini, small, medium, base or large.", panel="Data and model", metavar="NAME"),
]
InitFrom = Annotated[
    str | None, flags.flag("--init-from", "--model", help="Go on from this model.", panel="Data and model", metavar="MODEL")
]
AddWords = Annotated[
    str | None,
    flags.flag("--add-words", help="Words, one a line, that it learns as wholes.", panel="Data and model", metavar="FILE"),
]
Objective = Annotated[str | None, flags.flag("--objective", help="mlm+nsp, mlm+sop or mlm.", panel="Training", metavar="NAME")]
Phases = Annotated[
    str | None,
    flags.flag(
        "--phases",
        help="Lengths one after another, with their shares: 128:0.9,512:0.1.",
        panel="Training",
        metavar="LENGTH:SHARE,...",
    ),
]
MlmProbability = Annotated[
    float | None, flags.flag("--mlm-probability", help="Share of the tokens to predict.", panel="Training", metavar="X")
]

Masking = Annotated[
    str | None,
    flags.flag("--masking", help="What is masked together: pieces, words or spans.", panel="Training", metavar="token|word|span"),
]


def pretrain(
    corpus: Corpus = None,
    validation_file: Validation = None,
    documents: flags.Documents = None,
    encoding_errors: flags.EncodingErrors = None,
    words: flags.Words = None,
    dedup: flags.Dedup = None,
    text_field: flags.TextField = None,
    tokenizer: Tokenizer = None,
    vocab_size: flags.VocabSize = None,
    cased: flags.Cased = None,
    size: Size = None,
    init_from: InitFrom = None,
    add_words: AddWords = None,
    objective: Objective = None,
    max_length: flags.MaxLength = None,
    phases: Phases = None,
    mlm_probability: MlmProbability = None,
    masking: Masking = None,
    learning_rate: flags.LearningRate = None,
    warmup: flags.Warmup = None,
    batch_size: flags.BatchSize = None,
    micro_tokens: flags.MicroTokens = None,
    steps: flags.Steps = None,
    epochs: flags.Epochs = None,
    max_minutes: flags.MaxMinutes = None,
    precision: flags.Precision = None,
    compile_: flags.Compile = None,
    seed: flags.Seed = None,
    workers: flags.Workers = None,
    log_every: flags.LogEvery = None,
    eval_every: flags.EvalEvery = None,
    save_every: flags.SaveEvery = None,
    keep_checkpoints: flags.KeepCheckpoints = None,
    keep_best: flags.KeepBest = None,
    report_to: flags.ReportTo = None,
    output: flags.Output = None,
    overwrite: flags.Overwrite = False,
    recipe: flags.Recipe = None,
    set_: flags.Set = None,
    processes: flags.Processes = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train a BERT on text: masked words and next sentences.

    `bertkit pretrain --corpus wiki.txt` alone works: it trains a vocabulary, takes a size that fits the machine, and
    says what it chose before the first step. The same command again goes on where it was stopped.
    """
    given = flags.given(*rows(PRETRAINING | TRAINING, locals()))
    from bertkit.settings.commands import PretrainSettings

    settings = checked(PretrainSettings, command="pretrain", flags=given, sets=set_, recipe=recipe)
    spread(processes)
    from bertkit.jobs.pretrain import pretrain as job  # slow, and not needed to refuse wrong settings

    perform("pretrain", lambda console: job(settings, console), quiet=quiet)
