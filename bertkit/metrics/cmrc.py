"""CMRC 2018's scores of answers: exact match and the F1 of the longest run that gold and prediction share.

SQuAD's F1 counts words between spaces, of which a Chinese answer has one. Here a Chinese character is a segment, other text is
parted into words, and the order counts. Source: the published cmrc2018_evaluate (Cui et al. 2019, "A Span-Extraction Dataset
for Chinese Machine Reading Comprehension").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
"""What is taken away before anything is compared. The published list has ``……`` too, which never fits one character."""

_CHINESE = re.compile(r"([\u4e00-\u9fa5])")
# The Penn Treebank's rules, by which the published script parts what is not Chinese; it also looks for sentences inside an
# answer, which matters for a full stop in the middle alone and is left out here.
_OPENING = re.compile(r'(^|[ (\[{<])"')
_PARTED = re.compile(
    r"""(\.{2,}|``|''|[;@#$%&?!()\[\]{}<>«»‘„–—―]|,(?!\d)|(?<=[^\s'])'(?:s|m|d|ll|re|ve)?(?=\s|$)|(?<=\w)n't(?=\s|$))""", re.ASCII
)
_LAST_STOP = re.compile(r"(?<=[^.\s])(\.)(?=[\])}>\"'\s]*$)")


@lru_cache(maxsize=65536)
def bare(text: str) -> str:
    """Lower case, without :data:`PUNCTUATION` and the whitespace around."""
    return "".join(character for character in text.lower().strip() if character not in PUNCTUATION)


@lru_cache(maxsize=65536)
def segments(text: str) -> tuple[str, ...]:
    """The segments of :func:`bare` text: each Chinese character, and the words between them."""
    found: list[str] = []
    for piece in _CHINESE.split(bare(text)):
        found += [piece] if _CHINESE.fullmatch(piece) else _words(piece)
    return tuple(found)


def _words(text: str) -> list[str]:
    quoted = _OPENING.sub(r"\1``", text).replace('"', "''")  # which of the two a quotation mark is counts
    return _PARTED.sub(r" \1 ", _LAST_STOP.sub(r" \1 ", quoted)).split()


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest run of segments that stands in both."""
    longest = 0
    before = [0] * (len(other) + 1)
    for segment in one:
        here = [0] * (len(other) + 1)
        for place, found in enumerate(other):
            if segment == found:
                here[place + 1] = before[place] + 1
        longest = max(longest, *here)
        before = here
    return longest


def f1_score(gold: str, predicted: str) -> float:
    """F1, 0–1, of the longest common run over the segments of both; 0 where they share none, two empty texts included."""
    golds, founds = segments(gold), segments(predicted)
    common = longest_common(golds, founds)
    return 2 * common / (len(golds) + len(founds)) if common else 0.0


def exact_score(gold: str, predicted: str) -> float:
    """1.0 where both are the same :func:`bare` text, else 0.0."""
    return float(bare(gold) == bare(predicted))


def question_scores(golds: Sequence[str], predicted: str, *, version: int) -> tuple[float, float]:
    """Exact and F1 (0–1) of one question: the best over its gold texts.

    Args:
        golds: Gold texts; none where the question has no answer, which CMRC 2018 does not have: right is then ``""`` alone.
        predicted: The predicted text.
        version: 2 where questions may have no answer: a gold of punctuation alone is then none, as in SQuAD 2.0.
    """
    texts = [text for text in golds if version == 1 or bare(text)]
    if not texts:
        return (float(not bare(predicted)),) * 2
    return max(exact_score(gold, predicted) for gold in texts), max(f1_score(gold, predicted) for gold in texts)
