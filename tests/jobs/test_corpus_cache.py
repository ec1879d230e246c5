"""``bertkit corpus build|ls|rm``: built once, found again, listed with its last use, removed unless something holds it."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpora import prose, text_of

from bertkit.cli.main import run
from bertkit.corpus.holding import held, is_held
from bertkit.corpus.store import TokenStore
from bertkit.errors import UsageError
from bertkit.jobs import pretrain
from bertkit.jobs.columns import shown_width
from bertkit.jobs.corpus_cache import ago, seconds, size_of

Bertkit = Callable[..., dict[str, Any]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    Path("a.txt").write_text(text_of(prose()))
    Path("b.txt").write_text(text_of(prose(seed=1)))
    assert run(["tokenizer", "train", "a.txt", "--output", "vocab", "-q"]) == 0
    return tmp_path


@pytest.fixture
def bertkit(here: Path, capsys: pytest.CaptureFixture[str]) -> Bertkit:
    capsys.readouterr()

    def call(*argv: str, code: int = 0) -> dict[str, Any]:
        assert run(["corpus", *argv, "--json"]) == code
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    return call


def test_a_store_is_built_once(bertkit: Bertkit) -> None:
    first = bertkit("build", "a.txt", "--tokenizer", "vocab")
    assert (first["state"], first["counts"]["documents"], first["counts"]["reused"]) == ("finished", 60, False)
    store = TokenStore.open(Path(first["output"]))
    assert (store.tokens, store.fingerprint) == (first["counts"]["tokens"], first["fingerprint"])
    files = {path: path.stat().st_mtime_ns for path in Path(first["output"]).iterdir()}
    again = bertkit("build", "a.txt", "--tokenizer", "vocab")
    assert (again["state"], again["output"]) == ("already finished", first["output"])
    assert {path: path.stat().st_mtime_ns for path in Path(first["output"]).iterdir()} == files
    changed = bertkit("build", "a.txt", "--tokenizer", "vocab", "--documents", "line")
    assert changed["output"] != first["output"]


def test_without_a_vocabulary_one_is_trained_once(bertkit: Bertkit, here: Path) -> None:
    first = bertkit("build", "a.txt", "--vocab-size", "150")
    assert first["vocabulary"]["size"] == 150
    again = bertkit("build", "a.txt", "--vocab-size", "150")
    assert (again["state"], again["output"]) == ("already finished", first["output"])
    kept = here / "cache" / "vocabularies"
    assert len(list(kept.iterdir())) == 1
    bertkit("rm", "--older-than", "1h")
    assert len(list(kept.iterdir())) == 1
    bertkit("rm", "--all")
    assert list(kept.iterdir()) == []


def test_standard_input(bertkit: Bertkit, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    whole = bertkit("build", "a.txt", "--tokenizer", "vocab", "--output", "whole")
    reading, writing = os.pipe()
    os.write(writing, Path("a.txt").read_bytes())
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))
        piped = bertkit("build", "-", "--tokenizer", "vocab", "--output", "piped")
        refused = bertkit("build", "-", code=2)
    for name in ("ids.bin", "sentence_bits.bin", "document_ends.bin"):
        assert Path(piped["output"], name).read_bytes() == Path(whole["output"], name).read_bytes()
    assert "--tokenizer" in refused["error"]["hint"]


def test_shards_hold_the_text_between_them(bertkit: Bertkit) -> None:
    whole = bertkit("build", "a.txt", "b.txt", "--tokenizer", "vocab")
    parts = [
        bertkit("build", "a.txt", "b.txt", "--tokenizer", "vocab", "--output", "shards", "--shard", f"{i}/3") for i in (1, 2, 3)
    ]
    for name in ("documents", "sentences", "tokens"):
        assert sum(part["counts"][name] for part in parts) == whole["counts"][name]
    assert {Path(part["output"]).name for part in parts} == {f"shard-{i}-of-3" for i in (1, 2, 3)}
    for shard in ("0/3", "4/3", "x"):
        assert bertkit("build", "a.txt", "--shard", shard, code=2)["error"]["where"] == "--shard"
    assert "--output" in bertkit("build", "a.txt", "--shard", "1/2", code=2)["error"]["hint"]


def test_dedup_leaves_out_what_stood_before(bertkit: Bertkit) -> None:
    Path("twice.txt").write_text(text_of(prose() * 2))
    assert bertkit("build", "twice.txt", "--tokenizer", "vocab")["counts"]["documents"] == 120
    assert bertkit("build", "twice.txt", "--tokenizer", "vocab", "--dedup", "exact")["counts"]["documents"] == 60


def test_the_list_has_each_store_with_its_last_use(bertkit: Bertkit, capsys: pytest.CaptureFixture[str]) -> None:
    assert bertkit("ls")["stores"] == []
    a = bertkit("build", "a.txt", "--tokenizer", "vocab")
    b = bertkit("build", "b.txt", "--tokenizer", "vocab")
    os.utime(a["output"], times=(time.time() - 3 * 86_400 - 60,) * 2)
    stores = bertkit("ls")["stores"]
    assert [store["sources"] for store in stores] == [["b.txt"], ["a.txt"]]
    assert [store["tokens"] for store in stores] == [b["counts"]["tokens"], a["counts"]["tokens"]]
    assert stores[1]["bytes"] == sum(path.stat().st_size for path in Path(a["output"]).iterdir())
    assert all(store["fingerprint"].startswith(store["name"]) for store in stores)
    assert stores[0]["vocabulary"] == {"size": a["vocabulary"]["size"], "lowercase": True}
    assert run(["corpus", "ls"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "3 days" in lines[2]
    assert max(map(shown_width, lines)) <= 80
    bertkit("build", "a.txt", "--tokenizer", "vocab")  # used again
    assert [store["sources"] for store in bertkit("ls")["stores"]] == [["a.txt"], ["b.txt"]]


def test_stores_are_removed_by_name_by_age_and_all(bertkit: Bertkit) -> None:
    places = [
        Path(bertkit("build", "a.txt", "--tokenizer", "vocab", "--documents", kind)["output"]) for kind in ("blank", "line")
    ]
    old = Path(bertkit("build", "b.txt", "--tokenizer", "vocab")["output"])
    os.utime(old, times=(time.time() - 31 * 86_400,) * 2)
    assert bertkit("rm", "--older-than", "30d")["removed"][0]["path"] == str(old)
    assert [place.exists() for place in (*places, old)] == [True, True, False]
    bertkit("rm", places[0].name[:8])
    assert [place.exists() for place in places] == [False, True]
    (places[1].parent / "mine.txt").write_text("a file of someone's")
    assert bertkit("rm", "--all")["bytes"] > 0
    assert [path.name for path in places[1].parent.iterdir()] == ["mine.txt"]


def test_a_build_that_was_stopped_is_listed_and_removed(bertkit: Bertkit) -> None:
    place = Path(bertkit("build", "a.txt", "--tokenizer", "vocab")["output"])
    left = place.with_name(f".building-{place.name}")
    place.rename(left)
    (left / "store.json").unlink()
    store = bertkit("ls")["stores"][0]
    assert (store["state"], store["in_use"], store["tokens"]) == ("unfinished", False, None)
    bertkit("rm", store["name"])
    assert not left.exists()


def test_a_damaged_store_is_listed_and_removed(bertkit: Bertkit) -> None:
    place = Path(bertkit("build", "a.txt", "--tokenizer", "vocab")["output"])
    (place / "store.json").write_text("{")
    assert bertkit("ls")["stores"][0]["state"] == "unreadable"
    assert len(bertkit("rm", "--all")["removed"]) == 1


def test_a_look_at_a_store_does_not_keep_a_run_from_holding_it(bertkit: Bertkit) -> None:
    fcntl = pytest.importorskip("fcntl")
    place = Path(bertkit("build", "a.txt", "--tokenizer", "vocab")["output"])
    with (place / "store.json").open("r+b") as look:
        fcntl.flock(look.fileno(), fcntl.LOCK_EX)  # as `corpus ls` does, for an instant
        ends = threading.Timer(0.05, fcntl.flock, (look.fileno(), fcntl.LOCK_UN))
        ends.start()
        with held([place]):
            assert is_held(place)
        ends.join()


def test_a_store_in_use_stays(bertkit: Bertkit) -> None:
    place = Path(bertkit("build", "a.txt", "--tokenizer", "vocab")["output"])
    os.utime(place, times=(0, 0))
    with held([place]):
        assert is_held(place)
        assert time.time() - place.stat().st_mtime < 60  # its use is recorded
        refused = bertkit("rm", place.name[:8], code=5)
        assert "is using" in refused["error"]["message"]
        assert bertkit("rm", "--all")["left"] == [place.name[:8]]
        assert bertkit("ls")["stores"][0]["in_use"] is True
    assert not is_held(place)
    bertkit("rm", "--all")
    assert not place.exists()


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        ([], 2, "Which stores"),
        (["abcd", "--all"], 2, "Which stores"),
        (["--older-than", "soon"], 2, "no time"),
        (["0000"], 4, "There is no store 0000"),
    ],
)
def test_what_rm_refuses(bertkit: Bertkit, argv: list[str], code: int, words: str) -> None:
    bertkit("build", "a.txt", "--tokenizer", "vocab")
    assert words in bertkit("rm", *argv, code=code)["error"]["message"]
    assert len(bertkit("ls")["stores"]) == 1


def test_a_name_with_a_slip_is_mended(bertkit: Bertkit) -> None:
    name = bertkit("build", "a.txt", "--tokenizer", "vocab") and bertkit("ls")["stores"][0]["name"]
    wrong = name[:6] + ("0" if name[6] != "0" else "1") + name[7]
    assert f"Did you mean '{name}'?" in bertkit("rm", wrong, code=4)["error"]["message"]


def test_sizes_and_ages() -> None:
    assert [size_of(n) for n in (0, 999, 1000, 9_960, 33_200_000, 2_500_000_000)] == [
        "0 bytes", "999 bytes", "1.0 kB", "10 kB", "33 MB", "2.5 GB"
    ]  # fmt: skip
    assert [ago(n) for n in (5, 60, 7200, 86_400, 900_000)] == ["now", "1 minute", "2 hours", "1 day", "10 days"]
    assert (seconds("30d"), seconds("1.5h"), seconds("2w")) == (2_592_000, 5400, 1_209_600)
    with pytest.raises(UsageError):
        seconds("30")


def test_pretrain_finds_what_build_made_and_holds_it(
    bertkit: Bertkit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(bertkit("build", "a.txt", "--tokenizer", "vocab")["output"])
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    during: list[bool] = []
    evaluate = pretrain.evaluate_losses
    monkeypatch.setattr(
        pretrain, "evaluate_losses", lambda *args, **more: (during.append(is_held(place)), evaluate(*args, **more))[1]
    )
    argv = ["--corpus", "a.txt", "--tokenizer", "vocab", "--size", "tiny", "--steps", "1", "--batch-size", "2", "-q"]
    assert run(["pretrain", *argv, "--output", "run"]) == 0
    capsys.readouterr()
    assert during
    assert all(during)
    assert len(bertkit("ls")["stores"]) == 1
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()} == before
    assert not is_held(place)


def test_what_no_folder_can_be_is_wrong_usage(bertkit: Bertkit) -> None:
    for named, words in (("a.txt", "is no folder"), ("a.txt/b", "cannot be made"), ("x" * 300, "cannot be made")):
        error = bertkit("build", "b.txt", "--tokenizer", "vocab", "--output", named, code=2)["error"]
        assert words in error["message"]
        assert "BERTKIT_CACHE" not in error["hint"]


def test_shards_that_nobody_builds_are_refused(bertkit: Bertkit) -> None:
    many = "1/99999999999999999999"
    error = bertkit("build", "a.txt", "--tokenizer", "vocab", "--output", "shards", "--shard", many, code=2)["error"]
    assert "up to 100,000" in error["message"]


def test_ls_does_not_repeat_what_the_build_said_of_a_vocabulary(bertkit: Bertkit) -> None:
    with Path("vocab/vocab.txt").open("a", encoding="utf-8") as file:
        file.write("\n\n")
    Path("odd.txt").write_bytes(Path("vocab/vocab.txt").read_bytes())
    built = bertkit("build", "a.txt", "--tokenizer", "odd.txt")
    assert [warning["kind"] for warning in built["warnings"] if warning["kind"] == "vocabulary-blank"] == ["vocabulary-blank"]
    assert bertkit("ls")["warnings"] == []
