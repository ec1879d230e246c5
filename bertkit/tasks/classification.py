"""The kind ``classification``: a text or a pair gets a label, several, or a number.

In come :class:`TextRow` and a head's ``[K]`` outputs a row, out go label names and the official figures. The arithmetic
is ``metrics``'; the matching of names ``matching``'s; the layout of sequences ``text_examples``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bertkit.errors import DataError
from bertkit.labelled.columns import Columns
from bertkit.labelled.glue import glue_rows
from bertkit.labelled.rows import Place, RowReport, TextRow
from bertkit.labelled.tables import columns_of, rows_from_records, table_rows
from bertkit.metrics.bootstrap import Resampled
from bertkit.notices import say
from bertkit.tasks import clue_files, glue_files
from bertkit.tasks.class_weights import weighted
from bertkit.tasks.detail import Detail
from bertkit.tasks.kinds import Encoded, KindSettings, Labels, Prediction, Scores
from bertkit.tasks.label_detail import label_detail
from bertkit.tasks.label_reach import tell_reach
from bertkit.tasks.label_resampling import resampled_labels
from bertkit.tasks.label_scores import score_labels
from bertkit.tasks.matching import in_order, is_generic, match_labels
from bertkit.tasks.task import Task
from bertkit.tasks.text_examples import ClassificationBatch, TextExample, collate_texts, encode_texts

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece

_POSITIVE = ("1", "true", "yes", "positive", "pos", "acceptable", "entailment")


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
    beside: ClassVar[tuple[str, ...]] = ()

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
            # A Parquet or CSV copy of the hub's data has the hub's column names.
            known = columns_of(path)
            if columns.text not in known and task.hub.columns.text in known:
                columns = replace(task.hub.columns, names=task.labels)
        return table_rows(path, columns, report)

    def from_line(self, number: int, line: str, task: Task) -> TextRow:
        """A text that was piped in, or two parted by a TAB."""
        text, tab, pair = line.partition("\t")
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
        """The labels by output: the task's own or, where it declares none, those of the rows (training) or the model.

        Raises:
            DataError: A row has no label or one that is not known (exit 3), with its place.
            ModelError: Not for training, and the model's labels are others (exit 3).
        """
        if task.problem == "regression":
            return _one_output(model_labels, task, for_training)
        names: Sequence[str] = task.labels or _names_of(rows, model_labels, for_training)
        if for_training and len(names) < 2:
            said = repr(names[0]) if names else "none"
            raise DataError(f"There must be two labels at least; the training rows have {said}.", where=_where(rows))
        new_head = for_training and model_labels is None
        if model_labels is not None:
            names, new_head = match_labels(names, model_labels, for_training=for_training, task=task.name)
        return Labels(names=tuple(names), problem=task.problem, new_head=new_head, positive=_positive(task, names))

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
        return [_prediction(row, value, labels) for row, value in zip(rows, values, strict=True)]

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
        return [_gold(row, labels) for row in rows]

    def write_official(
        self, folder: Path, predictions: Iterable[Prediction], rows: Sequence[TextRow], task: Task, part: str
    ) -> list[Path]:
        """The file for GLUE's or CLUE's server, for the parts that have one: see ``glue_files`` and ``clue_files``."""
        if part not in task.official:
            return []
        path = folder / task.official[part]
        if path.suffix == ".json":
            clue_files.write_answers(path, ((one.id, one.value) for one in predictions), task)
        else:
            glue_files.write_answers(path, (one.value for one in predictions), task)
        return [path]

    def read_official(self, path: Path, rows: Sequence[TextRow], task: Task, labels: Labels) -> list[Prediction]:
        """Predictions of any system from GLUE's file or CLUE's (``.json``), one a row.

        Raises:
            MissingError: There is no such file (exit 4).
            DataError: It is no such file, lacks a row, or names no label (exit 3), with the line.
        """
        read = (clue_files if path.suffix == ".json" else glue_files).read_answers(path, [row.id for row in rows])
        return [
            Prediction(id=row.id, value=_answer(text, labels, task, where), gold=_gold(row, labels))
            for row, (text, where) in zip(rows, read, strict=True)
        ]


def _answer(text: str, labels: Labels, task: Task, where: str) -> Any:
    """A prediction as it is spelled in a file: a name, or the number of a class in the task's order."""
    if labels.problem == "regression":
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not np.isfinite(number):
            raise DataError(f"The prediction {text!r} is no number.", where=where)
        return number
    names = [part for part in text.split(",") if part] if labels.problem == "multi_label_classification" else [text]
    found = []
    aliases = task.columns.aliases if task.columns else {}
    for name in (aliases.get(name, name) for name in names):
        known = labels.number(name)
        if known is not None:
            found.append(labels.names[known])
        elif name.isdecimal() and name.isascii() and int(name) < len(task.labels):
            found.append(task.labels[int(name)])
        else:
            raise DataError(f"The prediction {name!r} is none of {', '.join(labels.names[:20])}.", where=where)
    return found if labels.problem == "multi_label_classification" else found[0]


