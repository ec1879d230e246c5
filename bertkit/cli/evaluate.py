"""``bertkit eval TASK``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from bertkit.cli import flags
from bertkit.cli.session import checked, perform, spread
from bertkit.cli.tasked import TaskName, settings_of
from bertkit.cli.training import DATA, rows
from bertkit.errors import UsageError
from bertkit.tasks.probes import PROBES

if TYPE_CHECKING:
    from bertkit.settings.reading import Entry

Predictions = Annotated[
    str | None,
    flags.flag("--predictions", help="Score this file instead of a model.", panel="Data and model", metavar="FILE"),
]
Corpus = Annotated[
    list[str] | None, flags.flag("--corpus", help="Of mlm: a text, as pretrain reads it.", panel="Data and model", metavar="PATH")
]
Seed = Annotated[int | None, flags.flag("--seed", help="Of mlm: of its masks (42).", panel="Data and model", metavar="N")]
PROBED = {"corpus": ("inputs.corpus", "--corpus"), "seed": ("seed", "--seed")}

_GATES = "Quality gates"
Min = Annotated[
    list[str] | None,
    flags.flag("--min", help="A figure to reach, in points: f1=80; else exit 7.", panel=_GATES, metavar="NAME=POINTS"),
]
Max = Annotated[
    list[str] | None,
    flags.flag("--max", help="A figure not to pass: mlm_loss=2.5; else exit 7.", panel=_GATES, metavar="NAME=VALUE"),
]
NotWorseThan = Annotated[
    str | None,
    flags.flag(
        "--not-worse-than", help="A run or its predictions: fail (exit 7) where worse at 95 %.", panel=_GATES, metavar="RUN"
    ),
]
Inconclusive = Annotated[
    str | None,
    flags.flag("--inconclusive", help="Too few examples to tell: warn, or fail.", panel=_GATES, metavar="warn|fail"),
]
Junit = Annotated[str | None, flags.flag("--junit", help="Write the gates as JUnit XML.", panel=_GATES, metavar="FILE")]
GATES = {
    "min_": ("gates.min", "--min"),
    "max_": ("gates.max", "--max"),
    "not_worse_than": ("gates.not_worse_than", "--not-worse-than"),
    "inconclusive": ("gates.inconclusive", "--inconclusive"),
    "junit": ("gates.junit", "--junit"),
}


def evaluate(
    task: TaskName = None,
    task_file: flags.TaskFile = None,
    model: flags.Model = None,
    predictions: Predictions = None,
    data: flags.Data = None,
    corpus: Corpus = None,
    validation_file: flags.ValidFile = None,
    test_file: flags.TestFile = None,
    text_column: flags.TextColumn = None,
    pair_column: flags.PairColumn = None,
    label_column: flags.LabelColumn = None,
    part: flags.Part = None,
    metric: flags.Metric = None,
    max_eval_samples: flags.MaxEvalSamples = None,
    strict: flags.Strict = None,
    cased: flags.Cased = None,
    max_length: flags.MaxLength = None,
    stride: flags.Stride = None,
    batch_size: flags.BatchSize = None,
    micro_tokens: flags.MicroTokens = None,
    seed: Seed = None,
    precision: flags.Precision = None,
    min_: Min = None,
    max_: Max = None,
    not_worse_than: NotWorseThan = None,
    inconclusive: Inconclusive = None,
    junit: Junit = None,
    output: flags.Output = None,
    recipe: flags.Recipe = None,
    set_: flags.Set = None,
    processes: flags.Processes = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Score a model as the task's official script does.

    Without --model it is the newest finished run of the task; a run without data named is scored on its own.

    mlm and blimp score a model as it was pretrained. `bertkit eval mlm --corpus FILE`: loss, perplexity and accuracy of masked
    words, and of pairs where the model has that head, in the shares of a pretraining. Words are masked whole and by the
    text alone, the same for every vocabulary, so nats per word and per character compare two of them; what pretrain says of
    its validation is near, and lower where it masks pieces (its default) and the model has learned to guess a word from its
    other pieces. `bertkit eval blimp --data FOLDER`: which of two sentences is likelier, each token masked in turn.

    --min and --max are in what the page shows: shares in points, losses and perplexities as they are.

    --not-worse-than draws the examples again and again, for both models alike (a paired bootstrap of the task's first
    figure, blimp's accuracy among them), and takes the 95 % interval of the difference: all of it at 0 or above: pass; all
    below 0, with six examples at least on which the two differ: fail; else inconclusive. --set gates.margin=0.5 allows a loss
    of half a point. mlm leaves no predictions that could be compared.
    """
    given = flags.given(*rows(DATA | GATES, locals()), *rows(PROBED, locals()))
    if task is not None and task.lower() in PROBES:
        return _probe(task.lower(), given, set_ or (), recipe, processes, quiet=quiet)
    for name in PROBED:
        if locals()[name] is not None:
            raise UsageError(f"{PROBED[name][1]} is for `bertkit eval mlm`.", where=PROBED[name][1], hint="Leave it away.")
    from bertkit.settings.commands import eval_settings

    settings = settings_of("eval", eval_settings, task, given, set_ or (), recipe)
    spread(processes)
    from bertkit.jobs.evaluate import evaluate as job  # slow, and not needed to refuse wrong settings

    perform("eval", lambda console: job(settings, console), quiet=quiet)


def _probe(
    name: str, given: Mapping[str, Entry], sets: Sequence[str], recipe: str | None, processes: str | None, *, quiet: bool
) -> None:
    """An evaluation of a pretrained model: settings of its own, nothing of a task's."""
    from bertkit.settings.layers import keys
    from bertkit.settings.probes import PROBE_SETTINGS

    kind = PROBE_SETTINGS[name]
    given = {("max_length" if key == "kind.max_length" else key): entry for key, entry in given.items()}
    if strange := {key: entry.where for key, entry in given.items() if key not in keys(kind)}:
        probe = PROBES[name]
        hint = f"It is `{probe.command}`."
        if "gates.not_worse_than" in strange:
            hint = f"It leaves no predictions to compare: --max {probe.primary}=VALUE holds a figure."
        raise UsageError(
            f"bertkit eval {name} takes no {', '.join(strange.values())}.", where=next(iter(strange.values())), hint=hint
        )
    settings = checked(kind, command="eval", flags=given, sets=sets, recipe=recipe)
    spread(processes)
    from bertkit.jobs.probes import run_probe

    perform("eval", lambda console: run_probe(settings, console), quiet=quiet)
