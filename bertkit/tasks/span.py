"""The span kind: SQuAD 1.1 and 2.0 and files like them, from question rows to answers, official files and scores.

In come :class:`QuestionRow` and a head's two logits a token, out go answers that are ``context[a:b]``, letter for letter, and
the official figures. ``span_examples`` makes the windows, ``span_decoding`` chooses spans, ``metrics.squad`` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertkit.errors import DataError
from bertkit.labelled.questions import QUESTIONS, question_records, read_questions, stream_questions
from bertkit.labelled.rows import QuestionRow, RowReport
from bertkit.labelled.squad import read_predictions, squad_records, writing_json
from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.squad import QuestionScores, question_scores, scores_by_question, squad_scores
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.tasks.detail import Detail
from bertkit.tasks.examples import Encoded, pack
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.span_decoding import decode_question
from bertkit.tasks.span_detail import span_detail
from bertkit.tasks.span_examples import SpanExample, SpanSettings, encode_questions, may_be_null

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece
    from bertkit.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanBatch:
    """Windows for the span head.

    Attributes:
        packed: S windows of T tokens in all.
        starts: ``[S]`` int64, the answer's first token as a place in its own sequence; 0 (``[CLS]``) where there is none; None
            without gold.
        ends: ``[S]`` int64, its last token, in the same way.
    """

    packed: PackedSequences
    starts: Tensor | None
    ends: Tensor | None

    @property
    def tokens(self) -> int:
        """T."""
        return self.packed.tokens

    def counts(self) -> dict[str, int]:
        """S targets of the one loss part, ``span``; 0 without gold."""
        return {"span": 0 if self.starts is None else len(self.starts)}

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> SpanBatch:
        """The same batch on ``device``."""
        return SpanBatch(
            packed=self.packed.to(device, non_blocking=non_blocking),
            starts=None if self.starts is None else self.starts.to(device, non_blocking=non_blocking),
            ends=None if self.ends is None else self.ends.to(device, non_blocking=non_blocking),
        )


class Span:
    """Answers as spans of a context; fulfils :class:`bertkit.tasks.kinds.Kind`."""

    name: ClassVar[str] = "span"
    head: ClassVar[str] = "span"
    settings: ClassVar[type[KindSettings]] = SpanSettings
    scorer: ClassVar[QuestionScores] = staticmethod(question_scores)

    def read(self, path: Path, task: Task, *, strict: bool = False) -> tuple[list[QuestionRow], RowReport]:
        """Questions of official JSON, or of a table; see :func:`bertkit.labelled.questions.read_questions`."""
        return read_questions(path, task.columns or QUESTIONS, strict=strict)

    def stream(self, path: Path, task: Task, report: RowReport, *, strict: bool = False) -> Iterator[QuestionRow]:
        """The same one by one; see :func:`bertkit.labelled.questions.stream_questions`."""
        return stream_questions(path, task.columns or QUESTIONS, report)

    def from_records(
        self, records: Iterable[Mapping[str, Any]], task: Task, *, source: str
    ) -> tuple[list[QuestionRow], RowReport]:
        """Questions of hub data: SQuAD's fields or, where the task has columns, those."""
        if task.columns is None:
            return squad_records(records, source=source)
        return question_records(records, task.columns, source=source)

    def has_gold(self, rows: Sequence[QuestionRow]) -> bool:
        """Whether any question says what its answer is, or that it has none."""
        return any(row.labelled for row in rows)

    def texts(self, row: QuestionRow) -> str:
        """The context: questions on one paragraph stay on one side of a split."""
        return row.context

    def labels(
        self, rows: Sequence[QuestionRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool
    ) -> Labels:
        """No names: the head's two outputs are start and end, and what a config calls them means nothing.

        So a model that has the head keeps it in training, whether or not its config names labels (transformers' does not).
        """
        return Labels(names=(), problem="")

    def encode(
        self,
        rows: Sequence[QuestionRow],
        wordpiece: WordPiece,
        labels: Labels,
        settings: Any,
        *,
        segments: int = 2,
        for_training: bool = False,
    ) -> Encoded:
        """Windows in row order; see :func:`bertkit.tasks.span_examples.encode_questions`."""
        return encode_questions(rows, wordpiece, settings, segments=segments, for_training=for_training, scorer=self.scorer)

    def collate(self, examples: Sequence[SpanExample]) -> SpanBatch:
        """One batch, in the order given; with targets where every example has one."""
        targets = [example.target for example in examples if example.target is not None]
        gold = len(targets) == len(examples)
        pairs = torch.tensor(targets, dtype=torch.int64) if gold else None
        return SpanBatch(
            packed=pack(examples),
            starts=None if pairs is None else pairs[:, 0].contiguous(),
            ends=None if pairs is None else pairs[:, 1].contiguous(),
        )

    def decode(
        self,
        outputs: Sequence[np.ndarray],
        examples: Sequence[SpanExample],
        rows: Sequence[QuestionRow],
        labels: Labels,
        settings: Any,
    ) -> list[Prediction]:
        """One answer a row; ``outputs[i]`` is ``[n, 2]``. See :func:`bertkit.tasks.span_decoding.decode_question`."""
        windows: list[list[int]] = [[] for _ in rows]
        for index, example in enumerate(examples):
            windows[example.row].append(index)
        nulls = settings.answerless(rows)
        return [
            decode_question(row, [examples[i] for i in places], [outputs[i] for i in places], settings, nulls=nulls)
            for row, places in zip(rows, windows, strict=True)
        ]

    def score(
        self, predictions: Sequence[Prediction], rows: Sequence[QuestionRow], task: Task, labels: Labels, *, seed: int = 0
    ) -> Scores:
        """The official figures on a scale of 0–100, 2.0's where a question has no answer (or might, by the predictions).

        With null odds the best thresholds are reported apart, found over the answers from before any threshold.

        Raises:
            DataError: No question has gold (exit 3).
        """
        kept = [(row, said) for row, said in zip(rows, predictions, strict=True) if row.labelled]
        if not kept:
            raise DataError(
                "There is nothing to score: no question has a gold answer.", where=rows[0].place.file if rows else None
            )
        golds, texts, version = judged(kept)
        values: dict[str, float | None] = dict(squad_scores(golds, texts, version=version, scorer=self.scorer))
        odds = {row.id: float(said.more["null_odds"]) for row, said in kept if said.more.keys() >= {"null_odds", "best_text"}}
        if len(odds) == len(kept):
            unthresholded = {row.id: str(said.more["best_text"]) for row, said in kept}
            found = squad_scores(golds, unthresholded, version=2, null_odds=odds, scorer=self.scorer)
            values |= {key: value for key, value in found.items() if key.startswith("best_")}
        return Scores(
            values={key: value for key, value in values.items() if key != "total"},
            primary=task.primary,
            examples=len(kept),
            interval=self.resampled(predictions, rows, task, labels).interval(seed=seed),
        )

    def resampled(self, predictions: Sequence[Prediction], rows: Sequence[QuestionRow], task: Task, labels: Labels) -> Resampled:
        """``exact`` or ``f1`` (0–100) as a function of how often each question with gold is drawn."""
        golds, texts, version = judged([(row, said) for row, said in zip(rows, predictions, strict=True) if row.labelled])
        place = 0 if task.primary == "exact" else 1
        pairs = scores_by_question(golds, texts, version=version, scorer=self.scorer).values()
        return Resampled.of_mean(np.array([100.0 * pair[place] for pair in pairs]))

    def detail(self, predictions: Sequence[Prediction], rows: Sequence[QuestionRow], labels: Labels) -> Detail:
        """The questions with a wrong answer; see :func:`bertkit.tasks.span_detail.span_detail`."""
        _, _, version = judged([(row, said) for row, said in zip(rows, predictions, strict=True) if row.labelled])
        return span_detail(predictions, rows, version=version, scorer=self.scorer)

    def golds(self, rows: Sequence[QuestionRow], labels: Labels) -> list[Any]:
        """The answers' texts."""
        return [[answer.text for answer in row.answers] if row.labelled else None for row in rows]

    def official_files(self, task: Task, part: str) -> tuple[str, ...]:
        """Predictions, n-best lists and null odds, whichever part it is."""
        return task.official.get(part, "predictions.json"), "nbest_predictions.json", "null_odds.json"

    def write_official(
        self, folder: Path, predictions: Iterable[Prediction], rows: Sequence[QuestionRow], task: Task, part: str
    ) -> list[Path]:
        """The official files: predictions, ``nbest_predictions.json``, and ``null_odds.json`` where "no answer" is an answer."""
        names = self.official_files(task, part)
        found: dict[str, Callable[[str, Any], None]] = {}
        with ExitStack() as open_files:
            for number, said in enumerate(predictions):
                for name, value in zip(names, (said.value, said.more.get("nbest"), said.more.get("null_odds")), strict=True):
                    if name not in found and (value is not None or (not number and name == names[0])):
                        found[name] = open_files.enter_context(writing_json(folder / name))
                    if value is not None:
                        found[name](said.id, value)
        return [folder / name for name in names if name in found]

    def read_official(self, path: Path, rows: Sequence[QuestionRow], task: Task, labels: Labels) -> list[Prediction]:
        """Predictions of any system from its official file, one a row.

        A question that the file lacks gets None, which is said and scored as wrong, as evaluate-v1.1.py does.

        Raises:
            DataError: The file holds no predictions, or none for any of the questions.
        """
        found = read_predictions(path)
        missing = [row.id for row in rows if row.id not in found]
        if missing and len(missing) == len(rows):
            raise DataError("The file has a prediction for none of the questions.", where=str(path))
        if missing:
            say("missing-predictions", f"{path}: {len(missing)} questions have no prediction, the first is {missing[0]}.")
        golds = self.golds(rows, labels)
        return [Prediction(id=row.id, value=found.get(row.id), gold=gold) for row, gold in zip(rows, golds, strict=True)]


def judged(kept: Sequence[tuple[QuestionRow, Prediction]]) -> tuple[dict[str, list[str]], dict[str, str], int]:
    """Gold texts and predicted texts by id, and the version of the arithmetic: 2 where a question may have no answer."""
    golds = {row.id: [answer.text for answer in row.answers] for row, _ in kept}
    texts = {row.id: str(said.value) for row, said in kept if said.value is not None}
    version = 2 if may_be_null([row for row, _ in kept]) or any("null_odds" in said.more for _, said in kept) else 1
    return golds, texts, version
