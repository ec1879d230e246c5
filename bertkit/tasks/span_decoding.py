"""Start and end logits → answers: the best legal span over all windows of a question, or none.

In come a question's windows and their logits, out goes its prediction with n-best list and null odds. Sources: Devlin et al.
2019, section 4.2; google-research/bert run_squad.py (which looks at 20 starts and ends; here every legal span is looked at).

Shapes: c context tokens of a window, A tokens of an answer at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bertkit.errors import DataError
from bertkit.labelled.rows import QuestionRow
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.span_examples import SpanExample, SpanSettings

Floats = npt.NDArray[np.float64]

NO_SPAN_ODDS = 1e9
"""Null odds of a question whose context has no token: nothing but "no answer" is left (JSON has no infinity)."""


class Span(NamedTuple):
    """A candidate: its score, the two logits, and its characters ``context[start:end]``."""

    score: float
    start_logit: float
    end_logit: float
    start: int
    end: int


def best_spans(start: Floats, end: Floats, trusted: npt.NDArray[np.bool_], longest: int, count: int) -> list[tuple[int, int]]:
    """The ``count`` best pairs of one window's context tokens, best first; equals by place.

    Args:
        start: ``[c]`` start logits.
        end: ``[c]`` end logits.
        trusted: ``[c]`` tokens that a span may start at.
        longest: A, tokens of a span at most.
        count: How many pairs.
    """
    places = np.flatnonzero(trusted)
    if not len(places):
        return []
    longest = min(longest, len(start))
    padded = np.concatenate([end, np.full(longest - 1, -np.inf)])
    scores = start[places, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)[places]  # [t, A]
    flat = scores.ravel()
    if count < len(flat):
        # All that are as good as the last one wanted, so that which of equals is taken never hangs on the partition.
        kept = np.flatnonzero(flat >= np.partition(flat, len(flat) - count)[len(flat) - count])
    else:
        kept = np.arange(len(flat))
    order = kept[np.argsort(-flat[kept], kind="stable")][:count]
    pairs = [(int(places[i // longest]), int(places[i // longest] + i % longest)) for i in order if np.isfinite(flat[i])]
    return pairs


def decode_question(
    row: QuestionRow,
    examples: Sequence[SpanExample],
    outputs: Sequence[np.ndarray],
    settings: SpanSettings,
    *,
    nulls: bool,
) -> Prediction:
    """One question's answer over all its windows.

    A span's score is the sum of its two logits; it starts at a token trusted in its window, ends at or behind it within the
    window, and has at most ``max_answer_length`` tokens. The null score is ``[CLS]``'s, the lowest over the windows. With
    ``nulls``, odds (null score minus the best span's) above the threshold give ``""``.

    Args:
        row: The question.
        examples: Its windows.
        outputs: ``[n, 2]`` start and end logits of each.
        settings: Lengths, threshold and size of the list.
        nulls: Whether "no answer" is among the answers.

    Raises:
        DataError: A logit is not a number; the question is named.
    """
    spans: list[Span] = []
    null = (math.inf, 0.0, 0.0)
    for example, output in zip(examples, outputs, strict=True):
        logits = np.asarray(output, dtype=np.float64)
        if not np.isfinite(logits).all():
            raise DataError(
                f"The model's outputs for question {row.id} are not numbers.",
                where=str(row.place) or f"question {row.id}",
                hint="The weights are damaged or their training diverged; use an earlier checkpoint.",
            )
        null = min(null, (float(logits[0].sum()), float(logits[0, 0]), float(logits[0, 1])))
        spans += _window_spans(example, logits, settings)
    spans.sort(key=lambda span: -span.score)  # stable: equals stay in the order of the windows
    return _choose(row, spans, null, settings, nulls=nulls)


def _window_spans(example: SpanExample, logits: Floats, settings: SpanSettings) -> list[Span]:
    size = len(example.trusted)
    here = logits[example.first : example.first + size]  # [c, 2]
    pairs = best_spans(here[:, 0], here[:, 1], example.trusted, settings.max_answer_length, settings.n_best)
    return [
        Span(
            float(here[a, 0] + here[b, 1]),
            float(here[a, 0]),
            float(here[b, 1]),
            int(example.offsets[a, 0]),
            int(example.offsets[b, 1]),
        )
        for a, b in pairs
    ]


def _choose(
    row: QuestionRow, spans: Sequence[Span], null: tuple[float, float, float], settings: SpanSettings, *, nulls: bool
) -> Prediction:
    best = spans[0] if spans else None
    odds = null[0] - best.score if best else NO_SPAN_ODDS
    empty = best is None or (nulls and odds > settings.null_threshold)
    text = "" if best is None else row.context[best.start : best.end]
    more: dict[str, Any] = {"nbest": _n_best(row, spans, null if nulls or best is None else None, settings.n_best)}
    if best is not None and not empty:
        more |= {"start": best.start, "end": best.end}
    if nulls:
        more |= {"null_odds": odds, "best_text": text}
    return Prediction(
        id=row.id,
        value="" if empty else text,
        score=null[0] if best is None or empty else best.score,
        gold=[answer.text for answer in row.answers] if row.labelled else None,
        more=more,
    )


def _n_best(
    row: QuestionRow, spans: Sequence[Span], null: tuple[float, float, float] | None, count: int
) -> list[dict[str, str | float]]:
    """The official list: distinct texts, best first, with the softmax over the list as their probabilities."""
    seen: dict[str, tuple[float, float, float]] = {}
    for span in spans:
        if len(seen) == count:
            break
        seen.setdefault(row.context[span.start : span.end], span[:3])
    entries = list(seen.items())
    if null is not None:
        entries = sorted([*entries, ("", null)], key=lambda entry: -entry[1][0])
    scores = np.array([scores[0] for _, scores in entries])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return [
        {"text": text, "probability": float(share), "start_logit": start, "end_logit": end}
        for (text, (_, start, end)), share in zip(entries, shares, strict=True)
    ]
