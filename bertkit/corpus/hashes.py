"""Lines in, 64-bit hashes of lines and of documents out; equal texts have equal hashes, wherever they stand.

A document's hash is a chain over those of its lines, ``sum of hash[i] * R**i`` modulo 2**64, stirred at the end: it can
be computed piece by piece, and where it stands in a piece is two numbers, which a build can write down and go on from.
Two different texts share a hash with a probability of 2**-64; nobody should trust that against an enemy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]

_R = 0x9E3779B97F4A7C15  # odd, so that no hash of a line is lost in the product
_MASK = (1 << 64) - 1


def line_hashes(lines: Iterable[str]) -> Hashes:
    """``[n]`` uint64 of each line without white space at its ends: BLAKE2b of its UTF-8 bytes."""
    blake = hashlib.blake2b
    joined = b"".join([blake(line.strip().encode("utf-8", "surrogatepass"), digest_size=8).digest() for line in lines])
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64, copy=False)


def chains(hashes: Hashes, edges: Ints) -> Hashes:
    """``[pieces]`` uint64: the chain of the lines from each edge up to the next; an empty piece's is 0."""
    count = np.diff(edges)
    powers = np.full(int(count.max(initial=0)) + 1, _R, dtype=np.uint64)
    powers[0] = 1
    np.cumprod(powers, out=powers)
    terms = np.zeros(len(hashes) + 1, dtype=np.uint64)
    np.multiply(hashes, powers[np.arange(len(hashes)) - np.repeat(edges[:-1], count)], out=terms[:-1])
    sums: Hashes = np.add.reduceat(terms, edges[:-1])
    sums[count == 0] = 0
    return sums


def joined_chain(first: int, lines: int, second: int) -> int:
    """The chain of a piece of ``lines`` lines with another behind it."""
    return (first + pow(_R, lines, 1 << 64) * second) & _MASK


def document_hashes(chain: Hashes, lines: Ints) -> Hashes:
    """``[n]`` uint64 of whole documents, of their chains and counts of lines."""
    x = chain + lines.astype(np.uint64) * np.uint64(_R)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    stirred: Hashes = x ^ (x >> np.uint64(31))
    return stirred


def document_hash(lines: Sequence[str]) -> int:
    """The hash of one document, of its lines that are not blank, as a build computes it."""
    edges = np.array([0, len(lines)])
    return int(document_hashes(chains(line_hashes(lines), edges), np.diff(edges))[0])


class Seen:
    """Which hashes came before? Memory holds 8 bytes of each different one (twice that for a moment)."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []  # each sorted and at most half as long as the one before it

    def first(self, hashes: Hashes) -> NDArray[np.bool_]:
        """``[n]`` bool: this hash comes for the first time; all are remembered."""
        order = np.argsort(hashes, kind="stable")
        ranked = hashes[order]
        new = np.ones(len(ranked), dtype=np.bool_)
        new[1:] = ranked[1:] != ranked[:-1]
        for run in self._runs:
            new &= run[np.minimum(np.searchsorted(run, ranked), len(run) - 1)] != ranked
        run = ranked[new]
        while len(run) and self._runs and 2 * len(run) > len(self._runs[-1]):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")  # merges what is sorted
        if len(run):
            self._runs.append(run)
        out = np.empty(len(hashes), dtype=np.bool_)
        out[order] = new
        return out
