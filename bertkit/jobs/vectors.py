"""Files of vectors, written part by part: ``.npy`` with its header made at the end, and Parquet.

A file is written under another name and renamed when it is whole. H is the width of the vectors.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_HEADER = 128  # bytes of an .npy's: room for any count of rows, and a multiple of 64 as the format has it
_MAGIC = b"\x93NUMPY\x01\x00"


class Writer(Protocol):
    """What takes the vectors of one window after another."""

    def add(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]], vectors: Floats) -> None:
        """``[n, H]`` vectors, and columns of n values that say what each is of."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class NpyWriter:
    """An array ``[rows, H]`` of float32, for ``numpy.load`` (with ``mmap_mode="r"`` too). The columns are left out."""

    def __init__(self, path: Path, width: int) -> None:
        self._file = path.open("wb")
        self._width, self._rows = width, 0
        self._file.write(bytes(_HEADER))

    def add(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]], vectors: Floats) -> None:
        """See :class:`Writer`."""
        self._file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
        self._rows += len(vectors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._file:
            about = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({self._rows}, {self._width}), }}".encode()
            room = _HEADER - len(_MAGIC) - 2
            self._file.seek(0)
            self._file.write(_MAGIC + room.to_bytes(2, "little") + about.ljust(room - 1) + b"\n")


class ParquetWriter:
    """A table with a column ``vector`` of H float32 beside the named ones.

    Args:
        path: The file.
        width: H.
        columns: Names of the other columns and pyarrow's names of their types.
        about: What the schema's metadata says under ``bertkit``.
    """

    def __init__(self, path: Path, width: int, columns: Mapping[str, str], about: Mapping[str, Any]) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow, self._width = pyarrow, width
        fields = [(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()]
        schema = pyarrow.schema([*fields, ("vector", pyarrow.list_(pyarrow.float32(), width))])
        self._schema = schema.with_metadata({"bertkit": json.dumps(dict(about))})
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema)

    def add(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]], vectors: Floats) -> None:
        """See :class:`Writer`."""
        flat = self._arrow.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
        arrays = [self._arrow.array(columns[name], type=self._schema.field(name).type) for name in self._schema.names[:-1]]
        arrays.append(self._arrow.FixedSizeListArray.from_arrays(flat, self._width))
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.close()


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; behind it the file is flushed to the disk and renamed, or removed where it failed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
