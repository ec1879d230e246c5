"""Trackers (TensorBoard, Weights & Biases …) through Accelerate; one that fails costs a warning, never the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bertkit.notices import say

if TYPE_CHECKING:
    from accelerate import Accelerator


class Trackers:
    """The trackers that ``make_accelerator(report_to=…)`` was given.

    Args:
        accelerator: Of the run.
        project: Under which name the trackers file it.
        config: Plain settings to show beside the curves.
    """

    def __init__(self, accelerator: Accelerator, project: str, config: Mapping[str, str | float | int | bool]) -> None:
        self._accelerator = accelerator
        self._working = bool(accelerator.log_with)
        self._try(lambda: accelerator.init_trackers(project, dict(config)))

    def log(self, values: Mapping[str, float | int | None], step: int) -> None:
        """Sends the numbers that exist; on the main process alone."""
        self._try(lambda: self._accelerator.log({name: value for name, value in values.items() if value is not None}, step=step))

    def close(self) -> None:
        """Lets the trackers finish their files."""
        for tracker in self._accelerator.trackers:
            self._try(tracker.finish)

    def _try(self, work: Callable[[], object]) -> None:
        if not self._working:
            return
        try:
            work()
        except Exception as error:
            self._working = False
            say("tracker", f"A tracker failed and is left out from here on: {type(error).__name__}: {error}")
