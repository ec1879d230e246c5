"""Any exception -> the one error that is told: bertkit's own as they are, wrong usage, resources, and bugs."""

from __future__ import annotations

import errno
import os
import re
from typing import Any

from bertkit.errors import BertkitError, MissingError, ResourceError, Stopped, Terminated, UsageError, nearest

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NO_SUCH_PLACE = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EINVAL}
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


def traceback_wanted() -> bool:
    """Whether ``BERTKIT_DEBUG=1`` asks for tracebacks."""
    return os.environ.get("BERTKIT_DEBUG", "") not in ("", "0")


def as_error(failure: BaseException) -> BertkitError:
    """The error to tell for any exception, with the exit code that it gives."""
    if isinstance(failure, BertkitError):
        return failure
    if isinstance(failure, KeyboardInterrupt) or type(failure).__name__ == "StopNow":
        return Terminated("Terminated.") if getattr(failure, "exit_code", 130) == 143 else Stopped("Interrupted.")
    # Typer's own classes moved between its versions: usage errors are known by what they can do.
    if hasattr(failure, "format_message") and hasattr(failure, "exit_code"):
        return usage(failure)
    if type(failure).__name__ == "Abort":
        return Stopped("Interrupted.")
    if _out_of_memory(failure):
        return ResourceError(
            "Memory ran out." + _detail(failure), hint="Try a smaller --micro-tokens, --batch-size or --max-length."
        )
    if isinstance(failure, OSError) and (known := _system(failure)) is not None:
        return known
    return BertkitError(
        f"This is a bug in bertkit: {type(failure).__name__}: {_first_line(failure)}",
        hint="Set BERTKIT_DEBUG=1 for the traceback.",
    )


def _out_of_memory(failure: BaseException) -> bool:
    if isinstance(failure, MemoryError) or type(failure).__name__ == "OutOfMemoryError":
        return True
    # torch's allocator on a CPU says so in a plain RuntimeError.
    return isinstance(failure, RuntimeError) and any(
        words in str(failure) for words in ("can't allocate memory", "not enough memory")
    )


def _system(failure: OSError) -> BertkitError | None:
    where = None if failure.filename is None else os.fsdecode(failure.filename)
    if failure.errno in _FULL:
        hint = "Free some space and run the command again."
        return ResourceError("The disk is full (or a quota is used up).", where=where, hint=hint)
    if failure.errno == errno.EIO:
        return ResourceError("The disk reports an input/output error.", where=where)
    if failure.errno in _DENIED and where is not None:
        return ResourceError(f"{failure.strerror}.", where=where, hint="Choose a place that you may read and write.")
    if failure.errno in _NO_SUCH_PLACE and where is not None:
        return UsageError(f"{failure.strerror}.", where=where, hint="Choose another place.")
    if failure.errno in _EXHAUSTED:
        return ResourceError(f"The machine gives no more: {failure.strerror}.", where=where)
    if failure.errno == errno.ENOENT and where is not None:
        return MissingError("There is no such file or folder.", where=where)
    return None


def usage(failure: Any) -> UsageError:
    """A usage error of the flags' library, with the nearest right names of its command."""
    context = getattr(failure, "ctx", None)
    path = getattr(context, "command_path", "bertkit")
    message, hint = _first_line(failure), f"`{path} --help` lists what it takes."
    command = getattr(context, "command", None)
    option = getattr(failure, "option_name", None)
    if option and "No such option" in message:
        known = [name for parameter in getattr(command, "params", ()) for name in (*parameter.opts, *parameter.secondary_opts)]
        return UsageError(f"There is no flag {option}.{nearest(option, known)}", where=path, hint=hint)
    wrong = re.match(r"No such command ['\"](.+?)['\"]", message)
    if wrong is not None and command is not None:
        known = list(command.list_commands(context))
        return UsageError(f"There is no command {wrong[1]!r}.{nearest(wrong[1], known)}", where=path, hint=hint)
    if "unexpected extra argument" in message and "--corpus" in {
        name for each in getattr(command, "params", ()) for name in each.opts
    }:
        hint = "Each text has its own --corpus; a pattern stands in quotes: --corpus 'folder/*.txt'."
    return UsageError(message, where=path, hint=hint)


def _first_line(failure: Any) -> str:
    text = failure.format_message() if hasattr(failure, "format_message") else str(failure)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return " ".join(lines[:3])[:500] if lines else type(failure).__name__


def _detail(failure: BaseException) -> str:
    return f" {_first_line(failure)}" if str(failure) else ""
