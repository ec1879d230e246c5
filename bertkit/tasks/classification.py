"""The kind ``classification``: a text or a pair gets a label, several, or a number.

In come :class:`TextRow` and a head's ``[K]`` outputs a row, out go label names and the official figures. The arithmetic
is ``metrics``'; the matching of names ``matching``'s; the layout of sequences ``text_examples``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bertkit.labelled.columns import Columns
from bertkit.labelled.glue import glue_rows
from bertkit.labelled.rows import Place, RowReport, TextRow
from bertkit.labelled.tables import columns_of, rows_from_records, table_rows
from bertkit.metrics.bootstrap import Resampled
from bertkit.notices import say
from bertkit.tasks import clue_files, glue_files
from bertkit.tasks.class_weights import weighted
from bertkit.tasks.detail import Detail
from bertkit.tasks.examples import Encoded
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.label_detail import label_detail
from bertkit.tasks.label_names import labels_of
from bertkit.tasks.label_predictions import answer_of, gold_of, prediction_of
from bertkit.tasks.label_reach import tell_reach
from bertkit.tasks.label_resampling import resampled_labels
from bertkit.tasks.label_scores import score_labels
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.task import Task
from bertkit.tasks.text_examples import ClassificationBatch, TextExample, collate_texts, encode_texts

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece


class ClassificationSettings(KindSettings):
    """Settings of ``classification``."""

    TRAINING: ClassVar[frozenset[str]] = frozenset({"class_weights"})

    windows: Literal["none", "mean", "max"] = Field(
        "none",
        description="What becomes of texts longer than max_length: none cuts them; mean or max: windows that overlap, whose "
        "outputs are averaged, or the highest of each label taken.",
    )
    stride: int | None = Field(
        None, ge=0, description="With windows: tokens that neighbouring ones share; unset: a quarter of their room."
    )
    class_weights: Literal["balanced"] | dict[str, Annotated[float, Field(ge=0)]] | None = Field(
        None, description="What labels count in the loss: balanced (rare ones more), or weights by name, {a: 1, b: 2.5}."
    )

    @model_validator(mode="after")
    def _strides_are_of_windows(self) -> Self:
        if self.stride is not None and self.windows == "none":
            raise ValueError("kind.stride is the overlap of windows, and there are none: give kind.windows=mean (or max), too")
        if self.stride is not None and self.stride >= self.max_length - 2:
            raise ValueError(
                f"kind.stride {self.stride} would leave windows no way forward: of max_length {self.max_length} a text has "
                f"{self.max_length - 2} tokens"
            )
        return self


class Classification:
    """Texts and pairs with labels; the protocol is :class:`bertkit.tasks.kinds.Kind`."""

    name: ClassVar[str] = "classification"
    head: ClassVar[str] = "classification"
    settings: ClassVar[type[KindSettings]] = ClassificationSettings

    def read(self, path: Path, task: Task, *, strict: bool = False) -> tuple[list[TextRow], RowReport]:
        """Rows of a GLUE file, or of a table by the ending of its name.

        Raises:
            UsageError: The ending is not known (exit 2).
            MissingError: The file is not there (exit 4).
            DataError: The file cannot be read (exit 3), with the row.
        """
        report = RowReport()
        return list(self.stream(path, task, report, strict=strict)), report

    def stream(self, path: Path, task: Task, report: RowReport, *, strict: bool = False) -> Iterator[TextRow]:
        """The same rows one after the other, while the file is read; ``report`` grows with them."""
        columns = task.columns or Columns()
        if columns.plain and path.suffix.lower() in (".tsv", ".txt"):
            return glue_rows(path, columns, report, strict=strict)
        if task.hub and task.hub.columns and path.exists():
            # A Parquet or CSV copy of the hub's data has the hub's column names: of the texts or (STS-B) of the label alone.
            known, hub = columns_of(path), task.hub.columns
            if hub.text in known and (columns.text not in known or (columns.label not in known and hub.label in known)):
                columns = replace(hub, names=task.labels)
        return table_rows(path, columns, report)

    def from_line(self, number: int, line: str, task: Task) -> TextRow:
        """A text that was piped in, or two parted by a TAB."""
        text, tab, pair = line.partition("\t")
        if not tab and task.columns is not None and task.columns.pair is not None:
            say(
                "one-text",
                "The task is of pairs, and not every line is two texts parted by a TAB: what is one is read alone.",
            )
        return TextRow(id=str(number - 1), text=text, pair=pair if tab else None, place=Place("stdin", number))

    def from_records(self, records: Iterable[Mapping[str, Any]], task: Task, *, source: str) -> tuple[list[TextRow], RowReport]:
        """Rows of hub data."""
        return rows_from_records(records, task.columns or Columns(), source)

    def has_gold(self, rows: Sequence[TextRow]) -> bool:
        """Has any row a label? A part in which no row has any of several is one without gold."""
        return any(row.label is not None and row.label != () for row in rows)

    def texts(self, row: TextRow) -> str:
        """Both texts."""
        return row.text if row.pair is None else f"{row.text}\t{row.pair}"

    def labels(self, rows: Sequence[TextRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool) -> Labels:
        """The labels by output: see :func:`bertkit.tasks.label_names.labels_of`."""
        return labels_of(rows, task, model_labels, for_training=for_training)

    def encode(
        self,
        rows: Sequence[TextRow],
        wordpiece: WordPiece,
        labels: Labels,
        settings: ClassificationSettings,
        *,
        segments: int = 2,
        for_training: bool = False,
    ) -> Encoded:
        """One sequence a row, or several windows: see :func:`bertkit.tasks.text_examples.encode_texts`."""
        encoded = encode_texts(
            rows,
            wordpiece,
            labels,
            max_length=settings.max_length,
            segments=segments,
            for_training=for_training,
            windowed=settings.windows != "none",
            overlap=settings.stride,
        )
        if for_training and settings.class_weights is not None:
            return Encoded(weighted(encoded.examples, labels, settings.class_weights), encoded.coverage)
        if not for_training:
            tell_reach(encoded, rows, labels)
        return encoded

    def collate(self, examples: Sequence[TextExample]) -> ClassificationBatch:
        """One batch; ``labels`` is None where one of its rows has none."""
        return collate_texts(examples)

    def decode(
        self,
        outputs: Sequence[np.ndarray],
        examples: Sequence[TextExample],
        rows: Sequence[TextRow],
        labels: Labels,
        settings: ClassificationSettings,
    ) -> list[Prediction]:
        """One prediction a row from ``[K]`` logits, pooled over its windows: the likeliest name, the names above a half, or the
        number itself.

        Raises:
            DataError: An output is not a number (exit 3), with the row.
        """
        found: list[list[np.ndarray]] = [[] for _ in rows]
        for output, example in zip(outputs, examples, strict=True):
            found[example.row].append(np.asarray(output, dtype=np.float64))
        pooled = np.max if settings.windows == "max" else np.mean
        values = [pooled(each, axis=0) if each else None for each in found]
        return [prediction_of(row, value, labels) for row, value in zip(rows, values, strict=True)]

    def score(
        self, predictions: Sequence[Prediction], rows: Sequence[TextRow], task: Task, labels: Labels, *, seed: int = 0
    ) -> Scores:
        """The task's figures: see :func:`bertkit.tasks.label_scores.score_labels`."""
        return score_labels(predictions, rows, task, labels, seed=seed)

    def resampled(self, predictions: Sequence[Prediction], rows: Sequence[TextRow], task: Task, labels: Labels) -> Resampled:
        """The primary figure: see :func:`bertkit.tasks.label_resampling.resampled_labels`."""
        return resampled_labels(predictions, task.primary, labels)

    def detail(self, predictions: Sequence[Prediction], rows: Sequence[TextRow], labels: Labels) -> Detail:
        """Classes, confusion matrix and wrong answers: see :func:`bertkit.tasks.label_detail.label_detail`."""
        return label_detail(predictions, rows, labels)

    def golds(self, rows: Sequence[TextRow], labels: Labels) -> list[Any]:
        """Names in the head's spelling, or numbers."""
        return [gold_of(row, labels) for row in rows]

    def official_files(self, task: Task, part: str) -> tuple[str, ...]:
        """The file for GLUE's or CLUE's server, for the parts that have one."""
        return (task.official[part],) if part in task.official else ()

    def write_official(
        self, folder: Path, predictions: Iterable[Prediction], rows: Sequence[TextRow], task: Task, part: str
    ) -> list[Path]:
        """That file: see ``glue_files`` and ``clue_files``."""
        paths = [folder / name for name in self.official_files(task, part)]
        for path in paths:
            if path.suffix == ".json":
                clue_files.write_answers(path, ((one.id, one.value) for one in predictions), task)
            else:
                glue_files.write_answers(path, (one.value for one in predictions), task)
        return paths

    def read_official(self, path: Path, rows: Sequence[TextRow], task: Task, labels: Labels) -> list[Prediction]:
        """Predictions of any system from GLUE's file or CLUE's (``.json``), one a row.

        Raises:
            MissingError: There is no such file (exit 4).
            DataError: It is no such file, lacks a row, or names no label (exit 3), with the line.
        """
        read = (clue_files if path.suffix == ".json" else glue_files).read_answers(path, [row.id for row in rows])
        return [
            Prediction(id=row.id, value=answer_of(text, labels, task, where), gold=gold_of(row, labels))
            for row, (text, where) in zip(rows, read, strict=True)
        ]
