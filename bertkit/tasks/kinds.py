"""What a kind of task is (a text's label, a word's tag, an answer's span): the protocol its file fulfils and its values.

In come rows and a tokenizer, out go examples; in come a head's outputs, out go predictions and scores. A kind knows its
labels and its arithmetic, never a file's folder, an optimizer or a device.

Shapes: n tokens of one example, K labels, S sequences of a batch, T tokens of a batch, N rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from bertkit.errors import SettingsError
from bertkit.fields import Settings
from bertkit.labelled.rows import RowReport
from bertkit.metrics.bootstrap import Resampled
from bertkit.packed import PackedSequences

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a run, in the order of the head's outputs.

    Attributes:
        names: K names; empty where the head has none to name (spans); one for a regression.
        problem: ``single_label_classification``, ``multi_label_classification``, ``regression`` or ``""``, as config.json's
            ``problem_type`` has them.
        new_head: True where the model's head cannot serve and training starts a new one.
        positive: The name that binary F1 counts, or None.
    """

    names: tuple[str, ...]
    problem: str = "single_label_classification"
    new_head: bool = False
    positive: str | None = None

    @property
    def outputs(self) -> int:
        """K, the head's outputs."""
        return len(self.names)

    def number(self, name: str) -> int | None:
        """The output of a name, without regard to case; None where there is none."""
        folded = name.casefold()
        return next((i for i, known in enumerate(self.names) if known.casefold() == folded), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One sequence for the model, or several that go together; kinds subclass it with what they train on.

    Attributes:
        row: Which row it comes from; several windows may share one.
        ids: ``[n]`` int32, special tokens included; of several sequences one behind another.
        types: ``[n]`` int32, segments.
    """

    row: int
    ids: np.ndarray
    types: np.ndarray

    @property
    def length(self) -> int:
        """n, its tokens."""
        return len(self.ids)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The tokens of each of its sequences, n in all."""
        return (len(self.ids),)


@dataclass(slots=True)
class Coverage:
    """What the settings put out of reach, for the line that every evaluation says.

    Attributes:
        rows: Rows encoded.
        examples: Sequences made of them.
        cut_rows: Rows that lost tokens to ``max_length``.
        cut_tokens: Tokens lost.
        emptied: Rows with a text of which the tokenizer leaves nothing.
        skipped: Training rows left out.
        unreachable: Golds that no output can give (answers outside every window, words that the tokenizer deletes).
        words: Words to be tagged; 0 where the task tags none.
        deleted_words: Those that no piece stands for.
        unknown_words: Those of which the vocabulary has no piece.
        ceilings: The score that a perfect model could still get, by metric name, where that is below the top.
        notes: Sentences of the kind's own.
    """

    rows: int = 0
    examples: int = 0
    cut_rows: int = 0
    cut_tokens: int = 0
    emptied: int = 0
    skipped: int = 0
    unreachable: int = 0
    words: int = 0
    deleted_words: int = 0
    unknown_words: int = 0
    ceilings: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Sentences for people; empty where nothing is out of reach."""
        said = []
        if self.cut_rows:
            said.append(
                f"{self.cut_rows} of {self.rows} texts were cut to the length, {self.cut_tokens} tokens lost; raise --max-length."
            )
        if self.emptied:
            said.append(f"{self.emptied} of {self.rows} texts have no token that the tokenizer keeps.")
        if self.skipped:
            said.append(f"{self.skipped} of {self.rows} rows were left out of training.")
        if self.unreachable:
            scale = 1 if "exact" in self.ceilings else 100  # SQuAD's are points already
            best = ", ".join(f"{name} {scale * value:.2f}" for name, value in self.ceilings.items())
            said.append(
                f"{self.unreachable} gold labels are out of reach{f'; a perfect model could get {best}' if best else ''}."
            )
        if self.deleted_words:
            said.append(f"{self.deleted_words} words are deleted by the tokenizer and get the tag O.")
        if self.unknown_words:
            said.append(f"{self.unknown_words} of {self.words} words are [UNK]: the vocabulary has no piece of them.")
        return said + self.notes

    def facts(self) -> dict[str, Any]:
        """The counts as metrics.json has them under ``coverage``; ceilings in the scale of its figures."""
        names: tuple[str, ...] = ("rows", "cut_rows", "cut_tokens", "emptied", "unreachable")
        names += ("words", "deleted_words", "unknown_words") if self.words else ()
        return {name: getattr(self, name) for name in names} | {"ceilings": dict(self.ceilings)}

    def add(self, more: Coverage) -> None:
        """Counts further rows. What is out of reach can be told of all rows together alone, and falls away."""
        for name in (
            "rows",
            "examples",
            "cut_rows",
            "cut_tokens",
            "emptied",
            "skipped",
            "words",
            "deleted_words",
            "unknown_words",
        ):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.unreachable, self.ceilings, self.notes = 0, {}, []


@dataclass(frozen=True, slots=True)
class Encoded:
    """Examples in the order of their rows, and what the settings put out of reach."""

    examples: list[Any]
    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the model says of one row.

    Attributes:
        id: The row's id.
        value: A label name, number, list of names or tags, or an answer's text; JSON's own types.
        score: The model's own score of it (a probability, or a sum of logits for spans); None where it has none.
        gold: The row's gold in the form of ``value`` (a list of texts for spans); None where it has none.
        more: Further facts under fixed names (probabilities by label, n-best, null odds, …).
    """

    id: str
    value: Any
    score: float | None = None
    gold: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Figures of one part: fractions under fixed keys (SQuAD's ``exact`` and ``f1`` are 0–100), None where undefined.

    Attributes:
        values: By name.
        primary: The name that decides.
        examples: N, the rows scored.
        interval: The 95 % bootstrap interval of the primary figure, or None where it is undefined.
    """

    values: dict[str, float | None]
    primary: str
    examples: int
    interval: tuple[float, float] | None = None

    @property
    def best(self) -> float | None:
        """The primary figure."""
        return self.values[self.primary]


class LabelledBatch(Protocol):
    """A batch for the loop: what it reads of any. Each kind's is a frozen dataclass with the labels that its head reads."""

    packed: PackedSequences

    @property
    def tokens(self) -> int:
        """T."""
        ...

    def counts(self) -> dict[str, int]:
        """Targets of each loss part, ``{"classification": S}``."""
        ...

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> LabelledBatch:
        """The same batch on ``device``."""
        ...


class Kind(Protocol):
    """One kind of task. Implementations are stateless; their files are ``classification.py``, ``tagging.py``, ``span.py`` …

    Attributes:
        name: As declarations call it.
        head: Its head's name in ``tasks.models``.
        settings: Its settings.
        beside: Official files that it writes beside the one that the task names.
    """

    name: ClassVar[str]
    head: ClassVar[str]
    settings: ClassVar[type[KindSettings]]
    beside: ClassVar[tuple[str, ...]]

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


def pack(examples: Sequence[Example]) -> PackedSequences:
    """Lays examples end to end, in the order given."""
    ids = np.concatenate([example.ids for example in examples])
    types = np.concatenate([example.types for example in examples])
    lengths = torch.tensor([size for example in examples for size in example.sizes], dtype=torch.int64)
    return PackedSequences.from_lengths(_long(ids), _long(types), lengths)


def _long(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
