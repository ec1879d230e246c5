"""What a corpus is read from: sources in order, each with a name, a digest of its content, and its lines in blocks.

A source knows how its bytes become lines; what parts documents is :mod:`bertkit.corpus.documents`' business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bertkit.corpus.lines import Span, read_spans
from bertkit.errors import MissingError

Told = Callable[[int], None]
"""Told how many bytes more have been gone through."""

_BLOCK = 1 << 22  # bytes hashed at once


class Source(Protocol):
    """One thing that text is read from.

    Attributes:
        name: For messages: a path, ``stdin``, ``hf:owner/name/…``.
        size: Bytes as they lie on the disk or the hub; None where nobody knows.
        marked: The format marks where documents end (None among the lines), so blank lines part none.
        once: It can be read once only (a pipe).
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int | None: ...  # noqa: D102
    @property
    def marked(self) -> bool: ...  # noqa: D102
    @property
    def once(self) -> bool: ...  # noqa: D102

    def digest(self, told: Told | None = None) -> str:
        """What decides the lines: a hash of the bytes, or the hub's revision; never a name. A pipe has one once it is read."""

    def spans(self, *, replace: bool) -> Iterator[Span]:
        """The lines, some at a time; ``replace``: bytes that are not UTF-8 become U+FFFD instead of stopping."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file of UTF-8 text."""

    path: Path

    marked = False
    once = False

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return _size(self.path)

    def digest(self, told: Told | None = None) -> str:
        """SHA-256 (hex) of the bytes."""
        return hash_file(self.path, told)

    def spans(self, *, replace: bool) -> Iterator[Span]:
        """See :class:`Source`."""
        return read_spans(self.path, replace=replace)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sources, read one behind the other."""

    sources: tuple[Source, ...]

    @property
    def bytes(self) -> int | None:
        """Bytes of all sources as they are stored; None where one's are not known."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def once(self) -> bool:
        """Whether one of the sources can be read only once."""
        return any(source.once for source in self.sources)

    @property
    def name(self) -> str:
        """The first names, for messages."""
        names = [source.name for source in self.sources[:3]]
        return ", ".join(names) + (f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else "")

    def digests(self, progress: Callable[[int, int | None], None] | None = None) -> list[str]:
        """The digest of each source in order; ``progress`` is told the bytes done and the bytes in all.

        Raises:
            MissingError: A source cannot be read.
        """
        total, done = self.bytes, 0

        def told(more: int) -> None:
            nonlocal done
            done += more
            if progress:
                progress(done, total)

        return [source.digest(told) for source in self.sources]


def hash_file(path: Path, told: Told | None = None) -> str:
    """SHA-256 (hex) of a file's bytes.

    Raises:
        MissingError: It cannot be read.
    """
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_BLOCK))
    try:
        with path.open("rb", buffering=0) as file:
            while size := file.readinto(buffer):
                digest.update(buffer[:size])
                if told:
                    told(size)
    except OSError as error:
        raise MissingError(f"{path} cannot be read: {error.strerror}.", where=str(path)) from error
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise MissingError(f"{path} cannot be read: {error.strerror}.", where=str(path)) from error
