"""A model over the rows of one part of a task: examples, outputs, predictions, figures. Used by finetune, eval and predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from bertkit.batches.labelled import batches_by_tokens
from bertkit.jobs.start import Machine
from bertkit.tasks.data import TaskPart
from bertkit.tasks.examples import Encoded, LabelledBatch
from bertkit.tasks.kinds import Kind
from bertkit.tasks.labels import Labels
from bertkit.tasks.models import TaskModel
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.task import Task
from bertkit.training.evaluation import collect_outputs

_WINDOW = 4096  # examples sorted by length together: little padding, and a bounded wait for the first output


def scored_tokens(machine: Machine) -> int:
    """Tokens of a forward pass where nobody says otherwise.

    On a CPU what its layers hand on stays in the cache (6 MB of MiniLM's inner states); larger passes are slower.
    """
    return 2048 if machine.on_cpu else 2 * machine.micro_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPart:
    """A part of a task's data, ready for a model.

    Attributes:
        part: Its rows.
        encoded: Its examples.
    """

    part: TaskPart
    encoded: Encoded

    @property
    def tokens(self) -> int:
        """Tokens of all examples."""
        return sum(example.length for example in self.encoded.examples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """A model with what is needed to score parts with it.

    Attributes:
        micro_tokens: Tokens of a forward pass at most.
        batch_size: Sequences of a forward pass at most; None: as many as the tokens allow.
    """

    model: TaskModel
    kind: Kind
    labels: Labels
    settings: Any
    machine: Machine
    micro_tokens: int
    batch_size: int | None = None
    seed: int = 0

    def predictions(
        self,
        encoded: EncodedPart,
        *,
        stop: Callable[[], int] = lambda: 0,
        progress: Callable[..., None] | None = None,
    ) -> list[Prediction] | None:
        """One prediction a row, in row order, on the first process (an empty list on others); None where it was given up."""
        examples = encoded.encoded.examples
        found = collect_outputs(
            self.model,
            self._plan([example.length for example in examples]),
            lambda numbers: self.kind.collate([examples[number] for number in numbers]),
            self._outputs,
            self.machine.accelerator,
            self.machine.peers,
            stop=stop,
            progress=progress,
        )
        if found is None:
            return None
        if not self.machine.peers.main:
            return []
        return self.kind.decode(found, examples, encoded.part.rows, self.labels, self.settings)

    def _plan(self, lengths: Sequence[int]) -> list[list[int]]:
        """Batches as numbers of examples: short enough that each process has its share."""
        share = -(-sum(lengths) // self.machine.peers.world)
        batches = batches_by_tokens(lengths, min(self.micro_tokens, max(share, *lengths, 1)), window=_WINDOW)
        size = self.batch_size
        if size is None:
            return batches
        return [batch[start : start + size] for batch in batches for start in range(0, len(batch), size)]

    def _outputs(self, model: torch.nn.Module, batch: LabelledBatch) -> list[np.ndarray]:
        assert isinstance(model, TaskModel)
        values = model.outputs(batch.packed).float().cpu().numpy()
        choices: tuple[int, ...] | None = getattr(batch, "choices", None)  # candidates of each example, a sequence each
        if choices is not None:
            return np.split(values[:, 0], np.cumsum(choices)[:-1])
        if not model.on_tokens:
            return list(values)
        ends = batch.packed.boundaries.cpu().numpy()
        return [values[start:end] for start, end in pairwise(ends)]


def figures_of(scores: dict[str, Scores], task: Task) -> dict[str, Any]:
    """Figures of one or several parts: those of the first under their plain names, of the others with the part's behind.

    MNLI's ``accuracy`` is that of the matched part, ``accuracy_mismatched`` that of the other.
    """
    figures: dict[str, Any] = {}
    for place, (part, score) in enumerate(scores.items()):
        suffix = "" if place == 0 else "_" + part.partition("_")[2]
        figures |= {f"{name}{suffix}": value for name, value in score.values.items()}
        figures[f"examples{suffix}"] = score.examples
        if score.interval is not None:
            figures[f"{task.primary}{suffix}_interval"] = list(score.interval)
    return figures
