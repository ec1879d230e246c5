"""``bertkit eval TASK``."""

from __future__ import annotations

from typing import Annotated

from bertkit.cli import flags
from bertkit.cli.session import perform, spread
from bertkit.cli.tasked import TaskName, settings_of
from bertkit.cli.training import DATA, rows

Predictions = Annotated[
    str | None,
    flags.flag("--predictions", help="Score this file instead of a model.", panel="Data and model", metavar="FILE"),
]


def evaluate(
    task: TaskName = None,
    model: flags.Model = None,
    predictions: Predictions = None,
    data: flags.Data = None,
    validation_file: flags.ValidFile = None,
    test_file: flags.TestFile = None,
    text_column: flags.TextColumn = None,
    pair_column: flags.PairColumn = None,
    label_column: flags.LabelColumn = None,
    part: flags.Part = None,
    max_eval_samples: flags.MaxEvalSamples = None,
    strict: flags.Strict = None,
    cased: flags.Cased = None,
    max_length: flags.MaxLength = None,
    stride: flags.Stride = None,
    batch_size: flags.BatchSize = None,
    micro_tokens: flags.MicroTokens = None,
    precision: flags.Precision = None,
    output: flags.Output = None,
    recipe: flags.Recipe = None,
    set_: flags.Set = None,
    processes: flags.Processes = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Score a model as the task's official script does.

    Without --model it is the newest finished run of the task; a run without data named is scored on its own.
    """
    given = flags.given(*rows(DATA, locals()))
    from bertkit.settings.commands import eval_settings

    settings = settings_of("eval", eval_settings, task, given, set_ or (), recipe)
    spread(processes)
    from bertkit.jobs.evaluate import evaluate as job  # slow, and not needed to refuse wrong settings

    perform("eval", lambda console: job(settings, console), quiet=quiet)
