"""Arguments in, an exit code out. Every failure is one message (or one JSON object), never a traceback unless asked for."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from bertkit.cli.failures import as_error, traceback_wanted
from bertkit.cli.session import SCHEMA, Passing, Session, opened
from bertkit.errors import BertkitError, GateError, InputError, MissingError, Stopped, UsageError


def run(argv: Sequence[str]) -> int:
    """Runs one command; prints what the two streams need; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII console shows what it can and never fails
    session, code = Session(argv), 0
    try:
        with opened(session), session.stop.installed():
            code = _attempt(session)
        session.stdout.flush()
        session.stderr.flush()
    except BrokenPipeError:  # the reader has seen enough (`| head`)
        _close_quietly()
        return code
    except OSError as failure:  # the last flush did not fit
        _close_quietly()
        return as_error(failure).exit_code
    return code


def _attempt(session: Session) -> int:
    try:
        code = _call(session)
    except BrokenPipeError:
        raise
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # Typer's way of saying so
            raise stop.__context__ from None
        return stop.code if isinstance(stop.code, int) else 1
    except BaseException as failure:
        if traceback_wanted():
            import traceback

            traceback.print_exc(file=session.stderr)
        cause = failure.failure if isinstance(failure, Passing) else failure
        if isinstance(cause, BrokenPipeError):
            raise cause from None
        error = as_error(cause)
        with contextlib.suppress(BrokenPipeError):  # nobody reads it; the exit code says it still
            _tell(session, error, error.exit_code)
        return error.exit_code
    if session.path is not None:
        print(session.path, file=session.stdout)
    if session.json:
        from bertkit import __version__

        empty: dict[str, object] = {"output": None, "metrics": {}, "warnings": [], "seconds": 0.0}
        shown = {"ok": True, "schema": SCHEMA, "version": __version__, "command": "help", "state": "finished", **empty}
        _print_object(session, session.report or shown)
    return code


def _call(session: Session) -> int:
    from bertkit.cli.app import app, program

    arguments = normalised(session.argv)
    words = [argument for argument in arguments if argument != "--json"]
    groups = [group.name for group in app.registered_groups]
    if not words or (len(words) == 1 and words[0] in groups):
        arguments = [*words, "--help"]
    # Under --json help and version go to stderr: stdout has the object alone.
    with contextlib.redirect_stdout(session.stderr) if session.json else contextlib.nullcontext():
        result = program()(args=arguments, prog_name="bertkit", standalone_mode=False)
    return result if isinstance(result, int) else 0


def normalised(argv: Sequence[str]) -> list[str]:
    """The arguments with ``--learning_rate`` as ``--learning-rate``; values, and all behind ``--``, as they are."""
    found: list[str] = []
    for number, argument in enumerate(argv):
        if argument == "--":
            return found + list(argv[number:])
        name, equals, value = argument.partition("=")
        found.append(name.replace("_", "-") + equals + value if name.startswith("--") else argument)
    return found


def _tell(session: Session, error: BertkitError, code: int) -> None:
    from bertkit.jobs.console import clean, is_first_process

    first = is_first_process()
    if session.json and first:
        facts = {"kind": error.kind, "message": error.message, "where": error.where, "hint": error.hint}
        _print_object(session, {**error.told, "ok": False, "schema": SCHEMA, "error": facts, "exit_code": code})
    # What every process finds alike the first alone says; what befalls one of them is said by that one.
    if not first and isinstance(error, (UsageError, InputError, MissingError, GateError, Stopped)):
        return
    where = f" ({error.where})" if error.where else ""
    speaker = "" if first else f"[process {os.environ.get('RANK')}] "
    opening, *details = error.message.rstrip().split("\n")
    print(clean("\n".join([f"{speaker}Error: {opening}{where}", *details])), file=session.stderr)
    if error.hint:
        print(clean(f"  {error.hint}"), file=session.stderr)


def _print_object(session: Session, report: object) -> None:
    from bertkit.jobs.console import is_first_process, to_json

    if is_first_process():
        print(to_json(report, stream=session.stdout), file=session.stdout, flush=True)


def _close_quietly() -> None:
    """Points stdout at nothing, so that Python's own last flush has nothing to complain of."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
