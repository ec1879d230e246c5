"""``bertkit embed`` of a table reads it while it is embedded: a window of it is in memory, whatever its form."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from job_tests import review

from bertkit.jobs import embedder
from bertkit.jobs.embedder import Embedder
from bertkit.jobs.lines_in import TABLES, texts_in
from bertkit.labelled import tables
from bertkit.settings.embedding import EmbedSettings

ROWS, WINDOW, LOOKED_AT = 600, 32, 16
AHEAD = {".csv": 1, ".tsv": 1, ".jsonl": LOOKED_AT, ".parquet": LOOKED_AT}
"""Records that a reader takes before the first is asked for: a header, those that say the columns, a batch of the format."""


def table(path: Path) -> Path:
    texts = [review(number)[0] for number in range(ROWS)]
    if path.suffix == ".parquet":
        vectors = [[0.0] * 8] * ROWS
        pyarrow.parquet.write_table(pyarrow.table({"said": texts, "vector": vectors}), path, row_group_size=ROWS)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"said": text}) + "\n" for text in texts))
    else:
        sign = {".csv": ",", ".tsv": "\t"}[path.suffix]
        path.write_text("".join(f"{number}{sign}{text}\n" for number, text in [("id", "said"), *enumerate(texts)]))
    return path


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lines or records that each reading of a file has taken so far."""
    counts: list[int] = []
    lines, rows = tables.read_lines, tables._rows_of

    def read_lines(path: Path, **how: Any) -> Iterator[str]:
        counts.append(0)
        for line in lines(path, **how):
            counts[-1] += 1
            yield line

    def rows_of(batch: Any, path: Path, before: int) -> list[dict[str, Any]]:
        counts[:] = [before + batch.num_rows]
        return rows(batch, path, before)

    monkeypatch.setattr(tables, "read_lines", read_lines)
    monkeypatch.setattr(tables, "_rows_of", rows_of)
    return counts


@pytest.mark.parametrize("ending", TABLES)
def test_it_never_reads_more_than_a_window_ahead(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[int], ending: str
) -> None:
    monkeypatch.setattr(embedder, "_TEXTS", WINDOW)
    monkeypatch.setattr(tables, "_LOOKED_AT", LOOKED_AT)
    path = table(tmp_path / f"own{ending}")
    done, read = Embedder.of(EmbedSettings(model=str(tiny))), [0]
    for window in done.windows(texts_in([str(path)], "said", sys.stdin)):
        assert done.texts <= taken[-1] <= window.first + WINDOW + AHEAD[ending]
        assert window.texts == [review(number)[0] for number in range(window.first, done.texts)]
        read.append(taken[-1])
    assert done.texts == ROWS
    assert len(set(read)) > ROWS / (WINDOW + LOOKED_AT)  # the reading went on with the embedding


def test_of_parquet_the_column_alone_is_read(tmp_path: Path) -> None:
    path = table(tmp_path / "own.parquet")
    known, records = tables.open_table(path, only=("said",))
    assert known == ["said", "vector"]
    assert {tuple(cells) for _, cells in records} == {("said",)}
    assert {tuple(cells) for _, cells in tables.open_table(path)[1]} == {("said", "vector")}
