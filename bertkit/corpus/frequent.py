"""The commonest of endlessly many texts, in bounded memory (lossy counting, Manku and Motwani 2002)."""

from __future__ import annotations

LIMIT = 100_000  # texts remembered; of words some 10 MB


class FrequentTexts:
    """Counts texts. When there are more than ``limit`` different ones the rarer half is forgotten.

    Attributes:
        lost: A count may be too low by this much, never too high; 0 as long as nothing was forgotten.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.lost = 0
        self._limit = limit
        self._counts: dict[str, int] = {}

    def add(self, text: str) -> None:
        """Counts one."""
        self._counts[text] = self._counts.get(text, 0) + 1
        if len(self._counts) > self._limit:
            floor = sorted(self._counts.values())[len(self._counts) // 2]
            self._counts = {known: count for known, count in self._counts.items() if count > floor}
            self.lost += floor

    def most(self, number: int) -> list[tuple[str, int]]:
        """The commonest with their counts, the most frequent first, those as frequent by spelling."""
        return sorted(self._counts.items(), key=lambda pair: (-pair[1], pair[0]))[:number]

    def items(self) -> list[tuple[str, int]]:
        """All that are remembered."""
        return list(self._counts.items())
