"""The tree of errors: each says what is wrong, where it is and what to do, and carries the exit code of the command line.

BertkitError
├── UsageError          2   a command, flag or setting that cannot be right
│   ├── SettingsError   2   settings that are unknown, of a wrong type, or contradict one another
│   └── FolderError     2   an output folder that holds something else, or another run
├── InputError          3   bad input or a damaged file
│   ├── DataError       3   a text or task file
│   ├── ModelError      3   a model folder or a checkpoint's weights
│   └── CheckpointError 3   a checkpoint of a run that is cut, changed or incomplete
├── MissingError        4   a file, model, network or extra that is not there
├── ResourceError       5   memory, disk, a lock, a worker or a process
├── DivergedError       6   losses or gradients that stopped being numbers
├── GateError           7   a quality gate that was not met
└── Stopped           130   interrupted (143: terminated); a checkpoint was written
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class BertkitError(Exception):
    """Base of everything bertkit raises on purpose.

    Args:
        message: What is wrong, one sentence.
        where: File, line, byte, row, field or tensor it is about.
        hint: What to do, preferably as a full command.
    """

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "bug"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.told: Mapping[str, Any] = {}

    def telling(self, told: Mapping[str, Any]) -> Self:
        """The same error, with what the command found nevertheless: ``--json`` gives it beside the error."""
        self.told = told
        return self

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders by pickle, which would call the class without its keywords.
        return (_rebuild, (type(self), self.message, self.where, self.hint))

    def __str__(self) -> str:
        parts = [self.message]
        if self.where:
            parts.append(f"({self.where})")
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts)


def _rebuild(cls: type[BertkitError], message: str, where: str | None, hint: str | None) -> BertkitError:
    return cls(message, where=where, hint=hint)


class UsageError(BertkitError):
    exit_code = 2
    kind = "usage"


class SettingsError(UsageError):
    kind = "settings"


class FolderError(UsageError):
    kind = "folder"


class InputError(BertkitError):
    exit_code = 3
    kind = "input"


class DataError(InputError):
    kind = "data"


class ModelError(InputError):
    kind = "model"


class CheckpointError(InputError):
    kind = "checkpoint"


class MissingError(BertkitError):
    exit_code = 4
    kind = "missing"


class ResourceError(BertkitError):
    exit_code = 5
    kind = "resource"


class DivergedError(BertkitError):
    exit_code = 6
    kind = "diverged"


class GateError(BertkitError):
    exit_code = 7
    kind = "gate"


class Stopped(BertkitError):
    """A signal asked the run to stop: SIGINT gives 130, SIGTERM 143."""

    exit_code = 130
    kind = "interrupted"


class Terminated(Stopped):
    exit_code = 143
    kind = "terminated"


def nearest(name: str, choices: object) -> str:
    """Says which known names resemble ``name``: ``" Did you mean 'x'?"``, or ``""`` where none does."""
    import difflib

    known = {str(choice).casefold(): str(choice) for choice in choices}  # type: ignore[attr-defined]
    close = difflib.get_close_matches(name.casefold(), known, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(known[folded]) for folded in close)}?" if close else ""
