"""Trackers (TensorBoard, Weights & Biases …) through Accelerate; one that fails costs a warning, never the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bertkit.notices import say

if TYPE_CHECKING:
    from accelerate import Accelerator


class Trackers:
    """The trackers that ``make_accelerator(report_to=…)`` was given, on the main process; nothing on the others.

    Args:
        accelerator: Of the run.
        project: Under which name the trackers file it.
        config: Plain settings to show beside the curves.
    """

    def __init__(self, accelerator: Accelerator, project: str, config: Mapping[str, str | float | int | bool]) -> None:
        wanted = list(accelerator.log_with)
        self._working: list[Any] = []
        for each in wanted:
            # One by one, so that one that fails leaves the others; Accelerate starts all that it has each time.
            accelerator.log_with, accelerator.trackers = [each], []
            if _try(getattr(each, "name", str(each)), lambda: accelerator.init_trackers(project, dict(config))):
                self._working += accelerator.trackers
        accelerator.log_with, accelerator.trackers = wanted, list(self._working)

    def log(self, values: Mapping[str, float | int | None], step: int) -> None:
        """Sends the numbers that exist."""
        there = {name: value for name, value in values.items() if value is not None}
        self._each(lambda tracker: tracker.log(there, step=step))

    def close(self) -> None:
        """Lets the trackers finish their files."""
        self._each(lambda tracker: tracker.finish())

    def _each(self, work: Callable[[Any], object]) -> None:
        self._working = [each for each in self._working if _try(each.name, lambda each=each: work(each))]  # type: ignore[misc]


def _try(name: str, work: Callable[[], object]) -> bool:
    try:
        work()
    except Exception as error:
        say("tracker", f"The tracker {name} failed and is left out from here on: {type(error).__name__}: {error}")
        return False
    return True
