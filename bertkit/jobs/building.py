"""Token stores as commands build them: where they are kept, with how many processes, with which progress. No torch here."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from bertkit.corpus.build import build_store
from bertkit.corpus.chinese import segmenter_of
from bertkit.corpus.documents import CorpusSettings, Progress
from bertkit.corpus.forecast import FIRST, WORKER, Forecast
from bertkit.corpus.joined import CorpusStore
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console, Update
from bertkit.jobs.free_memory import free_memory
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.training.threads import allowed_cores

_ALONE = 8_000_000  # bytes of text under which other processes take longer to start than they save
_MOST_WORKERS = 32  # one process reads for all of them
_WINDOW = 30.0  # seconds over which the rate of a build is taken


def cache_folder() -> Path:
    """Where token stores are kept between runs: ``BERTKIT_CACHE``, else the user's cache folder."""
    named = os.environ.get("BERTKIT_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "bertkit"


def stores_folder() -> Path:
    """Where the stores are kept."""
    return cache_folder() / "stores"


def plans_of_others() -> Path:
    """Where the plans of epochs are kept whose stores lie where nobody may write."""
    return cache_folder() / "plans"


def read_text(
    settings: CorpusSettings,
    named: NamedCorpus,
    wordpiece: WordPiece,
    console: Console,
    what: str,
    *,
    workers: int | None = None,
) -> CorpusStore:
    """The store of a corpus, out of the cache or built into it by so many processes, with its progress; which, is said."""
    corpus = named.texts
    if corpus is None:
        return named.joined(None)
    with console.progress(what, safe=True) as update:
        store, report = build_store(
            corpus,
            wordpiece,
            settings,
            cache=stores_folder(),
            workers=build_workers(corpus.text_bytes) if workers is None else workers,
            words=segmenter_of(settings.words),
            progress=with_rate(update),
            told=lambda forecast: tell(forecast, console),
        )
    console.say(f"{'Found' if report.reused else 'Built'} its token store: {store.folder}")
    return named.joined(store)


def tell(forecast: Forecast, console: Console) -> None:
    """Says what a build will take."""
    beside = "1 process" if forecast.workers == 1 else f"{forecast.workers} processes"
    workers = f"{beside} beside this one" if forecast.workers else "this process alone"
    console.say(
        f"Building the token store: about {forecast.disk / 1e6:,.0f} MB of disk ({forecast.free / 1e6:,.0f} MB free) and "
        f"{forecast.memory / 1e6:,.0f} MB of memory, {workers}."
    )


def build_workers(size: int | None) -> int:
    """Processes that a build of so many bytes of text takes: one a core, as far as memory goes; none for a small text."""
    if size is not None and size < _ALONE:
        return 0
    fitting = int(free_memory() - FIRST) // WORKER
    return max(0, min(allowed_cores(), _MOST_WORKERS, fitting))


def with_rate(update: Update, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress in bytes with the rate of the last half minute, and the time that is left at it."""
    seen: deque[tuple[float, int]] = deque()

    def progress(done: int, total: int | None) -> None:
        now = clock()
        if seen and done < seen[-1][1]:
            seen.clear()  # another reading
        seen.append((now, done))
        while now - seen[0][0] > _WINDOW and len(seen) > 2:
            seen.popleft()
        (then, before), note = seen[0], ""
        if now - then > 1 and done > before:
            rate = (done - before) / (now - then)
            note = f"{rate / 1e6:.1f} MB/s" + (f", {_left((total - done) / rate)} left" if total and total > done else "")
        update(done, total, note)

    return progress


def _left(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{seconds:.0f} s"
