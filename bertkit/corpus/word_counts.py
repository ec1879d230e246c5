"""Words in, how often each came: exact counts in bounded memory, however many different words there are.

Words are counted in a table. When it is full it is written to files, parted by the words' hashes, and begun anew; at the end
the parts are added up one after another: a word is always in the same part.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Self

AT_ONCE = 500_000
"""Different words counted at once: some 80 MB."""

_FILES = 64
_BLOCK = 1 << 20  # bytes read at once


class WordCounts:
    """Counts words; a context manager, whose files are gone when it is left, or when the process ends in any way.

    Args:
        folder: Where the files lie if any are needed, on a disk (not in memory); None: where the system puts such files.
        at_once: Different words counted at once.
    """

    def __init__(self, folder: Path | None = None, *, at_once: int = AT_ONCE) -> None:
        self._folder, self._at_once = folder, at_once
        self._table: defaultdict[str, int] = defaultdict(int)
        self._files: list[IO[bytes]] = []
        self._entries = [0] * _FILES  # of each file
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._open.close()

    def add(self, words: Mapping[str, int], times: int = 1) -> None:
        """Adds words, each as often as it is told here, ``times`` times over; none of them holds a tab or a line end."""
        table = self._table
        for word, count in words.items():
            table[word] += count * times
        if len(table) > self._at_once:
            self._spill()

    def items(self) -> Iterator[tuple[str, int]]:
        """Every word with its count, once each, in no order; memory holds :data:`AT_ONCE` words, give or take chance."""
        if not self._files:
            yield from self._table.items()
            return
        self._spill()
        for file, entries in zip(self._files, self._entries, strict=True):
            rounds = -(-entries // self._at_once)
            for number in range(rounds):
                yield from _added_up(file, number, rounds).items()

    def _spill(self) -> None:
        if not self._files:
            # On POSIX such a file has no name, so not even a killed process leaves one.
            self._files = [self._open.enter_context(TemporaryFile(dir=self._folder)) for _ in range(_FILES)]  # noqa: SIM115
        parts: list[list[bytes]] = [[] for _ in range(_FILES)]
        for word, count in self._table.items():
            raw = word.encode()
            parts[zlib.crc32(raw) % _FILES].append(b"%b\t%d\n" % (raw, count))
        self._table.clear()
        for number, (file, part) in enumerate(zip(self._files, parts, strict=True)):
            file.seek(0, 2)
            file.write(b"".join(part))
            self._entries[number] += len(part)


def _added_up(file: IO[bytes], number: int, rounds: int) -> dict[str, int]:
    """The words of a file whose hash falls to this one of ``rounds`` rounds, with their counts."""
    counts: defaultdict[bytes, int] = defaultdict(int)
    file.seek(0)
    kept = b""
    while block := file.read(_BLOCK):
        *lines, kept = (kept + block).split(b"\n")
        for line in lines:
            word, _, count = line.partition(b"\t")
            if rounds == 1 or zlib.crc32(word) // _FILES % rounds == number:
                counts[word] += int(count)
    return {word.decode(): count for word, count in counts.items()}
