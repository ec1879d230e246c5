"""The kind ``choice``: which of several candidates goes with a context (SWAG, and people's own questions with choices).

In come :class:`ChoiceRow` and a score a candidate, out go the chosen candidates' places, from 0, and accuracy. The layout of
sequences is ``choice_examples``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertkit.errors import DataError, ModelError, UsageError
from bertkit.labelled.choices import choice_records, read_choices, stream_choices
from bertkit.labelled.columns import Columns
from bertkit.labelled.rows import ChoiceRow, RowReport
from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.classification import accuracy
from bertkit.notices import say
from bertkit.tasks.choice_examples import ChoiceBatch, ChoiceExample, collate_choices, encode_choices
from bertkit.tasks.detail import Detail, Wrong, surest_first
from bertkit.tasks.examples import Encoded
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.matching import is_generic
from bertkit.tasks.prediction import Prediction, Scores

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece
    from bertkit.tasks.task import Task


class ChoiceSettings(KindSettings):
    """Settings of ``choice``; the length is that of one candidate with its context."""


class Choice:
    """Candidates of a context; the protocol is :class:`bertkit.tasks.kinds.Kind`."""

    name: ClassVar[str] = "choice"
    head: ClassVar[str] = "choice"
    settings: ClassVar[type[KindSettings]] = ChoiceSettings

    def read(self, path: Path, task: Task, *, strict: bool = False) -> tuple[list[ChoiceRow], RowReport]:
        """Rows of a table; see :func:`bertkit.labelled.choices.read_choices`."""
        return read_choices(path, task.columns or Columns())

    def stream(self, path: Path, task: Task, report: RowReport, *, strict: bool = False) -> Iterator[ChoiceRow]:
        """The same one by one; see :func:`bertkit.labelled.choices.stream_choices`."""
        return stream_choices(path, task.columns or Columns(), report)

    def from_records(self, records: Iterable[Mapping[str, Any]], task: Task, *, source: str) -> tuple[list[ChoiceRow], RowReport]:
        """Rows of hub data."""
        return choice_records(records, task.columns or Columns(), source=source)

    def has_gold(self, rows: Sequence[ChoiceRow]) -> bool:
        """Has any row a label?"""
        return any(row.label is not None for row in rows)

    def texts(self, row: ChoiceRow) -> str:
        """The context, if there is one: all that is asked of it stays on one side of a split."""
        return row.context if row.context.strip() else row.question or "\t".join(row.candidates)

    def labels(self, rows: Sequence[ChoiceRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool) -> Labels:
        """No names: the head has one output, a candidate's score.

        A regression's head has the same shape and another meaning, and its model names the one output.

        Raises:
            ModelError: Not for training, and the model is such a one (exit 3).
        """
        other = model_labels is not None and len(model_labels) == 1 and not is_generic(model_labels)
        if other and not for_training:
            raise ModelError(
                f"The model's one output is {(model_labels or [''])[0]!r}, which is no score of candidates.",
                where="id2label in config.json",
                hint=f"Use a model that was trained for choices, or train one with `bertkit finetune {task.name}`.",
            )
        if other:
            say("new-head", f"The model's one output is no score of candidates: training starts a new head for {task.name}.")
        return Labels(names=(), problem="", new_head=other)

    def encode(
        self,
        rows: Sequence[ChoiceRow],
        wordpiece: WordPiece,
        labels: Labels,
        settings: Any,
        *,
        segments: int = 2,
        for_training: bool = False,
    ) -> Encoded:
        """An example a row, with all of its candidates; see :func:`bertkit.tasks.choice_examples.encode_choices`."""
        return encode_choices(rows, wordpiece, max_length=settings.max_length, segments=segments, for_training=for_training)

    def collate(self, examples: Sequence[ChoiceExample]) -> ChoiceBatch:
        """One batch of whole questions; ``labels`` is None where one of them has none."""
        return collate_choices(examples)

    def decode(
        self,
        outputs: Sequence[np.ndarray],
        examples: Sequence[ChoiceExample],
        rows: Sequence[ChoiceRow],
        labels: Labels,
        settings: Any,
    ) -> list[Prediction]:
        """The candidate with the highest of ``[C]`` scores; of equal ones the first, which is said (``tied`` lists them).

        Candidates that are one sequence to the model have one score, whatever rounding made of it.

        Raises:
            DataError: A score is not a number (exit 3), with the row.
        """
        found = []
        for output, example in zip(outputs, examples, strict=True):
            row = rows[example.row]
            scores = np.asarray(output, dtype=np.float64)[example.firsts()]
            if not np.isfinite(scores).all():
                raise DataError("The model's output for this row is not a number.", where=str(row.place) or f"row {row.id}")
            found.append(_prediction(row, scores))
        if any("tied" in one.more for one in found):  # without a count: rows come in windows
            say("ties", "Some rows have several candidates with the highest score: the first is taken, and `tied` lists them.")
        return found

    def score(
        self, predictions: Sequence[Prediction], rows: Sequence[ChoiceRow], task: Task, labels: Labels, *, seed: int = 0
    ) -> Scores:
        """Accuracy.

        Raises:
            DataError: Nothing to score, or a row without gold (exit 3), with its place.
        """
        if not predictions:
            raise DataError("There is nothing to score: the set is empty.")
        for one, row in zip(predictions, rows, strict=True):
            if one.gold is None:
                raise DataError("This row has no label to be scored against.", where=str(row.place) or f"row {row.id}")
        return Scores(
            values={"accuracy": accuracy([one.gold for one in predictions], [one.value for one in predictions])},
            primary=task.primary,
            examples=len(predictions),
            interval=self.resampled(predictions, rows, task, labels).interval(seed=seed),
        )

    def resampled(self, predictions: Sequence[Prediction], rows: Sequence[ChoiceRow], task: Task, labels: Labels) -> Resampled:
        """Accuracy as a function of how often each row is drawn."""
        return Resampled.of_mean(np.array([one.value == one.gold for one in predictions]))

    def detail(self, predictions: Sequence[Prediction], rows: Sequence[ChoiceRow], labels: Labels) -> Detail:
        """The wrong answers, the surest first: places of candidates are no classes that could be taken for one another."""
        return Detail(wrong=surest_first(_wrong(predictions, rows)))

    def golds(self, rows: Sequence[ChoiceRow], labels: Labels) -> list[Any]:
        """The right candidates' places, from 0."""
        return [row.label for row in rows]

    def official_files(self, task: Task, part: str) -> tuple[str, ...]:
        """None: there is no official file."""
        return ()

    def write_official(
        self, folder: Path, predictions: Iterable[Prediction], rows: Sequence[ChoiceRow], task: Task, part: str
    ) -> list[Path]:
        """None: there is no official file."""
        return []

    def read_official(self, path: Path, rows: Sequence[ChoiceRow], task: Task, labels: Labels) -> list[Prediction]:
        """There is no official file.

        Raises:
            UsageError: Always (exit 2), with the form that is read.
        """
        raise UsageError(
            f"There is no official file of predictions for {task.name}.",
            where=str(path),
            hint='Give a file that ends in .jsonl: {"id": "0", "gold": null, "prediction": 2, "score": null} on each line.',
        )


