"""Questions on contexts → windows of tokens: ``[CLS] question [SEP] part of the context [SEP]``.

In come rows and a tokenizer, out go examples with their answer's tokens (for training) or with what decoding needs, and the
count of what the settings put out of reach. Source: google-research/bert run_squad.py, with a stride that is the overlap.

Shapes: n tokens of an example, c of them of the context, C tokens of the whole context.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from bertkit.batches.windows import Window, check_windows, trusted_windows, windows
from bertkit.errors import UsageError
from bertkit.labelled.rows import QuestionRow, RowReport
from bertkit.labelled.squad import answer_fault, shown
from bertkit.metrics.squad import QuestionScores, question_scores
from bertkit.notices import say
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.examples import Encoded, Example, count_unknown
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.span_reach import Ints, Reach, span_of

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece

SPECIALS = 3
"""``[CLS]``, and a ``[SEP]`` behind the question and behind the context."""


class SpanSettings(KindSettings):
    """How questions are cut into windows and answers taken from logits."""

    max_length: int = Field(384, ge=3, description="Tokens of a sequence at most, special tokens included.")
    stride: int = Field(128, description="Tokens that neighbouring windows of a context share (the overlap).")
    max_question_length: int = Field(64, ge=1, description="Tokens that a question keeps at most, its first ones.")
    max_answer_length: int = Field(30, ge=1, description="Tokens of an answer at most.")
    n_best: int = Field(20, ge=1, description="Answers listed in the n-best file for each question.")
    null_answers: bool | None = Field(
        None, description="Whether a question may have no answer (2.0); unset: where the data say so or have such questions."
    )
    null_threshold: float = Field(0.0, description="Null odds above this give no answer; a difference of logits.")

    def tuned(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """The best threshold of null odds for F1, where questions might have no answer and nobody forbids it."""
        if self.null_answers is False:
            return {}
        threshold = figures.get("best_null_threshold", figures.get("best_f1_thresh"))  # the latter alone: of an earlier bertkit
        if not isinstance(threshold, (int, float)) or isinstance(threshold, bool) or not math.isfinite(threshold):
            return {}
        return {"null_answers": True, "null_threshold": float(threshold)}

    def answerless(self, rows: Sequence[QuestionRow]) -> bool:
        """Whether "no answer" is among the answers: as set, else whether the rows come from data where it is."""
        return may_be_null(rows) if self.null_answers is None else self.null_answers


def may_be_null(rows: Sequence[QuestionRow]) -> bool:
    """Whether rows are scored as 2.0: one has no answer, or their file says that questions may have none."""
    return any(row.impossible or row.nullable for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanExample(Example):
    """One window of one question.

    Attributes:
        first: Where the window's context begins in ``ids``.
        target: First and last token of the answer, as places in ``ids``; ``(0, 0)``, the ``[CLS]``, where the window holds
            no answer; None where the example is not for training.
        offsets: ``[c, 2]`` int32, characters of the raw context that each token stands for; empty in training.
        trusted: ``[c]`` bool, the tokens that have no more context in another window; empty in training.
    """

    first: int
    target: tuple[int, int] | None = None
    offsets: Ints
    trusted: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Tokens:
    question: Ints
    context: Ints  # [C]
    offsets: Ints  # [C, 2]
    cut: int  # question tokens lost


_LISTED = 20
_NO_OFFSETS: Ints = np.zeros((0, 2), dtype=np.int32)
_NO_TRUST: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)


def encode_questions(
    rows: Sequence[QuestionRow],
    wordpiece: WordPiece,
    settings: SpanSettings,
    *,
    segments: int = 2,
    for_training: bool = False,
    scorer: QuestionScores = question_scores,
) -> Encoded:
    """Every row's windows, in row order.

    Training leaves out rows whose answers do not stand where the file says, that hold no token of theirs or lie whole in no
    window, and (where "no answer" is none of the answers) questions without one; all counted and listed in the coverage.
    ``scorer`` is the one by which the score that a perfect model could get is counted.

    Raises:
        UsageError: The stride would leave tokens of some row in no window, or a question leaves no room (exit 2).
    """
    if segments == 1:
        say("one-segment", "The model has one segment (type_vocab_size 1): question and context are of segment 0.")
    tokens = _tokenize(rows, wordpiece, settings)
    rooms = [settings.max_length - SPECIALS - len(each.question) for each in tokens]
    if min(rooms, default=1) < 1:
        raise UsageError(
            f"A question of {settings.max_length - SPECIALS - min(rooms)} tokens leaves its context no room in --max-length "
            f"{settings.max_length}.",
            where=str(rows[rooms.index(min(rooms))].place) or "--max-length",
            hint="Use a larger --max-length, or let questions keep less: --set kind.max_question_length=….",
        )
    if settings.stride < 0:
        check_windows(min(rooms, default=1), settings.stride, max_length=settings.max_length)
    long = [room for room, each in zip(rooms, tokens, strict=True) if len(each.context) > room]
    if long:
        check_windows(min(long), settings.stride, max_length=settings.max_length)
    coverage = Coverage(rows=len(rows))
    report = RowReport()
    nulls = settings.answerless(rows)
    reach = Reach(settings.max_answer_length, nulls=nulls, version_2=may_be_null(rows), scorer=scorer)
    examples: list[SpanExample] = []
    for number, (row, each, room) in enumerate(zip(rows, tokens, rooms, strict=True)):
        cuts = windows(len(each.context), room, settings.stride if len(each.context) > room else 0)
        frame = _Frame(number, each, wordpiece, segments)
        if for_training:
            examples += _training(row, frame, cuts, report, nulls=nulls)
        else:
            owner = trusted_windows(cuts, len(each.context))
            examples += frame.windows(cuts, owner)
            reach.add(row, each.offsets, cuts, owner)
    coverage.examples = len(examples)
    count_unknown(examples, wordpiece.unk_id, coverage)
    _describe(coverage, tokens, report, settings)
    if not for_training:
        reach.tell(coverage)
    return Encoded(examples, coverage)


def _tokenize(rows: Sequence[QuestionRow], wordpiece: WordPiece, settings: SpanSettings) -> list[_Tokens]:
    # Several questions share a paragraph: it is tokenized once, and their windows are views of its one array.
    contexts = list(dict.fromkeys(row.context for row in rows))
    encoded = {
        text: (ids, _with_marks(text, offsets))
        for text, (ids, offsets) in zip(contexts, wordpiece.encode_with_offsets(contexts), strict=True)
    }
    questions = wordpiece.encode([row.question for row in rows])
    keep = settings.max_question_length
    return [
        _Tokens(question[:keep], *encoded[row.context], max(0, len(question) - keep))
        for row, question in zip(rows, questions, strict=True)
    ]


def _with_marks(text: str, offsets: Ints) -> Ints:
    """The offsets ``[C, 2]``, each end behind the combining marks (Mn) that follow the token and belong to none.

    An uncased tokenizer strips accents that stand apart from their letter (``e`` U+0301); in an answer they are kept.
    """
    if text.isascii():
        return offsets
    mark = np.fromiter((unicodedata.category(character) == "Mn" for character in text), np.bool_, len(text))
    if not mark.any():
        return offsets
    places = np.append(np.where(mark, len(text), np.arange(len(text))), len(text))
    behind = np.minimum.accumulate(places[::-1])[::-1]  # the first place from here on without a mark
    following = np.append(offsets[1:, 0], len(text))
    ends = np.maximum(np.minimum(behind[offsets[:, 1]], following), offsets[:, 1])
    return np.stack([offsets[:, 0], ends], axis=1).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all windows of one row share."""

    row: int
    tokens: _Tokens
    wordpiece: WordPiece
    segments: int

    @property
    def first(self) -> int:
        return len(self.tokens.question) + 2

    def window(self, cut: Window, **more: Any) -> SpanExample:
        start, size = cut
        cls, sep = self.wordpiece.cls_id, self.wordpiece.sep_id
        ids = np.concatenate([[cls], self.tokens.question, [sep], self.tokens.context[start : start + size], [sep]])
        types = np.zeros(len(ids), dtype=np.int32)
        types[self.first :] = min(1, self.segments - 1)
        return SpanExample(row=self.row, ids=ids.astype(np.int32), types=types, first=self.first, **more)

    def windows(self, cuts: Sequence[Window], owner: npt.NDArray[np.int64]) -> Iterator[SpanExample]:
        for index, (start, size) in enumerate(cuts):
            here = slice(start, start + size)
            yield self.window((start, size), offsets=self.tokens.offsets[here], trusted=owner[here] == index)


