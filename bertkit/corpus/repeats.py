"""Hashes in, how often each came: exact counts in bounded memory, whatever their number.

The hashes go to one file as they come, 8 bytes each. When all are there they are parted by value into files that fit
memory, and each of those is counted on its own: equal hashes always meet.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import DataError

Hashes = NDArray[np.uint64]

AT_ONCE = 1 << 19  # hashes counted at once: 4 MB, some 20 MB with what sorting takes
FILES = 256  # parts at most; a larger part is read several times, a range of values each time
_WRITTEN_AT_ONCE = 1 << 16
_VALUES = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How often hashes came.

    Attributes:
        total: All of them.
        distinct: Different ones.
        largest: ``(hash, count)`` of those that came most often, twice at least, the most frequent first.
    """

    total: int
    distinct: int
    largest: tuple[tuple[int, int], ...] = ()

    @property
    def repeated(self) -> int:
        """Those that had come before: all but the first of each."""
        return self.total - self.distinct


class RepeatCounter:
    """Counts hashes.

    Args:
        folder: Where its file lies; made where it is not there.
        size: Bytes of the file to go on from, as :meth:`flush` gave them; what was written behind them goes.
        largest: How many of the most frequent hashes are kept.
        at_once: Hashes that are counted at once.

    Raises:
        DataError: The file is shorter than ``size``.
    """

    def __init__(self, folder: Path, *, size: int = 0, largest: int = 20, at_once: int = AT_ONCE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._path = folder / "hashes.bin"
        with self._path.open("ab") as file:
            if file.tell() < size:
                raise DataError(f"The file of hashes should have {size:,} bytes and has fewer.", where=str(self._path))
            file.truncate(size)
        self._waiting: list[Hashes] = []
        self._count = 0  # of those that wait
        self._largest, self._at_once = largest, at_once

    def add(self, hashes: Hashes) -> None:
        """Adds ``[n]`` uint64 hashes."""
        self._waiting.append(np.array(hashes, dtype=np.uint64))
        self._count += len(hashes)
        if self._count >= _WRITTEN_AT_ONCE:
            self._write()

    def flush(self) -> int:
        """Puts everything on disk; returns the bytes of the file, from which another counter can go on."""
        self._write()
        with self._path.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def finish(self, *, keep: bool = False) -> Repeats:
        """Counts, and removes the file unless it is to be kept, for another to count again."""
        self._write()
        total = self._path.stat().st_size // 8
        distinct, largest = 0, np.zeros(0, dtype=[("hash", np.uint64), ("count", np.int64)])
        for values, counts in self._parts(total):
            distinct += len(values)
            found = np.empty(len(values), dtype=largest.dtype)
            found["hash"], found["count"] = values, counts
            largest = self._most(np.concatenate([largest, found[counts > 1]]))
        if not keep:
            self._path.unlink()
        return Repeats(total=total, distinct=distinct, largest=tuple((int(h), int(n)) for h, n in largest.tolist()))

    def _write(self) -> None:
        if self._waiting:
            with self._path.open("ab") as file:
                file.write(np.concatenate(self._waiting).astype("<u8").tobytes())
            self._waiting, self._count = [], 0

    def _most(self, found: NDArray[np.void]) -> NDArray[np.void]:
        return found[np.lexsort((found["hash"], -found["count"]))[: self._largest]]

    def _parts(self, total: int) -> Iterator[tuple[Hashes, NDArray[np.int64]]]:
        """Different values and the count of each; every value in one part alone."""
        files = min(FILES, -(-total // self._at_once))
        if files < 2:
            yield _counted(_blocks(self._path, self._at_once))
            return
        folder = self._folder / "parts"
        try:
            for path in self._parted(folder, files):
                ranges = -(-path.stat().st_size // (16 * self._at_once))  # up to twice as many: the parts are not quite even
                for number in range(ranges):
                    yield _counted(_within(path, self._at_once, number, ranges))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _parted(self, folder: Path, files: int) -> list[Path]:
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{number}.bin" for number in range(files)]
        opened = [path.open("wb") for path in paths]
        try:
            for block in _blocks(self._path, self._at_once):
                block.sort()
                cuts = np.searchsorted(block, np.array([_VALUES * n // files for n in range(1, files)], dtype=np.uint64))
                for file, part in zip(opened, np.split(block, cuts), strict=True):
                    file.write(part.astype("<u8").tobytes())
        finally:
            for file in opened:
                file.close()
        return paths


def _blocks(path: Path, at_once: int) -> Iterator[Hashes]:
    with path.open("rb") as file:
        while data := file.read(8 * at_once):
            yield np.frombuffer(data, dtype="<u8").astype(np.uint64)


def _within(path: Path, at_once: int, number: int, ranges: int) -> Iterator[Hashes]:
    """The hashes of one of ``ranges`` ranges of the low 32 bits (the high ones have parted the files)."""
    for block in _blocks(path, at_once):
        yield block if ranges == 1 else block[(block & np.uint64(0xFFFFFFFF)) * np.uint64(ranges) >> np.uint64(32) == number]


def _counted(blocks: Iterator[Hashes]) -> tuple[Hashes, NDArray[np.int64]]:
    """Values and counts over all blocks; memory holds a block and the different values."""
    values, counts = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    for block in blocks:
        some, times = np.unique(block, return_counts=True)
        if len(values):
            some, places = np.unique(np.concatenate([values, some]), return_inverse=True)
            times = np.bincount(places, weights=np.concatenate([counts, times]), minlength=len(some)).astype(np.int64)
        values, counts = some, times
    return values, counts


__all__ = ["RepeatCounter", "Repeats"]