def _prediction(row: ChoiceRow, scores: np.ndarray) -> Prediction:
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    best = int(scores.argmax())
    more: dict[str, Any] = {"candidate": row.candidates[best], "probabilities": [float(share) for share in shares]}
    tied = np.flatnonzero(scores == scores[best]).tolist()
    return Prediction(
        id=row.id,
        value=best,
        score=float(shares[best]),
        gold=row.label,
        more=more | ({"tied": tied} if len(tied) > 1 else {}),
    )


def _wrong(predictions: Sequence[Prediction], rows: Sequence[ChoiceRow]) -> Iterator[Wrong]:
    for one, row in zip(predictions, rows, strict=True):
        if one.value == one.gold:
            continue
        right, chosen = (_candidate(row, place) for place in (one.gold, one.value))
        texts = {"context": row.context, "question": row.question, "right": right, "chosen": chosen}
        said = f"{right}, predicted {chosen}"
        yield Wrong(id=one.id, texts=texts, gold=one.gold, prediction=one.value, said=said, sure=one.score)


def _candidate(row: ChoiceRow, place: Any) -> str:
    """The text at a place; a system of anybody's may have named one that is not there."""
    return row.candidates[place] if isinstance(place, int) and 0 <= place < len(row.candidates) else f"no candidate ({place})"
