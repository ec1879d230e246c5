"""Builds that are killed, stopped, started twice at once, or whose workers die."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_lines
from bertkit.corpus.gathering import Gatherer
from bertkit.corpus.lines import read_spans
from bertkit.corpus.lock import only_one
from bertkit.corpus.passes import Batch, Made, Maker, cut_batches
from bertkit.corpus.report import BuildReport
from bertkit.corpus.store import TokenStore
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece
from bertkit.corpus.workers import _START, Workers
from bertkit.corpus.writer import StoreWriter
from bertkit.errors import MissingError, ResourceError, Stopped
from bertkit.notices import collecting

LETTERS = WordPiece(
    [*SPECIALS, *"abcdefghijklmnopqrstuvwxyz.,", *("##" + c for c in "abcdefghijklmnopqrstuvwxyz")], Flags(lowercase=True)
)


def corpus(path: Path) -> Path:
    """Some 20 000 characters: short documents, a giant one, and the short ones again."""
    rng = random.Random(3)
    lines = [" ".join(rng.choices(["abc", "de", "f", "ghijk"], k=6)) + ". The end." for _ in range(240)]
    short = "\n\n".join("\n".join(lines[at : at + rng.randint(1, 4)]) for at in range(0, 240, 4))
    path.write_text(short + "\n\n" + "a b c.\n" * 300 + "\n" + short + "\n\nthe last.\n", "utf-8")
    return path


def build(path: Path, cache: Path, **kinds: Any) -> tuple[TokenStore, BuildReport]:
    return build_store(open_corpus([path]), LETTERS, CorpusSettings(dedup="exact"), cache=cache, **kinds)


def files_of(folder: Path | None) -> dict[str, bytes]:
    assert folder is not None
    return {path.name: path.read_bytes() for path in folder.iterdir()}


KILLED = """
import os, signal, sys
from functools import partial
from pathlib import Path
import bertkit.corpus.build, bertkit.corpus.making, bertkit.corpus.passes
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.wordpiece import load_wordpiece

where, after, text, cache, tokenizer, workers = sys.argv[1:]
making = bertkit.corpus.making
making.POINT_EVERY = 1000
making.cut_batches = partial(bertkit.corpus.passes.cut_batches, size=300)
module, _, name = where.rpartition(".")
owner = sys.modules.get(module) or getattr(sys.modules[module.rpartition(".")[0]], module.rpartition(".")[2])
real, calls = getattr(owner, name), 0

def dying(*args, **kinds):
    global calls
    calls += 1
    if calls > int(after):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kinds)

