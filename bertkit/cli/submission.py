"""``bertkit predict glue --submission glue.zip``: what of predict's flags belongs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from bertkit.cli import flags
from bertkit.cli.session import checked, perform, spread
from bertkit.errors import UsageError

if TYPE_CHECKING:
    from bertkit.settings.reading import Entry

Submission = Annotated[
    str | None,
    flags.flag(
        "--submission", help="Of glue: the zip for its server, from a run of each task.", panel="Every command", metavar="FILE"
    ),
]
Runs = Annotated[
    str | None,
    flags.flag("--runs", help="Of glue: the folder of the runs (runs).", panel="Data and model", metavar="FOLDER"),
]
GLUE = "glue"
OWN = {"submission": ("submission", "--submission"), "runs": ("runs", "--runs")}


def submit(
    task: str | None, given: Mapping[str, Entry], sets: Sequence[str], recipe: str | None, processes: str | None, *, quiet: bool
) -> None:
    """Makes the submission.

    Raises:
        UsageError: Another task than glue, no archive named, or a flag that a submission does not have (exit 2).
    """
    from bertkit.settings.layers import keys
    from bertkit.settings.submission import SubmissionSettings

    command = f"bertkit predict {GLUE} --submission glue.zip --runs runs --data FOLDER"
    if task is None or task.lower() != GLUE:
        where = next(flag for key, flag in OWN.values() if key in given)
        raise UsageError(f"{where} is for `bertkit predict glue`.", where=where, hint=f"The submission is made by `{command}`.")
    if "submission" not in given and not any(word.startswith("submission=") for word in sets) and recipe is None:
        raise UsageError("predict glue makes the zip for GLUE's server.", where="--submission", hint=f"`{command}`.")
    if strange := [entry.where for key, entry in given.items() if key not in keys(SubmissionSettings)]:
        raise UsageError(f"bertkit predict glue takes no {', '.join(strange)}.", where=strange[0], hint=f"It is `{command}`.")
    settings = checked(SubmissionSettings, command="predict", flags=given, sets=sets, recipe=recipe)
    spread(processes)
    from bertkit.jobs.submission import submit as job  # slow, and not needed to refuse wrong settings

    perform("predict", lambda console: job(settings, console), quiet=quiet)