def _training(row: QuestionRow, frame: _Frame, cuts: Sequence[Window], report: RowReport, *, nulls: bool) -> list[SpanExample]:
    span: tuple[int, int] | None = None
    if not row.labelled:
        report.skip(row.place, f"question {row.id} has no gold")
        return []
    if row.impossible or not row.answers:
        if not nulls:
            report.skip(row.place, f"question {row.id} has no answer")
            return []
    else:
        answer = next((answer for answer in row.answers if shown(row.context, answer)), None)
        if answer is None:
            report.skip(row.place, answer_fault(row) or "")
            return []
        span = span_of(frame.tokens.offsets, answer.start, answer.start + len(answer.text))
        if span is None or not any(start <= span[0] and span[1] < start + size for start, size in cuts):
            why = "the tokenizer deletes its answer" if span is None else "its answer lies whole in no window"
            report.skip(row.place, f"question {row.id}: {why}")
            return []
    made = []
    for start, size in cuts:
        held = span is not None and start <= span[0] and span[1] < start + size
        target = (span[0] - start + frame.first, span[1] - start + frame.first) if span is not None and held else (0, 0)
        made.append(frame.window((start, size), target=target, offsets=_NO_OFFSETS, trusted=_NO_TRUST))
    return made


def _describe(coverage: Coverage, tokens: Sequence[_Tokens], report: RowReport, settings: SpanSettings) -> None:
    cut = [each.cut for each in tokens if each.cut]
    if cut:
        coverage.notes.append(
            f"{len(cut)} questions were cut to their first {settings.max_question_length} tokens, {sum(cut)} lost."
        )
    coverage.skipped = len(report.skipped)
    if report.skipped:
        # Reasons name their question; of the places only the file is worth saying, and once.
        listed = "; ".join(skipped.reason for skipped in report.skipped[:_LISTED])
        more = f"; and {len(report.skipped) - _LISTED} more" if len(report.skipped) > _LISTED else ""
        coverage.notes.append(f"Left out of {report.skipped[0].place.file or 'the rows'}: {listed}{more}.")
