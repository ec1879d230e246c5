"""What a kind of task is (a text's label, a word's tag, an answer's span): the protocol its file fulfils.

In come rows and a tokenizer, out go examples; in come a head's outputs, out go predictions and scores. A kind knows its
labels and its arithmetic, never a file's folder, an optimizer or a device.

Shapes: n tokens of one example, K labels, C candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from bertkit.errors import SettingsError
from bertkit.fields import Settings
from bertkit.labelled.rows import RowReport
from bertkit.metrics.bootstrap import Resampled
from bertkit.tasks.examples import Encoded, LabelledBatch
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece
    from bertkit.tasks.detail import Detail
    from bertkit.tasks.task import Task


class KindSettings(Settings):
    """What every kind has: the room of a sequence. A kind adds its own fields in a subclass.

    Attributes:
        TRAINING: The names of those that nothing but a training heeds.
    """

    TRAINING: ClassVar[frozenset[str]] = frozenset()

    max_length: int = Field(128, ge=3, description="Tokens of a sequence at most, special tokens included.")

    def tuned(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that figures of a validation part tune, for predictions; a kind that has such says which."""
        return {}

    def check_positions(self, positions: int) -> None:
        """Refuses a length that the model has no positions for.

        Raises:
            SettingsError: ``max_length`` is above ``positions``; both are named.
        """
        if self.max_length > positions:
            raise SettingsError(
                f"max_length is {self.max_length}, but the model has {positions} positions.",
                where="max_length",
                hint=f"Use --max-length {positions} or less.",
            )


class Kind(Protocol):
    """One kind of task. Implementations are stateless; their files are ``classification.py``, ``tagging.py``, ``span.py`` …

    Attributes:
        name: As declarations call it.
        head: Its head's name in ``tasks.models``.
        settings: Its settings.
    """

    name: ClassVar[str]
    head: ClassVar[str]
    settings: ClassVar[type[KindSettings]]

    def read(self, path: Path, task: Task, *, strict: bool = False) -> tuple[list[Any], RowReport]:
        """Rows of one file in the task's own format."""
        ...

    def stream(self, path: Path, task: Task, report: RowReport, *, strict: bool = False) -> Iterator[Any]:
        """The same row by row, for predictions: a file of any length in the memory of a row; ``report`` grows with them."""
        ...

    def from_records(self, records: Iterable[Mapping[str, Any]], task: Task, *, source: str) -> tuple[list[Any], RowReport]:
        """Rows of hub data; ``source`` names it in errors. Integer labels arrive as their names already."""
        ...

    def has_gold(self, rows: Sequence[Any]) -> bool:
        """Are there labels to train on or to score? Test parts have none."""
        ...

    def texts(self, row: Any) -> str:
        """The row's words in one string: equal texts stay on one side of a split."""
        ...

    def labels(self, rows: Sequence[Any], task: Task, model_labels: Sequence[str] | None, *, for_training: bool) -> Labels:
        """Names in the head's order, from the task, else the training rows, matched by name against the model's.

        Raises:
            DataError: Labels that the task or model does not have (exit 3), with the row.
            ModelError: Not for training, and the model's labels are others.
        """
        ...

    def encode(
        self,
        rows: Sequence[Any],
        wordpiece: WordPiece,
        labels: Labels,
        settings: Any,
        *,
        segments: int = 2,
        for_training: bool = False,
    ) -> Encoded:
        """Examples in row order. With ``segments`` 1 (type_vocab_size) every segment is 0."""
        ...

    def collate(self, examples: Sequence[Any]) -> LabelledBatch:
        """One batch, in the order given. Without gold its label tensors are None."""
        ...

    def decode(
        self, outputs: Sequence[np.ndarray], examples: Sequence[Any], rows: Sequence[Any], labels: Labels, settings: Any
    ) -> list[Prediction]:
        """One prediction a row, in row order. ``outputs[i]`` is float32 of example i: ``[K]``, ``[n, K]`` for heads on tokens, or
        ``[C]`` of C candidates.

        Raises:
            DataError: An output is not a number (exit 3), naming the row.
        """
        ...

    def score(
        self, predictions: Sequence[Prediction], rows: Sequence[Any], task: Task, labels: Labels, *, seed: int = 0
    ) -> Scores:
        """The official figures, with the interval of the primary one.

        Raises:
            DataError: Nothing to score (exit 3).
        """
        ...

    def resampled(self, predictions: Sequence[Prediction], rows: Sequence[Any], task: Task, labels: Labels) -> Resampled:
        """The primary figure as a function of how often each row with gold is drawn; one prediction a row, in row order."""
        ...

    def detail(self, predictions: Sequence[Prediction], rows: Sequence[Any], labels: Labels) -> Detail:
        """Each class's figures, what is taken for what, and the wrong answers; one prediction a row, in row order."""
        ...

    def golds(self, rows: Sequence[Any], labels: Labels) -> list[Any]:
        """Each row's gold in the form of a prediction's value (a list of texts for spans); None where it has none."""
        ...

    def official_files(self, task: Task, part: str) -> tuple[str, ...]:
        """The names that :meth:`write_official` may write for a part: the task's own name first, where there is one."""
        ...

    def write_official(
        self, folder: Path, predictions: Iterable[Prediction], rows: Sequence[Any], task: Task, part: str
    ) -> list[Path]:
        """Prediction files in the official scorer's format, from predictions that may come one by one."""
        ...

    def read_official(self, path: Path, rows: Sequence[Any], task: Task, labels: Labels) -> list[Prediction]:
        """Predictions of any system from a file in the official scorer's format, one a row, in row order.

        Raises:
            MissingError: There is no such file (exit 4).
            DataError: The file is of no such form, or does not fit the rows (exit 3).
        """
        ...


@runtime_checkable
class JudgesByRows(Protocol):
    """A kind of which the rows decide what figures there are."""

    def judged(self, task: Task, rows: Sequence[Any]) -> Task:
        """The task with the figures that such rows have, which is said where they are others than it declares."""
        ...


@runtime_checkable
class HandsGoldOn(Protocol):
    """A kind whose labels are read off the rows' gold, which may be anything where nobody scores it."""

    def labels_unscored(self, rows: Sequence[Any], task: Task, model_labels: Sequence[str] | None) -> Labels:
        """The labels of a model that predicts such rows; gold that it does not have is no error."""
        ...
