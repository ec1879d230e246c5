"""What a job hands back to the command line, to a notebook or to a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.notices import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one command.

    Attributes:
        state: ``finished``, ``stopped``, ``already finished`` or a word of the command's own.
        output: The folder or file that was written; None where nothing was.
        metrics: Figures under their fixed names, in the scale of metrics.json; None where a figure does not exist.
        extra: Further values for ``--json``, under the command's own names (they never hide the fixed ones).
        warnings: Notices beside those that the console heard.
    """

    state: str = "finished"
    output: Path | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Notice, ...] = ()