setattr(owner, name, dying)
settings = CorpusSettings(dedup="exact")
bertkit.corpus.build.build_store(
    open_corpus([text]), load_wordpiece(Path(tokenizer)), settings, cache=Path(cache), workers=int(workers)
)
"""
INSTANTS = [
    ("bertkit.corpus.gathering.Gatherer.add", 10, 0),  # in the middle
    ("bertkit.corpus.making.write_json", 3, 0),  # files on disk, the point not yet
    ("bertkit.corpus.writer.file_digest", 2, 0),  # while the files are summed
    ("bertkit.corpus.build.clear", 0, 0),  # whole, without its name
    ("bertkit.corpus.repeats.RepeatCounter.finish", 0, 0),
    ("bertkit.corpus.writer.write_json", 0, 0),  # store.json
    ("bertkit.corpus.making.flush_folder", 4, 0),  # behind a point
    ("bertkit.corpus.gathering.Gatherer.add", 12, 2),
    ("bertkit.corpus.gathering.Gatherer.add", 0, 0),  # before any point
]


FAST = 4


@pytest.mark.parametrize(
    ("where", "after", "workers"), [*INSTANTS[:FAST], *(pytest.param(*i, marks=pytest.mark.slow) for i in INSTANTS[FAST:])]
)
def test_a_killed_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, after: int, workers: int) -> None:
    path = corpus(tmp_path / "text.txt")
    tokenizer, cache = tmp_path / "tokenizer", tmp_path / "cache"
    LETTERS.save(tokenizer, max_length=8)
    argv = [where, str(after), str(path), str(cache), str(tokenizer), str(workers)]
    code = subprocess.run([sys.executable, "-c", KILLED, *argv], check=False).returncode
    assert code == -signal.SIGKILL
    monkeypatch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, size=300))
    whole, _ = build(path, tmp_path / "other")
    calls: list[int] = []
    real = Maker.__call__

    def counted(self: Maker, batch: Batch) -> Made:
        calls.append(batch.items)
        return real(self, batch)

    monkeypatch.setattr(Maker, "__call__", counted)
    with collecting() as heard:
        store, report = build(path, cache)
    assert not report.reused
    assert files_of(store.folder) == files_of(whole.folder)
    lines = read_lines(open_corpus([path]), CorpusSettings(), ReadReport())
    batches = len(list(cut_batches(lines, size=300)))
    assert batches > 30
    anew = (where, after) == ("bertkit.corpus.gathering.Gatherer.add", 0)
    whole_already = where == "bertkit.corpus.build.clear"
    assert [n.kind for n in heard].count("build-goes-on") == (0 if anew or whole_already else 1)
    assert len(calls) == batches if anew else len(calls) < batches - 5
    assert store.folder is not None
    assert [p.name for p in cache.iterdir()] == [store.folder.name]
    with pytest.raises(MissingError):
        TokenStore.open(cache / f".building-{store.folder.name}")


def test_what_lies_before_the_point_is_not_made_again_for_another_text(tmp_path: Path) -> None:
    path, tokenizer = corpus(tmp_path / "text.txt"), tmp_path / "tokenizer"
    LETTERS.save(tokenizer, max_length=8)
    argv = [*map(str, INSTANTS[0][:2]), str(path), str(tmp_path / "cache"), str(tokenizer), "0"]
    assert subprocess.run([sys.executable, "-c", KILLED, *argv], check=False).returncode == -signal.SIGKILL
    path.write_text("x" + path.read_text("utf-8"), "utf-8")
    store, _ = build(path, tmp_path / "cache")
    assert files_of(store.folder) == files_of(build(path, tmp_path / "other")[0].folder)


@pytest.mark.parametrize("name", ["ids.bin", "sentence_bits.bin", "document_hashes.bin", "lines/hashes.bin", "point.json"])
def test_a_build_whose_files_were_lost_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = corpus(tmp_path / "text.txt")
    stopped_build(path, tmp_path / "cache", monkeypatch)
    work = next((tmp_path / "cache").glob(".building-*"))
    (work / name).write_bytes(b"")
    store, _ = build(path, tmp_path / "cache")
    assert files_of(store.folder) == files_of(build(path, tmp_path / "other")[0].folder)


def stopped_build(path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, workers: int = 0) -> None:
    """One that progress stopped in the middle, as Ctrl-C does."""

    def progress(done: int, total: int | None) -> None:
        if len(calls) > 20:
            raise Stopped("Interrupted.")

    calls: list[int] = []
    real = Maker.__call__
    with monkeypatch.context() as patch:
        patch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, size=300))
        patch.setattr("bertkit.corpus.making.POINT_EVERY", 1000)
        patch.setattr("bertkit.corpus.kinds.read_spans", partial(read_spans, block=1000))
        patch.setattr(Maker, "__call__", lambda self, batch: calls.append(1) or real(self, batch))
        with pytest.raises(Stopped):
            build(path, cache, progress=progress, workers=workers)
    assert len(list(cache.iterdir())) == 1


@mock.patch("os.fsync", mock.Mock(return_value=None))
def test_a_build_stopped_anywhere_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a batch, or when a giant document that stood before has just been taken out of the files again."""
    path = tmp_path / "text.txt"
    giants = ["\n".join(f"{letter * (n % 6 + 1)} b. c" for n in range(120)) for letter in "defg"]
    sparse = "\n".join("h         i" for _ in range(20))  # few tokens, so that what follows soon reaches behind the point again
    dense = ["\n".join(letter * 50 for _ in range(9)) for letter in "jkl"]
    texts = [sparse, dense[0], *giants[:2], "x.\ny", giants[0], sparse, dense[1], *giants[2:], giants[1], sparse, dense[2]]
    path.write_text("\n\n".join([*texts, giants[3], "z"]), "utf-8")
    monkeypatch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, size=100))
    monkeypatch.setattr("bertkit.corpus.making.POINT_EVERY", 50)
    whole, report = build(path, tmp_path / "whole")
    assert report.duplicate_documents == 5
    batches = len(list(cut_batches(read_lines(open_corpus([path]), CorpusSettings(), ReadReport()), size=100)))
    assert batches > 30
    real_add, real_rewind = Gatherer.add, StoreWriter.rewind
    for stop in range(1, batches, 3):
        left = [stop]

        def add(self: Gatherer, made: Made) -> None:
            real_add(self, made)
            left[0] -= 1  # noqa: B023
            if not left[0]:  # noqa: B023
                raise KeyboardInterrupt

        def rewind(self: StoreWriter, tokens: int, documents: int) -> None:
            real_rewind(self, tokens, documents)
            if left[0] == 1 and self.tokens:  # noqa: B023
                raise KeyboardInterrupt

        for name, dying in (("gathering.Gatherer.add", add), ("writer.StoreWriter.rewind", rewind)):
            left[0] = stop
            cache = tmp_path / f"{stop} {name}"
            with monkeypatch.context() as patch:
                patch.setattr("bertkit.corpus.gathering.Gatherer.add", add)
                patch.setattr(f"bertkit.corpus.{name}", dying)
                with pytest.raises(KeyboardInterrupt):
                    build(path, cache)
            assert files_of(build(path, cache)[0].folder) == files_of(whole.folder), (stop, name)
            shutil.rmtree(cache)


