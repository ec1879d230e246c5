"""Metrics of evaluate's that a run adds to the task's own figures, loaded and tried before the work begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertkit.jobs.console import Console
from bertkit.metrics.added import AddedMetric
from bertkit.tasks.added_figures import rehearse
from bertkit.tasks.data import TaskPart
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.training.peers import Peers


class AddedMetrics:
    """The metrics of a run; the first process alone keeps them, as it alone scores.

    Args:
        names: As ``--metric`` has them.
        console: Told what takes a while.
        peers: The processes of the run.

    Raises:
        MissingError: One cannot be had (exit 4).
        DataError: One cannot be loaded (exit 3).
    """

    def __init__(self, names: Sequence[str], console: Console, peers: Peers) -> None:
        self.metrics: list[AddedMetric] = []
        self._peers = peers
        if names:
            with console.progress("Loading metrics of evaluate's", None):
                peers.main_only(lambda: self.metrics.extend(map(AddedMetric, names)))

    def rehearse(self, kind: Kind, parts: Iterable[TaskPart], labels: Labels) -> None:
        """Refuses a metric that cannot score rows such as those of ``parts``.

        Raises:
            DataError: There is one (exit 3).
        """

        def score_the_gold() -> None:
            for part in parts:
                rehearse(self.metrics, kind, part.rows, labels)

        self._peers.main_only(score_the_gold)
