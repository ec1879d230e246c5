"""``bertkit finetune TASK``."""

from __future__ import annotations

from bertkit.cli import flags
from bertkit.cli.session import perform, spread
from bertkit.cli.tasked import TaskName, settings_of
from bertkit.cli.training import DATA, TRAINING, rows


def finetune(
    task: TaskName = None,
    task_file: flags.TaskFile = None,
    model: flags.Model = None,
    data: flags.Data = None,
    train_file: flags.TrainFile = None,
    validation_file: flags.ValidFile = None,
    test_file: flags.TestFile = None,
    text_column: flags.TextColumn = None,
    pair_column: flags.PairColumn = None,
    label_column: flags.LabelColumn = None,
    metric: flags.Metric = None,
    max_train_samples: flags.MaxTrainSamples = None,
    max_eval_samples: flags.MaxEvalSamples = None,
    strict: flags.Strict = None,
    cased: flags.Cased = None,
    max_length: flags.MaxLength = None,
    stride: flags.Stride = None,
    learning_rate: flags.LearningRates = None,
    warmup: flags.Warmup = None,
    batch_size: flags.BatchSizes = None,
    micro_tokens: flags.MicroTokens = None,
    epochs: flags.EpochCounts = None,
    steps: flags.Steps = None,
    max_minutes: flags.MaxMinutes = None,
    precision: flags.Precision = None,
    compile_: flags.Compile = None,
    seed: flags.Seed = None,
    seeds: flags.Seeds = None,
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
    """Train a BERT for a task, and score it.

    `bertkit finetune mnli` alone works: model and data come from the hub, the result goes to runs/mnli.
    `--seeds 1,2,3`, and a comma list in --lr, --epochs or --batch-size, train every combination and keep the best.
    """
    given = flags.swept(flags.given(*rows(DATA | TRAINING, locals())), seeds)
    from bertkit.settings.commands import finetune_settings

    settings = settings_of("finetune", finetune_settings, task, given, set_ or (), recipe)
    spread(processes)
    from bertkit.jobs.finetune import finetune as job  # slow, and not needed to refuse wrong settings

    perform("finetune", lambda console: job(settings, console), quiet=quiet)
