"""What a corpus is read from: sources in order, each with a name, a digest of its content, and its lines in blocks.

A source knows how its bytes become lines; what parts documents is :mod:`bertkit.corpus.documents`' business.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bertkit.corpus.lines import Span
from bertkit.errors import BertkitError, DataError, MissingError, ResourceError

Told = Callable[[int], None]
"""Told how many bytes more have been gone through."""

Stamp = tuple[int, int]

_BLOCK = 1 << 22  # bytes hashed at once


class Source(Protocol):
    """One thing that text is read from.

    Attributes:
        name: For messages: a path, ``stdin``, ``hf:owner/name/…``.
        size: Bytes as they lie on the disk or the hub; None where nobody knows.
        text_bytes: Bytes of text in it, exactly or estimated; None where nobody knows.
        marked: The format marks where documents end (None among the lines), so blank lines part none.
        once: It can be read once only (a pipe).
        stamp: Size and time of change of a file; None where there is none.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int | None: ...  # noqa: D102
    @property
    def text_bytes(self) -> int | None: ...  # noqa: D102
    @property
    def marked(self) -> bool: ...  # noqa: D102
    @property
    def once(self) -> bool: ...  # noqa: D102

    @property
    def stamp(self) -> Stamp | None: ...  # noqa: D102

    def digest(self, told: Told | None = None) -> str:
        """What decides the lines: format and a hash of the bytes, or the hub's revision; no name. A pipe's is known once read."""

    def spans(self, *, replace: bool) -> Iterator[Span]:
        """The lines, some at a time; ``replace``: bytes that are not UTF-8 become U+FFFD instead of stopping."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sources, read one behind the other."""

    sources: tuple[Source, ...]

    @property
    def bytes(self) -> int | None:
        """Bytes of all sources as they are stored; None where one's are not known."""
        return _sum([source.size for source in self.sources])

    @property
    def text_bytes(self) -> int | None:
        """Bytes of text in all sources, those of packed ones estimated; None where one's are not known."""
        return _sum([source.text_bytes for source in self.sources])

    @property
    def once(self) -> bool:
        """Whether one of the sources can be read only once."""
        return any(source.once for source in self.sources)

    @property
    def name(self) -> str:
        """The first names, for messages."""
        names = [source.name for source in self.sources[:3]]
        return ", ".join(names) + (f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else "")

    def stamps(self) -> list[Stamp | None]:
        """The stamp of each source in order.

        Raises:
            MissingError: A source cannot be read.
        """
        return [source.stamp for source in self.sources]

    def must_be_as(self, stamps: Sequence[Stamp | None]) -> None:
        """Refuses what was made of files that were changed meanwhile: their digests are of another text than was read.

        Raises:
            DataError: A source has another stamp than before.
            MissingError: It cannot be read any more.
        """
        for source, stamp in zip(self.sources, stamps, strict=True):
            if source.stamp != stamp:
                raise DataError(
                    "The file was changed while it was read.", where=source.name, hint="Start again when nothing writes to it."
                )

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


def _sum(sizes: list[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)


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
        raise unreadable(path, error) from error
    return digest.hexdigest()


def unreadable(path: Path, error: OSError) -> BertkitError:
    """The error for a file that the system will not give; a disk that fails is another matter (exit 5)."""
    if error.errno == errno.EIO:
        return ResourceError("The disk reports an input/output error.", where=str(path))
    return MissingError(f"{path} cannot be read: {error.strerror or error}.", where=str(path))
