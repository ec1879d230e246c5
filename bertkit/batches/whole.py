"""What is masked together: words, and spans of words; and how a sequence's quota is filled with them.

T tokens that are not special, end to end in S sequences; U units (words or spans), each of one sequence.
"""

from __future__ import annotations

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
    order = np.argsort(owner + keys[firsts])  # moves no unit out of its sequence
    sizes = np.diff(np.append(firsts, tokens))
    filled = np.zeros(len(firsts) + 1, dtype=np.int64)
    np.cumsum(sizes[order], out=filled[1:])
    begun = np.zeros(tokens + 1, dtype=np.int64)  # units that begin before each place of the circles, end to end
    begun[filled[:-1] + 1] = 1
    np.cumsum(begun, out=begun)
    places = rows[:-1] + (turns * np.diff(rows)).astype(np.int64)
    marks = np.zeros(len(firsts) + 1, dtype=np.int8)
    owed = 0
    for row, quota in enumerate(quotas.tolist()):
        first, behind, place = int(rows[row]), int(rows[row + 1]), int(places[row])
        wanted = min(quota - owed, behind - first)
        stop = place + max(wanted, 0)
        runs = [(place, min(stop, behind)), (first, stop - (behind - first))]  # the second where the circle closes
        units = [(int(begun[low]), int(begun[high])) for low, high in runs if low < high]
        got = sum(int(filled[last] - filled[one]) for one, last in units)
        if not got and behind > first:
            units = [(int(begun[first]), int(begun[first]) + 1)]
            got = int(filled[units[0][1]] - filled[units[0][0]])
        for one, last in units:
            marks[one] += 1
            marks[last] -= 1
        owed += got - quota
    taken = np.zeros(len(firsts), dtype=bool)
    taken[order] = np.cumsum(marks[:-1]) > 0
    chosen: Bools = np.repeat(taken, sizes)
    return chosen
