"""What is masked together: words, and spans of words; and how a sequence's quota is filled with them.

T tokens that are not special, end to end in S sequences; U units (words or spans), each of one sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.batches.text import Bools, Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of some texts.

    Attributes:
        firsts: ``[W]`` the first token of each word, rising.
        edges: The first token of each text, rising; each is a word's.
    """

    firsts: Ints
    edges: Ints

    @staticmethod
    def of(begins: Bools, lengths: Ints) -> Words:
        """Words of texts end to end, none across two texts.

        Args:
            begins: ``[T]`` does a word begin at this token?
            lengths: Tokens of each text; 0 where there is none.
        """
        edges = (np.cumsum(lengths) - lengths)[lengths > 0]
        begins = begins.copy()
        begins[edges] = True
        return Words(firsts=np.flatnonzero(begins), edges=edges)


def cut_spans(words: Ints, edges: Ints, longest: Ints, p: float, numbers: Floats) -> Ints:
    """Cuts texts into spans of whole words, whose lengths are geometric (Joshi et al. 2020, SpanBERT, section 3.1).

    From each text's first word on one span follows the other; P(length = l) is p (1 - p)^(l - 1), over what is left by the
    lengths above ``longest``. A text's last span ends with it.

    Args:
        words: ``[W]`` the first token of each word, rising.
        edges: The first token of each text, rising, each a word's; no span crosses into the next text.
        longest: ``[W]`` words at most of a span that begins here, at least 1.
        p: The parameter of the distribution.
        numbers: ``[W]`` uniform in [0, 1).

    Returns:
        ``[U]`` the first token of each span, rising.
    """
    shares = np.zeros(int(longest.max(initial=1)) + 1)  # of lengths up to each; by products: alike on any machine
    left = 1.0
    for length in range(1, len(shares)):
        left *= 1 - p
        shares[length] = 1 - left
    lengths = np.minimum(np.searchsorted(shares, numbers * shares[longest], side="right"), longest)
    here = np.searchsorted(words, edges)
    ends = np.append(here[1:], len(words))
    begun = [here[:0]]
    while len(here):
        begun.append(here)
        here = here + lengths[here]
        within = here < ends
        here, ends = here[within], ends[within]
    first: Ints = words[np.sort(np.concatenate(begun))]
    return first


def in_rows(values: Floats, counts: Ints) -> tuple[Floats, Bools]:
    """Values end to end, laid out in rows: ``[S, longest]``, infinity behind each row's own, and which are its own.

    Rows are sorted apart, not as parts of one list: the numbers of a row then lose no digit to its number, and a sequence
    is masked alike whichever others it is sorted with.
    """
    inside: Bools = np.arange(int(counts.max(initial=1))) < counts[:, None]
    rows = np.full(inside.shape, np.inf)
    rows[inside] = values
    return rows, inside


def fill_quotas(firsts: Ints, rows: Ints, quotas: Ints, keys: Floats, turns: Floats) -> Bools:
    """Chooses whole units of each sequence, as many tokens as its quota says on the average of the sequences.

    A sequence's units are laid around a circle in random order, and those that begin within as many places as are wanted,
    from a random place on, are chosen: each unit is as likely as any other, whatever its length, so that each token is as
    likely as any other. Where that is more or less than the quota, by a part of a unit, the next sequences of the batch
    are to have as much less or more. A sequence in which none would be chosen has one, any as likely as another.

    Args:
        firsts: ``[U]`` the first token of each unit, rising; the first tokens of sequences are among them.
        rows: ``[S+1]`` where each sequence begins among the tokens; the last is T.
        quotas: ``[S]`` tokens to choose.
        keys: ``[T]`` uniform numbers; a unit's is that of its first token.
        turns: ``[S]`` uniform in [0, 1).

    Returns:
        ``[T]`` which tokens are chosen: at least one unit of each sequence that has any.
    """
    tokens = int(rows[-1])
    owner = np.searchsorted(rows, firsts, side="right") - 1
    per_row = np.bincount(owner, minlength=len(quotas))
    by_row, inside = in_rows(keys[firsts], per_row)
    order = (by_row.argsort(axis=1) + (np.cumsum(per_row) - per_row)[:, None])[inside]
    sizes = np.diff(np.append(firsts, tokens))
    ends = np.zeros(len(firsts) + 1, dtype=np.int64)  # of the units on their circles, circle behind circle
    np.cumsum(sizes[order], out=ends[1:])
    marks = np.zeros(len(firsts) + 1, dtype=np.int8)
    for first, behind in _arcs(ends, rows, quotas, rows[:-1] + (turns * np.diff(rows)).astype(np.int64)):
        marks[first] += 1
        marks[behind] -= 1
    taken = np.zeros(len(firsts), dtype=bool)
    taken[order] = np.cumsum(marks[:-1]) > 0
    chosen: Bools = np.repeat(taken, sizes)
    return chosen


def _arcs(ends: Ints, rows: Ints, quotas: Ints, starts: Ints) -> Iterator[tuple[int, int]]:
    """The units to take of each circle, as ranges of them; two where an arc goes on behind its circle's first place.

    Args:
        ends: ``[U+1]`` where each unit ends on the circles; the first entry is 0.
        rows: ``[S+1]`` where each circle begins.
        quotas: ``[S]`` tokens to choose.
        starts: ``[S]`` where each arc begins.
    """
    begun = np.zeros(int(rows[-1]) + 1, dtype=np.int64)  # units that begin before each place
    begun[ends[:-1] + 1] = 1
    np.cumsum(begun, out=begun)
    owed = 0
    for row, quota in enumerate(quotas.tolist()):
        first, behind, start = int(rows[row]), int(rows[row + 1]), int(starts[row])
        stop = start + min(max(quota - owed, 0), behind - first)
        places = ((start, min(stop, behind)), (first, stop - (behind - first)))
        units = [(int(begun[low]), int(begun[high])) for low, high in places if low < high]
        got = sum(int(ends[last] - ends[one]) for one, last in units)
        if not got and behind > first:
            one = int(begun[first])
            units, got = [(one, one + 1)], int(ends[one + 1] - ends[one])
        owed += got - quota
        yield from units
