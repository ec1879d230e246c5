"""Questions by what they are like, each group with its figures: how long the answer is, and by which word the question asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from bertkit.labelled.rows import QuestionRow
from bertkit.metrics import cmrc
from bertkit.metrics.squad import normalise

Groups = dict[str, dict[str, dict[str, float]]]
NO_ANSWER, OTHER = "no answer", "other"
_LENGTHS = ((1, "1"), (2, "2"), (3, "3"), (5, "4-5"), (10, "6-10"))
_LONGER = "11 or more"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
# A word of its own in front of what it begins with: "how many" before "how", 为什么 before 什么.
_WORDS = {
    "how many": r"\bhow (?:many|much)\b", "how": r"\bhow\b", "what": r"\bwhat\b", "when": r"\bwhen\b", "where": r"\bwhere\b",
    "which": r"\bwhich\b", "who": r"\bwho(?:m|se)?\b", "why": r"\bwhy\b",
    "为什么": "为什么|為什麼|為甚麼|为何|為何", "什么时候": "什么时候|什麼時候|何时|何時", "哪里": "哪里|哪裡|哪裏|何处|何處",
    "怎么": "怎么|怎麼|怎样|怎樣|如何", "多少": "多少|几|幾|多久", "什么": "什么|什麼|甚麼|何", "谁": "谁|誰", "哪": "哪",
}  # fmt: skip
_ASKING = re.compile("|".join(f"({pattern})" for pattern in _WORDS.values()), re.IGNORECASE)
_ORDER = {
    "answer length": [*(name for _, name in _LENGTHS), _LONGER, NO_ANSWER],
    "question word": [*_WORDS, OTHER],
}


def answer_length(row: QuestionRow) -> str:
    """Words of its shortest gold as the scorer counts them (of Chinese, characters), in classes."""
    words = [_words(answer.text) for answer in row.answers]
    if not words:
        return NO_ANSWER
    return next((name for most, name in _LENGTHS if min(words) <= most), _LONGER)


def question_word(row: QuestionRow) -> str:
    """The first word that asks, English or Chinese."""
    found = _ASKING.search(row.question)
    return OTHER if found is None or found.lastindex is None else list(_WORDS)[found.lastindex - 1]


def groups(rows: Sequence[QuestionRow], scores: Mapping[str, tuple[float, float]]) -> Groups:
    """Figures by grouping and group: ``examples``, and ``exact`` and ``f1`` on a scale of 0–100.

    Args:
        rows: Questions with gold.
        scores: Exact and F1 (0–1) of each by its id.
    """
    kinds: dict[str, Callable[[QuestionRow], str]] = {"answer length": answer_length, "question word": question_word}
    found: Groups = {}
    for name, group_of in kinds.items():
        parted: dict[str, list[tuple[float, float]]] = {group: [] for group in _ORDER[name]}
        for row in rows:
            parted[group_of(row)].append(scores[row.id])
        found[name] = {group: _figures(pairs) for group, pairs in parted.items() if pairs}
    return found


def _figures(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    exact, f1 = (100.0 * sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    return {"examples": len(pairs), "exact": exact, "f1": f1}


def _words(text: str) -> int:
    return len(cmrc.segments(text) if _CHINESE.search(text) else normalise(text).split())