def test_the_second_of_two_builds_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path / "text.txt")
    begun, go_on = threading.Event(), threading.Event()
    real = Maker.__call__
    made: list[int] = []

    def slow(self: Maker, batch: Batch) -> Made:
        begun.set()
        assert go_on.wait(20)
        made.append(1)
        return real(self, batch)

    monkeypatch.setattr(Maker, "__call__", slow)
    found: list[tuple[TokenStore, BuildReport]] = []
    threads = [threading.Thread(target=lambda: found.append(build(path, tmp_path / "cache"))) for _ in range(2)]
    with collecting() as heard:
        threads[0].start()
        assert begun.wait(20)
        threads[1].start()
        until(lambda: any(n.kind == "waiting" for n in heard))
        go_on.set()
        for thread in threads:
            thread.join()
    assert f"process {os.getpid()} on" in next(n.message for n in heard if n.kind == "waiting")
    assert sorted(report.reused for _, report in found) == [False, True]
    assert len(made) == 1
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [found[0][0].folder.name]  # type: ignore[union-attr]


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("bertkit.corpus.lock._take", refused)
    with only_one(tmp_path / "lock", "works") as alone:
        assert not alone
    path = corpus(tmp_path / "text.txt")
    store, _ = build(path, tmp_path / "cache")
    assert files_of(store.folder) == files_of(build(path, tmp_path / "other")[0].folder)


def test_a_worker_that_dies_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path / "text.txt")
    monkeypatch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, size=300))
    monkeypatch.setattr("bertkit.corpus.workers._START", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(ResourceError, match="ended by SIGKILL") as caught:
        build(path, tmp_path / "cache", workers=2)
    assert caught.value.exit_code == 5
    assert "process" in str(caught.value.where)

    def stopping(done: int, total: int | None) -> None:
        if stop:
            raise Stopped("Interrupted.")

    stop: list[int] = []  # a scheduler's signal reaches the workers too: the stop is the reason, not their end
    monkeypatch.setattr("bertkit.corpus.workers.Workers.made", lambda self, batches: lost(self, stop))
    with pytest.raises(Stopped):
        build(path, tmp_path / "cache", workers=2, progress=stopping)


def lost(workers: Workers, stop: list[int]) -> Any:
    stop.append(1)
    task = Future[Made]()
    task.set_exception(ResourceError("A worker ended."))
    yield workers._result(Batch(lines=[], ends=[], items=0, characters=0), task)


def test_a_worker_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path / "text.txt")
    monkeypatch.setattr("bertkit.corpus.workers.PATIENCE", 0.3)
    monkeypatch.setattr("bertkit.corpus.workers._START", "import time; time.sleep(60)")
    with pytest.raises(ResourceError, match="given nothing"):
        build(path, tmp_path / "cache", workers=1)


def test_errors_of_a_worker_are_the_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path / "text.txt")
    broken = _START.replace("work()", "work.__globals__['Maker'].__call__ = None; work()")
    monkeypatch.setattr("bertkit.corpus.workers._START", broken)
    with pytest.raises(RuntimeError, match="TypeError in a worker of the build"):
        build(path, tmp_path / "cache", workers=1)


def test_a_worker_without_memory_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starved = _START.replace("work()", "work.__globals__['Maker'].__call__ = starved; work()")
    monkeypatch.setattr("bertkit.corpus.workers._START", f"def starved(*_): raise MemoryError\n{starved}")
    with pytest.raises(ResourceError, match="ran out of memory"):
        build(corpus(tmp_path / "text.txt"), tmp_path / "cache", workers=1)


def test_workers_import_no_slow_library() -> None:
    listed = "import sys, bertkit.corpus.workers; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "datasets", "pandas", "pyarrow", "rich"} & set(done.stdout.split())
    assert "bertkit.corpus.passes" in done.stdout.split()


def test_a_full_disk_keeps_nobody_from_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bertkit.corpus.lock.os.write", full)
    with only_one(tmp_path / "lock", "works") as alone:
        assert alone
    assert list(tmp_path.iterdir()) == []
