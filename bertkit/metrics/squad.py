"""SQuAD's scores by the official arithmetic: exact match and F1 over bags of words, 1.1 and 2.0, on a scale of 0–100.

In go gold texts and predicted texts by question id, out go plain numbers under the official names. Sources: the official
evaluate-v1.1.py and evaluate-v2.0.py (Rajpurkar et al. 2016, 2018).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Golds = Mapping[str, Sequence[str]]
"""Gold texts by question id, in the order of the file; no text where the question has no answer."""


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """Lower case, ASCII punctuation and English articles away, whitespace to single spaces; the official order."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_score(gold: str, predicted: str) -> float:
    """1.0 where both are the same after :func:`normalise`, else 0.0."""
    return float(normalise(gold) == normalise(predicted))


def f1_score(gold: str, predicted: str) -> float:
    """F1 over the bags of normalised words, 0–1; where either side has no word, 1.0 if neither has one (evaluate-v2.0)."""
    golds, founds = normalise(gold).split(), normalise(predicted).split()
    if not golds or not founds:
        return float(golds == founds)
    common = (Counter(golds) & Counter(founds)).total()
    if common == 0:
        return 0.0
    # Written out as the official scripts do, so that the last digits agree too.
    precision, recall = common / len(founds), common / len(golds)
    return 2 * precision * recall / (precision + recall)


def question_scores(golds: Sequence[str], predicted: str, *, version: int) -> tuple[float, float]:
    """Exact and F1 (0–1) of one question: the best over its gold texts.

    Args:
        golds: Gold texts; none where the question has no answer, whose right answer is then ``""``.
        predicted: The predicted text.
        version: 1 or 2. 2.0 leaves out golds that normalise to nothing; 1.1 gives no F1 between two empty texts.
    """
    if version == 2:
        texts = [text for text in golds if normalise(text)] or [""]
        return max(exact_score(gold, predicted) for gold in texts), max(f1_score(gold, predicted) for gold in texts)
    texts = list(golds) or [""]
    f1 = max(f1_score(gold, predicted) if normalise(gold) and normalise(predicted) else 0.0 for gold in texts)
    return max(exact_score(gold, predicted) for gold in texts), f1


class QuestionScores(Protocol):
    """Exact and F1 (0–1) of one question: :func:`question_scores`, or another scorer's (``metrics.cmrc``)."""

    def __call__(self, golds: Sequence[str], predicted: str, *, version: int) -> tuple[float, float]:
        """Its golds and its predicted text; the version says whether questions may have no answer (2)."""
        ...


def scores_by_question(
    golds: Golds, predictions: Mapping[str, str], *, version: int, scorer: QuestionScores = question_scores
) -> dict[str, tuple[float, float]]:
    """Exact and F1 (0–1) by question id, in the golds' order; a question without a prediction gets 0.

    evaluate-v1.1.py counts such a question as wrong too; evaluate-v2.0.py fails on it.
    """
    return {
        key: scorer(texts, predictions[key], version=version) if key in predictions else (0.0, 0.0)
        for key, texts in golds.items()
    }


def squad_scores(
    golds: Golds,
    predictions: Mapping[str, str],
    *,
    version: int,
    null_odds: Mapping[str, float] | None = None,
    threshold: float = 1.0,
    scorer: QuestionScores = question_scores,
) -> dict[str, float | int]:
    """The official scores, 0–100.

    Args:
        golds: Gold texts by id.
        predictions: Predicted texts by id; others than the golds' are ignored.
        version: 1 (evaluate-v1.1) or 2 (evaluate-v2.0).
        null_odds: 2.0 only: the higher, the surer that there is no answer. With it the best thresholds are given too.
        threshold: 2.0 only: odds above it make the answer ``""`` (evaluate-v2.0's ``--na-prob-thresh``, 1.0 unless set).
        scorer: Scores one question; SQuAD's own unless another is given.

    Returns:
        ``exact``, ``f1``, ``total``; for 2.0 also ``HasAns_…`` and ``NoAns_…`` (each with ``exact``, ``f1``, ``total``, only
        where such questions are there); with null odds ``best_exact``, ``best_exact_thresh``, ``best_f1``, ``best_f1_thresh``
        as the script has them, and ``best_null_threshold``, the threshold that gives the best F1, with room on either side.

    Raises:
        ValueError: There is no question.
    """
    if not golds:
        raise ValueError("there is no question to score")
    raw = scores_by_question(golds, predictions, version=version, scorer=scorer)
    if version == 1:
        return _averages(raw, list(golds))
    answered = {key: bool(texts) for key, texts in golds.items()}
    final = raw
    if null_odds is not None:
        final = {
            key: pair if null_odds.get(key, 0.0) <= threshold else (float(not answered[key]),) * 2 for key, pair in raw.items()
        }
    out = _averages(final, list(golds))
    for name, wanted in (("HasAns", True), ("NoAns", False)):
        part = [key for key in golds if answered[key] == wanted]
        if part:
            out |= {f"{name}_{key}": value for key, value in _averages(final, part).items()}
    if null_odds is not None:
        exact, f1 = (
            best_threshold({key: pair[place] for key, pair in raw.items()}, predictions, null_odds, answered) for place in (0, 1)
        )
        out |= {"best_exact": exact.score, "best_exact_thresh": exact.at, "best_f1": f1.score, "best_f1_thresh": f1.at}
        out["best_null_threshold"] = f1.between
    return out


class BestThreshold(NamedTuple):
    """What :func:`best_threshold` finds.

    Attributes:
        score: The best average (0–100) as evaluate-v2.0 reports it, which also parts questions of equal odds: where these are
            best parted no threshold gives it.
        at: The threshold as evaluate-v2.0 reports it: the odds of the last question that keeps its answer, which a change in
            their last digit takes away; 0 where it is best that none has an answer, whatever the odds.
        between: A threshold that gives the best average that one can give: the middle between two questions' odds, one unit
            of logits beyond the first or the last. Odds made from logits in half precision are often equal.
    """

    score: float
    at: float
    between: float


def best_threshold(
    scores: Mapping[str, float], predictions: Mapping[str, str], null_odds: Mapping[str, float], answered: Mapping[str, bool]
) -> BestThreshold:
    """The threshold on the null odds that gives the best average (evaluate-v2.0's search).

    Args:
        scores: Each question's score (0–1) where its prediction stands.
        predictions: Texts; give those from before any threshold, since one that is ``""`` already cannot come back.
        null_odds: By id; a question without odds keeps its prediction in no threshold.
        answered: Which questions have an answer.
    """
    current = float(sum(not answered[key] for key in scores))
    best, threshold = current, 0.0
    reached, kept = current, 0
    keys = sorted((key for key in null_odds if key in scores), key=lambda key: null_odds[key])
    odds = [null_odds[key] for key in keys] or [0.0]
    for number, key in enumerate(keys, 1):
        current += scores[key] if answered[key] else -1.0 if predictions.get(key) else 0.0
        if current > best:
            best, threshold = current, null_odds[key]
        if current > reached and (number == len(keys) or odds[number] > null_odds[key]):
            reached, kept = current, number
    borders = [odds[0] - 2, *odds, odds[-1] + 2]
    return BestThreshold(100.0 * best / len(scores), threshold, (borders[kept] + borders[kept + 1]) / 2)


def _averages(scores: Mapping[str, tuple[float, float]], keys: Sequence[str]) -> dict[str, float | int]:
    total = len(keys)
    return {
        "exact": 100.0 * sum(scores[key][0] for key in keys) / total,
        "f1": 100.0 * sum(scores[key][1] for key in keys) / total,
        "total": total,
    }
