"""Pairs drawn one sentence after another in plain Python: google's way, and the way of this project, to compare with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

Document = Sequence[int]  # the tokens of each of its sentences


class Pair(NamedTuple):
    """Tokens of A and of B, whether B is next, and which tokens of the document the pair shows (as [begin, end) spans)."""

    a: int
    b: int
    is_next: bool
    seen: list[tuple[int, int]]


def google(documents: Sequence[Document], number: int, length: int, short_share: float, rng: random.Random) -> list[Pair]:
    """``create_instances_from_document`` of google-research/bert, lengths instead of tokens."""
    document, room = documents[number], length - 3
    target = rng.randint(2, room) if rng.random() < short_share else room
    pairs: list[Pair] = []
    chunk: list[int] = []
    i = 0
    while i < len(document):
        chunk.append(document[i])
        if i == len(document) - 1 or sum(chunk) >= target:
            begin = sum(document[: i + 1 - len(chunk)])
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a, b, is_next = sum(chunk[:a_end]), sum(chunk[a_end:]), True
            if len(chunk) == 1 or rng.random() < 0.5:
                is_next, b = False, 0
                other = next((n for n in (rng.randrange(len(documents)) for _ in range(10)) if n != number), number)
                for sentence in documents[other][rng.randrange(len(documents[other])) :]:
                    b += sentence
                    if b >= target - a:
                        break
                i -= len(chunk) - a_end
            ends = [[begin, begin + a], [begin + a, begin + a + b]]
            while sum(end - first for first, end in ends) > room:  # one token at a time off the longer one, at either end
                longer = ends[0] if ends[0][1] - ends[0][0] > ends[1][1] - ends[1][0] else ends[1]
                if rng.random() < 0.5:
                    longer[0] += 1
                else:
                    longer[1] -= 1
            (a0, a1), (b0, b1) = ends
            pairs.append(Pair(a1 - a0, b1 - b0, is_next, [(a0, a1), (b0, b1)][: 1 + is_next]))
            chunk = []
        i += 1
    return pairs


def ours(document: Document, length: int, short_share: float, rng: random.Random) -> list[Pair]:
    """The same made exact: sentences while they fit, a fair coin for every pair, a twin of the true B's length, A's rest back.

    For sentences of two words or more, each token a word, that fit the room.
    """
    room, total = length - 3, sum(document)
    ends = [sum(document[: i + 1]) for i in range(len(document))]
    pairs: list[Pair] = []
    place = 0
    while place < total:
        target = rng.randint(2, room) if rng.random() < short_share else room
        fitting = [end for end in ends if place < end <= place + target] or [next(end for end in ends if end > place)]
        start, end = place, fitting[-1]
        if len(fitting) > 1:
            cut = rng.choice(fitting[:-1])
        else:
            if end - start == 1:  # one word is left of its sentence: it takes the words before it again
                start = max([other for other in ends if other < end], default=0)
            cut = rng.randint(start + 1, end - 1)
        is_next = rng.random() < 0.5
        pairs.append(Pair(cut - start, end - cut, is_next, [(start, cut), (cut, end)][: 1 + is_next]))
        place = end if is_next else cut
    return pairs
