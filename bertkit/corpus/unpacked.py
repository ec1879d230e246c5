"""The bytes of a file as they were before it was packed: gzip, bzip2, xz and zstd, known by their first bytes.

Several packed streams one behind the other (``cat a.gz b.gz``, pigz, pzstd) are one file. Memory holds a block of each side.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from bertkit.errors import DataError

PACKED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
"""Endings of packed files."""

UNPACKING = 3
"""Packed text, Parquet's too, is about so many times as long when it is unpacked."""

_BEGINNINGS = {
    "gzip": rb"\x1f\x8b",
    "bzip2": rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)",  # a block, or the end of an empty stream
    "xz": rb"\xfd7zXZ\x00",
    "zstd": rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18",  # a frame, or one without content (pzstd's)
}
_LOOKED_AT = 10  # bytes of a file's beginning
_BLOCK = 1 << 17  # packed bytes read at once
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)


class Unpacked:
    """A stream of bytes, unpacked where it is packed.

    Attributes:
        name: For messages.
        packing: ``gzip``, ``bzip2``, ``xz`` or ``zstd``; None where the bytes are as they are.
        given: Unpacked bytes handed out so far.

    Raises:
        DataError: The name ends like a packed file's, and the content is something else.
    """

    def __init__(self, raw: BinaryIO, name: str) -> None:
        self.name = name
        self.given = 0
        self._file = _Counted(raw)
        self._ahead = b""
        start = self._file.peek(_LOOKED_AT)
        self.packing = _packing(start)
        meant = next((packing for ending, packing in PACKED.items() if name.lower().endswith(ending)), None)
        if meant is not None and self.packing is None:
            what = "is empty" if not start else "does not begin so"
            raise DataError(
                f"The file is named like a {meant} file and {what}.", where=name, hint="Fetch it again, or rename it."
            )
        self._read: Callable[[int], bytes] = self._file.read if self.packing is None else _reader(self.packing, self._file)

    @property
    def taken(self) -> int:
        """Bytes of the file itself gone through so far."""
        return self._file.taken

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end.

        Raises:
            DataError: The packed data are damaged or cut off.
        """
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        data = ahead or self._unpack(size)
        self.given += len(data)
        return data

    def peek(self, size: int) -> bytes:
        """The next bytes, without going on: ``size`` of them, fewer only at the end."""
        while len(self._ahead) < size and (more := self._unpack(size - len(self._ahead))):
            self._ahead += more
        return self._ahead[:size]

    def _unpack(self, size: int) -> bytes:
        if self.packing is None:
            return self._read(size)
        try:
            return self._read(size)
        except _DAMAGED as error:
            if self._file.failed:  # the disk's fault, not the data's
                raise
            cut = "cut off" if isinstance(error, EOFError) or "Truncated" in str(error) else f"damaged ({error})"
            raise DataError(
                f"The {self.packing} data are {cut}.",
                where=f"{self.name}, up to byte offset {self.taken}, behind {self.given + len(self._ahead)} unpacked bytes",
                hint="Fetch or pack the file again.",
            ) from None


class _Counted(io.RawIOBase):
    """A file that counts what is taken from it, and can look ahead once, whether it can seek or not."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._start = b""
        self.taken = 0
        self.failed = False

    def peek(self, size: int) -> bytes:
        while len(self._start) < size and (more := self._raw.read(size - len(self._start))):
            self._start += more
        return self._start

    def read(self, size: int = -1, /) -> bytes:
        if self._start:
            data, self._start = self._start[:size], self._start[size:]
        else:
            try:
                data = self._raw.read(size)
            except OSError:
                self.failed = True
                raise
        self.taken += len(data)
        return data

    def readable(self) -> bool:
        return True


def _packing(start: bytes) -> str | None:
    return next((packing for packing, beginning in _BEGINNINGS.items() if re.match(beginning, start)), None)


def _reader(packing: str, file: _Counted) -> Callable[[int], bytes]:
    if packing == "zstd":
        import pyarrow

        stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")
        return stream.read  # type: ignore[no-any-return]
    make: dict[str, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(wbits=31),
        "bzip2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    return _Members(file, make[packing]).read


class _Members:
    """Packed streams of the standard library's formats, one behind the other."""

    def __init__(self, file: _Counted, make: Callable[[], Any]) -> None:
        self._file = file
        self._make = make
        self._member = make()
        self._left = b""  # taken from the file and not unpacked yet

    def read(self, size: int) -> bytes:
        while True:
            if self._member.eof and not self._next():
                return b""
            wanting = getattr(self._member, "needs_input", True)  # zlib's hand back what they could not take
            data = self._left or (self._file.read(_BLOCK) if wanting else b"")
            out: bytes = self._member.decompress(data, size)
            self._left = self._member.unused_data or getattr(self._member, "unconsumed_tail", b"")
            if out:
                return out
            if wanting and not data and not self._member.eof:
                raise EOFError

    def _next(self) -> bool:
        """Begins the next stream; zeros between two, or behind the last, are padding."""
        left = self._left.lstrip(b"\0")
        while not left and (more := self._file.read(_BLOCK)):
            left = more.lstrip(b"\0")
        self._left = left
        if left:
            self._member = self._make()
        return bool(left)
