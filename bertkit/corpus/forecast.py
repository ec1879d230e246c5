"""What a build will take, told before it begins: disk by the tokens of a sample of the text, memory by its processes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from bertkit.corpus.documents import CorpusSettings, ReadReport, read_lines
from bertkit.corpus.passes import Made, Maker, cut_batches
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store_files import file_sizes
from bertkit.errors import ResourceError

SAMPLE = 200_000  # characters at the beginning of the text
SMALL = 8_000_000  # bytes of text from which on a forecast is worth its tenth of a second
FIRST, WORKER = 80_000_000, 100_000_000  # bytes of memory: of the process that reads and writes, and of each worker
_BESIDE = 16  # bytes a line while repeated lines are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a build takes.

    Attributes:
        disk: Bytes, what lies beside the store while it is made included.
        free: Bytes of disk that are free for it.
        memory: Bytes of all processes.
        workers: Processes beside the one that reads and writes.
    """

    disk: int
    free: int
    memory: int
    workers: int


def foresee(
    corpus: Corpus,
    settings: CorpusSettings,
    maker: Maker,
    *,
    vocab_size: int,
    parts: int,
    workers: int,
    folder: Path,
) -> Forecast | None:
    """A forecast; None where the text is small, or nobody knows how large it is.

    Args:
        corpus: The text; its beginning is read.
        settings: How it is read.
        maker: Makes ids of the sample.
        vocab_size: V.
        parts: Of how many shards one is built.
        workers: Processes beside the one that reads and writes.
        folder: Where the store goes; it is there already.

    Raises:
        DataError: A bad byte in the sample.
    """
    size = corpus.text_bytes
    if corpus.once or size is None or size < SMALL:
        return None
    found = _sample(corpus, settings, maker)
    if found is None:
        return None
    sample, read = found
    times = size / read / parts
    tokens, documents = round(times * len(sample.ids)), round(times * len(sample.lines))
    arrays = file_sizes(vocab_size, words=sample.word_begins is not None, tokens=tokens, documents=documents)
    beside = round(times * len(sample.line_hashes)) * _BESIDE
    return Forecast(
        disk=sum(arrays.values()) + beside,
        free=shutil.disk_usage(folder).free,
        memory=FIRST + WORKER * max(1, workers),
        workers=workers,
    )


def require_disk(forecast: Forecast, there: int, folder: Path) -> None:
    """Is there room for what is still to be written? ``there``: bytes that an earlier build left.

    Raises:
        ResourceError: There is not (exit 5).
    """
    need = forecast.disk - there
    if need > forecast.free:
        raise ResourceError(
            f"The token store of this text takes about {_mb(need)} of disk, and {_mb(forecast.free)} are free.",
            where=str(folder),
            hint="Make room, or name another folder for it: BERTKIT_CACHE, or --output of `bertkit corpus build`.",
        )


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _sample(corpus: Corpus, settings: CorpusSettings, maker: Maker) -> tuple[Made, int] | None:
    """The beginning of the text as ids, and the bytes of its lines; None where it has none."""
    batch = next(cut_batches(read_lines(corpus, settings, ReadReport()), size=SAMPLE), None)
    if batch is None or not batch.lines:
        return None
    return maker(batch), sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in batch.lines) + len(batch.ends)


__all__ = ["Forecast", "foresee", "require_disk"]
