"""What becomes of an evaluation's verdicts: lines on the page, keys of ``--json``, a JUnit file, and exit code 7."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bertkit.errors import BertkitError, FolderError, GateError, Stopped
from bertkit.jobs.console import Console
from bertkit.jobs.junit import write_failed_junit, write_junit
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.verdict import Verdict
from bertkit.notices import say
from bertkit.training.peers import Peers


def judged(
    verdicts: Sequence[Verdict], outcome: Outcome, task: str, junit: str | None, console: Console, *, seconds: float
) -> Outcome:
    """Tells the verdicts of an evaluation that took ``seconds``, in the file ``junit`` too; the outcome then has them: ``gates``.

    Raises:
        GateError: One is not met (exit 7); it carries what the outcome has.
    """
    console.result()
    for verdict in verdicts:
        console.result(f"{verdict.outcome.upper()}  {verdict.message}")
        if verdict.outcome == "inconclusive" and verdict.met:
            say("inconclusive", f"Too few examples to tell whether the model is worse: {verdict.message}.")
    if junit is not None:
        figures = {name: value for name, value in outcome.metrics.items() if not isinstance(value, (list, Mapping))}
        write_junit(Path(junit), task, verdicts, figures, seconds)
        console.say(f"The gates are in {junit}")
    outcome = replace(outcome, extra={**outcome.extra, "gates": [verdict.facts() for verdict in verdicts]})
    missed = [verdict for verdict in verdicts if not verdict.met]
    if missed:
        count = "A gate was" if len(missed) == 1 else f"{len(missed)} of {len(verdicts)} gates were"
        lines = "".join(f"\n  - {verdict.message}" for verdict in missed)
        told = {"output": str(outcome.output), "metrics": dict(outcome.metrics), "warnings": console.warnings, **outcome.extra}
        raise GateError(f"{count} not met.{lines}", where=str(outcome.output)).telling(told)
    return outcome


@contextmanager
def reported(path: str | None, task: str, peers: Peers) -> Iterator[None]:
    """Inside, an error becomes a JUnit file too: without one a CI system would show the file of an older evaluation.

    Raises:
        FolderError: The file would be a folder (exit 2); nothing is scored.
    """
    if path is not None and Path(path).is_dir():
        raise FolderError("The gates go to a file, and this is a folder.", where=path, hint=f"--junit {path}/gates.xml")
    started = time.monotonic()
    try:
        yield
    except GateError:
        raise
    except BertkitError as error:
        if path is not None and peers.main and not isinstance(error, Stopped):
            write_failed_junit(Path(path), task, error, time.monotonic() - started)
        raise
