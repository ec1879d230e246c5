"""Sources that lie in the file system: files of every format, and pipes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO

from bertkit.corpus.kinds import LOOKED_AT, Kind, kind_by_content, kind_by_name, stream_spans
from bertkit.corpus.lines import Span
from bertkit.corpus.records import column_bytes, open_parquet, parquet_spans
from bertkit.corpus.sources import Stamp, Told, hash_file, unreadable
from bertkit.corpus.unpacked import PACKED, UNPACKING, Unpacked


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file, packed or not.

    Attributes:
        path: Where it lies.
        kind: Its format.
        field: The field of the text, where it holds records.
    """

    path: Path
    kind: Kind = "text"
    field: str = "text"

    once = False

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise unreadable(self.path, error) from error

    @property
    def stamp(self) -> Stamp:
        """Size and time of change."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise unreadable(self.path, error) from error
        return found.st_size, found.st_mtime_ns

    @property
    def _packed(self) -> bool:
        return self.path.suffix.lower() in PACKED

    @property
    def text_bytes(self) -> int:
        """Bytes of its text; for packed files about three times their own."""
        if self.kind == "parquet" and not self._packed:
            return _column_bytes(self.name, self.field, self.size)
        return self.size * (UNPACKING if self._packed else 1)

    @property
    def marked(self) -> bool:
        """Every format but plain text marks its documents."""
        return self.kind != "text"

    def digest(self, told: Told | None = None) -> str:
        """SHA-256 (hex) of the bytes, behind the format where it is not plain text."""
        digest = hash_file(self.path, told)
        return digest if self.kind == "text" else f"{self.kind}:{digest}"

    def spans(self, *, replace: bool) -> Iterator[Span]:
        """See :class:`bertkit.corpus.sources.Source`.

        Raises:
            MissingError: The file cannot be read.
            DataError: Its content is wrong.
        """
        try:
            if self.kind == "parquet" and not self._packed:
                yield from parquet_spans(self.name, self.field, self.name, self.size, replace=replace)
                return
            with self.path.open("rb", buffering=0) as file:
                yield from stream_spans(Unpacked(file, self.name), self.kind, self.field, replace=replace)
        except OSError as error:
            raise unreadable(self.path, error) from error


@lru_cache(maxsize=10_000)
def _column_bytes(path: str, field: str, size: int) -> int:
    """The bytes of a column; asked for more than once, and each time a file would be opened."""
    return column_bytes(open_parquet(path, field, path), field)


def file_kind(path: Path) -> tuple[Kind, bool]:
    """The format of a file, and whether it was known by its content alone.

    Raises:
        MissingError: The file cannot be read.
        DataError: It is packed and damaged.
    """
    named = kind_by_name(path.name)
    if named is not None:
        return named, False
    try:
        with path.open("rb", buffering=0) as file:
            return kind_by_content(Unpacked(file, str(path)).peek(LOOKED_AT)), True
    except OSError as error:
        raise unreadable(path, error) from error


class Pipe:
    """A stream that can be read once: the standard input, or a pipe.

    Args:
        name: For messages.
        opened: Opens it, at the first look.
        kind: Its format; None: by its content.
        field: The field of the text, where it holds records.
    """

    size = None
    text_bytes = None
    stamp = None
    once = True

    def __init__(self, name: str, opened: Callable[[], BinaryIO], *, kind: Kind | None, field: str) -> None:
        self.name = name
        self._opened = opened
        self._kind = kind
        self._field = field

    @cached_property
    def _hashed(self) -> _Hashed:
        return _Hashed(self._opened())

    @cached_property
    def _stream(self) -> Unpacked:
        return Unpacked(self._hashed, self.name)  # type: ignore[arg-type]

    @cached_property
    def kind(self) -> Kind:
        """Its format, which takes a look at its beginning."""
        return self._kind or kind_by_content(self._stream.peek(LOOKED_AT))

    @property
    def marked(self) -> bool:
        """Every format but plain text marks its documents."""
        return self.kind != "text"

    def digest(self, told: Told | None = None) -> str:
        """SHA-256 (hex) of the bytes that were read, behind the format where it is not plain text; known once all are read."""
        assert self._hashed.ended, "a pipe's digest is asked for before the pipe was read"
        digest = self._hashed.sum.hexdigest()
        return digest if self.kind == "text" else f"{self.kind}:{digest}"

    def spans(self, *, replace: bool) -> Iterator[Span]:
        """See :class:`bertkit.corpus.sources.Source`; once only."""
        try:
            yield from stream_spans(self._stream, self.kind, self._field, replace=replace)
        except OSError as error:
            raise unreadable(Path(self.name), error) from error
        finally:
            self._hashed.close()


class _Hashed(io.RawIOBase):
    """A file that sums what is read from it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.sum = hashlib.sha256()
        self.ended = False

    def read(self, size: int = -1, /) -> bytes:
        data = self._raw.read(size)
        self.ended = not data
        self.sum.update(data)
        return data

    def close(self) -> None:
        self._raw.close()
        super().close()
