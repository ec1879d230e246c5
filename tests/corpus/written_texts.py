"""A corpus of documents written in every format that the readers take."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents

Documents = Sequence[Sequence[str]]


def zstd(data: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.compress(data, "zstd", asbytes=True))


PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


def as_text(documents: Documents) -> bytes:
    return "\n\n".join("\n".join(lines) for lines in documents).encode()


def as_articles(documents: Documents) -> bytes:
    marks = [f'<doc id="{n}" url="https://x/?curid={n}" title="T &quot; {n}">\n' for n in range(len(documents))]
    return "".join(mark + "\n\n".join(lines) + "\n\n</doc>\n" for mark, lines in zip(marks, documents, strict=True)).encode()


def as_json_lines(documents: Documents, ends: str = "\n") -> bytes:
    records = [{"id": str(n), "title": "", "text": ends.join(lines)} for n, lines in enumerate(documents)]
    return "".join(json.dumps(record, ensure_ascii=n % 2 == 0) + "\n" for n, record in enumerate(records)).encode()


def write_parquet(path: Path, documents: Documents, **kinds: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ["\n".join(lines) for lines in documents]
    table = pa.table({"id": list(range(len(texts))), "text": pa.array(texts, kinds.pop("type", pa.string()))})
    pq.write_table(table, path, **kinds)
    return path


def read(*paths: Path, report: ReadReport | None = None, **kinds: Any) -> list[list[str]]:
    settings = CorpusSettings(**kinds)
    return list(read_documents(open_corpus(paths, settings), settings, report or ReadReport()))
