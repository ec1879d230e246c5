"""One call of the program: its streams, its signals, and what came out of it."""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import typer

from bertkit import __version__

if TYPE_CHECKING:
    from bertkit.fields import Settings
    from bertkit.jobs.console import Console
    from bertkit.jobs.outcome import Outcome

SCHEMA = 1
S = TypeVar("S", bound="Settings")
# A hub token, or a password within an address: the command line is recorded, and model cards are published.
_SECRET = re.compile(r"\bhf_[A-Za-z0-9]{8,}|(?<=://)[^/@\s]+(?=@)")


class Session:
    """What ``run`` knows and commands need.

    Attributes:
        json: Exactly one JSON object goes to stdout.
        quiet: Only the output's path goes to stdout.
        stdout: The real one; ``sys.stdout`` leads to stderr while a job works, so that no library's print mixes in.
        path: What ``-q`` prints.
        report: The JSON object of a command that came to its end.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        # Imported here, when a command runs: help needs neither.
        from bertkit.jobs.signals import Stop

        self.argv = list(argv)
        self.json = "--json" in self.argv
        self.quiet = False
        self.stdout: TextIO = sys.stdout
        self.stderr: TextIO = sys.stderr
        self.stop = Stop()
        self.started = time.monotonic()
        self.path: str | None = None
        self.report: dict[str, Any] | None = None

    @property
    def line(self) -> str:
        """The command line, as it could be typed again, without anything that looks like a secret."""
        return _SECRET.sub("***", shlex.join(["bertkit", *self.argv]))


class Passing(Exception):
    """Carries a failure of a job past Typer; ``failure`` is what to tell."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__(str(failure))
        self.failure = failure


_current: list[Session] = []


@contextlib.contextmanager
def opened(session: Session) -> Any:
    """Makes ``session`` the current one inside."""
    _current.append(session)
    try:
        yield session
    finally:
        _current.pop()


def spread(processes: str | None) -> None:
    """Starts the processes that ``--processes`` asks for, and ends this one with their exit code; returns where it is one.

    Raises:
        SystemExit: They have run.
        BertkitError: They cannot be started, or the first one was killed.
    """
    from bertkit.jobs.console import clean
    from bertkit.jobs.processes import start, wanted

    session = _current[-1]
    count = wanted(processes)
    if count > 1:
        raise SystemExit(start(session.argv, count, session.stop, lambda text: print(clean(text), file=session.stderr)))


def checked(model: type[S], *, command: str, sets: Sequence[str] | None = None, **layers: Any) -> S:
    """The command's checked settings (:func:`bertkit.settings.resolve.resolve`); ``--set help`` lists what there is instead.

    Raises:
        SystemExit: The list was printed.
        SettingsError: Something is wrong with the settings: all of it in one error (exit 2).
    """
    from bertkit.settings.resolve import resolve

    if sets and "help" in sets:
        perform(command, lambda console: _list_settings(model, layers.get("defaults"), console))
        raise typer.Exit
    return resolve(model, command=command, sets=sets or (), **layers)


def _list_settings(model: type[Settings], defaults: Mapping[str, Any] | None, console: Console) -> Outcome:
    from bertkit.jobs.outcome import Outcome
    from bertkit.settings.listing import listed

    found = list(listed(model, defaults))
    for setting in found:
        default = "" if setting.default in (None, ()) else f", {str(setting.default).lower()} unless given"
        console.result(f"{setting.key}  ({setting.takes}{default})")
        console.result(f"    {setting.description}")
    return Outcome(extra={"settings": [asdict(setting) for setting in found]})


def perform(command: str, job: Callable[[Console], Outcome], *, quiet: bool = False) -> None:
    """Runs a job with a console and keeps what it reports.

    With ``-q`` the output's path is printed and nothing else; what a job prints itself it prints through the console.
    """
    from bertkit.jobs.console import Console, clean

    session = _current[-1]
    session.quiet = quiet
    console = Console(
        quiet=quiet, json=session.json, stdout=session.stdout, stderr=session.stderr, stop=session.stop, line=session.line
    )
    with contextlib.redirect_stdout(session.stderr), console.hearing():
        try:
            outcome = job(console)
        except (KeyboardInterrupt, OSError, EOFError) as failure:  # Typer would make an exit of its own of these
            raise Passing(failure) from failure
    for notice in outcome.warnings:
        console.notice(notice)
    fixed = {
        "ok": True,
        "schema": SCHEMA,
        "version": __version__,
        "command": command,
        "state": outcome.state,
        "output": None if outcome.output is None else str(outcome.output),
        "metrics": dict(outcome.metrics),
        "warnings": console.warnings,
        "seconds": round(time.monotonic() - session.started, 3),
    }
    session.report = {**fixed, **{name: value for name, value in outcome.extra.items() if name not in fixed}}
    if quiet and not session.json and outcome.output is not None and console.first:
        session.path = clean(outcome.output)