def _gold(row: TextRow, labels: Labels) -> Any:
    if row.label is None or labels.problem == "regression":
        return row.label
    spelled = _spelled(row, labels)
    return [name for name in labels.names if name in spelled] if labels.problem == "multi_label_classification" else spelled[0]


def _one_output(model_labels: Sequence[str] | None, task: Task, for_training: bool) -> Labels:
    name = model_labels[0] if model_labels else "score"
    new_head = for_training and (model_labels is None or len(model_labels) != 1)
    if model_labels is not None and len(model_labels) != 1:
        match_labels([name], model_labels, for_training=for_training, task=task.name)
    return Labels(names=(name,), problem="regression", new_head=new_head)


def _names_of(rows: Sequence[TextRow], model_labels: Sequence[str] | None, for_training: bool) -> Sequence[str]:
    """Names where the task declares none: of the training rows; otherwise the model's, unless those say nothing."""
    if for_training or model_labels is None or (is_generic(model_labels) and any(row.label is not None for row in rows)):
        for row in rows if for_training else ():
            if row.label is None:
                raise DataError("A training row has no label.", where=str(row.place))
        given = dict.fromkeys(row.label for row in rows if row.label is not None)
        names = in_order([name for label in given for name in (label if isinstance(label, tuple) else (str(label),))])
        if twice := next(
            (pair for pair in pairwise(sorted(names, key=str.casefold)) if pair[0].casefold() == pair[1].casefold()), None
        ):
            raise DataError(
                f"The labels {twice[0]!r} and {twice[1]!r} differ in case alone.", where=_where(rows), hint="Spell them alike."
            )
        if names:
            count = "1 label" if len(names) == 1 else f"{len(names)} labels"
            say("labels", f"{count}, taken as names of classes: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}.")
        return names
    return model_labels


def _positive(task: Task, names: Sequence[str]) -> str | None:
    """The label of binary F1: the task's or, of two labels of people's own, the one that says yes, else the second; said."""
    if task.positive is not None or task.labels or len(names) != 2 or task.problem != "single_label_classification":
        return task.positive
    chosen = next((name for name in names if name.casefold() in _POSITIVE), max(in_order(names), key=in_order(names).index))
    say("positive-label", f"f1 counts {chosen!r} as the positive label.")
    return chosen


def _prediction(row: TextRow, value: np.ndarray | None, labels: Labels) -> Prediction:
    if value is None or not np.isfinite(value).all():
        raise DataError("The model's output for this row is not a number.", where=str(row.place) or f"row {row.id}")
    if labels.problem == "regression":
        return Prediction(id=row.id, value=float(value[0]), gold=_gold(row, labels))
    if labels.problem == "multi_label_classification":
        shares = 1 / (1 + np.exp(-value))
        chosen = [name for name, share in zip(labels.names, shares, strict=True) if share > 0.5]
        return Prediction(id=row.id, value=chosen, gold=_gold(row, labels), more={"probabilities": _by_name(labels, shares)})
    shares = np.exp(value - value.max())
    shares /= shares.sum()
    best = int(value.argmax())
    return Prediction(
        id=row.id,
        value=labels.names[best],
        score=float(shares[best]),
        gold=_gold(row, labels),
        more={"probabilities": _by_name(labels, shares)},
    )


def _spelled(row: TextRow, labels: Labels) -> list[str]:
    """The row's labels in the head's spelling; one that it does not have stays as it is."""
    given = row.label if isinstance(row.label, tuple) else (str(row.label),)
    return [name if (number := labels.number(name)) is None else labels.names[number] for name in given]


def _by_name(labels: Labels, shares: np.ndarray) -> dict[str, float]:
    return {name: float(share) for name, share in zip(labels.names, shares, strict=True)}


def _where(rows: Sequence[TextRow]) -> str | None:
    return rows[0].place.file if rows else None
