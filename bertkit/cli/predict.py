"""``bertkit predict TASK``."""

from __future__ import annotations

from typing import Annotated

from bertkit.cli import flags
from bertkit.cli.session import perform, spread
from bertkit.cli.submission import GLUE, OWN, Runs, Submission, submit
from bertkit.cli.tasked import TaskName, settings_of
from bertkit.cli.training import DATA, rows
from bertkit.errors import UsageError

Replace = Annotated[
    bool, flags.flag("--overwrite", help="Replace the output, also where it holds no predictions.", panel="Every command")
]


def predict(
    task: TaskName = None,
    task_file: flags.TaskFile = None,
    model: flags.Model = None,
    data: flags.Data = None,
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
    submission: Submission = None,
    runs: Runs = None,
    overwrite: Replace = False,
    recipe: flags.Recipe = None,
    set_: flags.Set = None,
    processes: flags.Processes = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Write a prediction for each row, as JSON lines.

    They go to --output, else to stdout. Without data it reads texts from stdin.

    `bertkit predict glue --submission glue.zip` takes the newest run of each of GLUE's tasks, and its data from the folders
    in --data (CoLA, SST-2, MNLI and so on) or the hub, and writes the zip for the benchmark's server.
    """
    if submission is not None or runs is not None or (task is not None and task.lower() == GLUE):
        own = flags.given(*rows(DATA | OWN, locals()))
        return submit(task, own, set_ or (), recipe, processes, quiet=quiet)
    if json and output is None:
        raise UsageError(
            "With --json the predictions need a place of their own.", where="--json", hint="Add --output predictions.jsonl."
        )
    given = flags.given(*rows(DATA, locals()))
    from bertkit.settings.commands import predict_settings

    settings = settings_of("predict", predict_settings, task, given, set_ or (), recipe)
    spread(processes)
    from bertkit.jobs.predict import predict as job  # slow, and not needed to refuse wrong settings

    perform("predict", lambda console: job(settings, console), quiet=quiet)
