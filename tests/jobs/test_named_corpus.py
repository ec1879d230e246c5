from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from small_runs import Call, call, documents, done, write

from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.word_list import WordList
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.named_corpus import NamedCorpus
from bertkit.notices import collecting

SMALL = (
    "--size tiny --max-length 32 --batch-size 8 --log-every 1 --precision fp32 --steps 2 --workers 0 "
    "--set device.threads=1 --set inputs.validation_sequences=16 --json"
)


@pytest.fixture(scope="module")
def wordpiece(corpus: Path) -> WordPiece:
    return train_wordpiece(read_documents(open_corpus([corpus]), CorpusSettings(), ReadReport()), size=300, lowercase=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def flags(output: Path, *more: str) -> list[str]:
    return ["pretrain", *SMALL.split(), "-o", str(output), *more]


def losses(found: Call, output: Path) -> list[float]:
    lines = [json.loads(line) for line in (output / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def test_a_store_is_a_corpus_and_brings_its_vocabulary(corpus: Path, wordpiece: WordPiece, tmp_path: Path, cache: Path) -> None:
    text = open_corpus([corpus])
    build_store(text, wordpiece, CorpusSettings(), folder=tmp_path / "stores" / "help")
    wordpiece.save(tmp_path / "vocab", max_length=64)
    by_store = done(*flags(tmp_path / "a", "--corpus", str(tmp_path / "stores" / "help")))
    assert not (cache / "stores").exists()
    by_text = done(*flags(tmp_path / "b", "--corpus", str(corpus), "--tokenizer", str(tmp_path / "vocab")))
    assert losses(by_store, tmp_path / "a") == losses(by_text, tmp_path / "b")
    assert (tmp_path / "a" / "vocab.txt").read_bytes() == (tmp_path / "b" / "vocab.txt").read_bytes()
    assert "held out, chosen by hash" in by_store.err
    again = call(*flags(tmp_path / "a", "--corpus", str(tmp_path / "stores" / "help")))
    assert again.object["state"] == "already finished"


def test_plans_of_a_store_that_nobody_may_write_to_are_in_the_cache(
    corpus: Path, wordpiece: WordPiece, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), folder=tmp_path / "store")
    done(*flags(tmp_path / "a", "--corpus", str(tmp_path / "store")))
    plans = {path.name: path.read_bytes() for path in (tmp_path / "store" / "plans").iterdir()}
    shutil.rmtree(tmp_path / "store" / "plans")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / "store" and real(path, mode))
    done(*flags(tmp_path / "b", "--corpus", str(tmp_path / "store")))
    assert not (tmp_path / "store" / "plans").exists()
    kept = cache / "plans" / store.fingerprint[:32]
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == plans
    done("corpus", "rm", "--all", "--json")
    assert not kept.exists()


def test_a_text_beside_its_own_store_is_read_once(corpus: Path, wordpiece: WordPiece, tmp_path: Path) -> None:
    store, _ = build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), folder=tmp_path / "store")
    built, _ = build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), cache=tmp_path / "cache")
    named = NamedCorpus.of([str(tmp_path / "store"), str(corpus)], CorpusSettings())
    with collecting() as notices:
        assert named.joined(built).documents == store.documents
    assert [notice.kind for notice in notices] == ["store-twice"]


def test_shards_and_texts_are_one_corpus(corpus: Path, wordpiece: WordPiece, tmp_path: Path) -> None:
    more = write(tmp_path / "more.txt", [["Another text.", "With two lines."], ["And a third one, much longer than it."]] * 3)
    for number in (1, 2):
        folder = tmp_path / "stores" / f"{number}-of-2"
        build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), folder=folder, shard=(number, 2))
    valid = tmp_path / "valid"
    build_store(open_corpus([corpus.with_name("valid.txt")]), wordpiece, CorpusSettings(), folder=valid)
    argv = ["--corpus", str(tmp_path / "stores"), "--corpus", str(more), "--valid", str(valid)]
    found = done(*flags(tmp_path / "run", *argv))
    assert "Text: 46 documents" in found.err
    assert "validation: 6 documents (the validation file)" in found.err


def test_another_tokenizer_than_the_stores_is_refused(corpus: Path, wordpiece: WordPiece, tmp_path: Path) -> None:
    store = tmp_path / "store"
    build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), folder=store, words=WordList({"中国": 1}))
    other = WordPiece(wordpiece.vocabulary, wordpiece.flags.__class__(lowercase=False))
    other.save(tmp_path / "cased", max_length=64)
    (tmp_path / "words.txt").write_text("中国\t5\n", encoding="utf-8")
    for more in (
        ["--tokenizer", str(tmp_path / "cased")],
        ["--vocab-size", "200"],
        ["--cased"],
        ["--words", str(tmp_path / "words.txt")],
    ):
        found = call(*flags(tmp_path / "run", "--corpus", str(store), *more))
        assert found.code == 2, more
        assert not (tmp_path / "run").exists()
    found = call(*flags(tmp_path / "run", "--corpus", str(store), "--tokenizer", str(tmp_path / "cased")))
    assert str(store) in found.object["error"]["where"]
    assert str(tmp_path / "cased") in found.object["error"]["where"]
    wordpiece.save(tmp_path / "same", max_length=64)
    done(*flags(tmp_path / "run", "--corpus", str(store), "--tokenizer", str(tmp_path / "same")))


def test_settings_that_cannot_change_a_store_are_said(corpus: Path, wordpiece: WordPiece, tmp_path: Path) -> None:
    build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), folder=tmp_path / "store")
    found = done(*flags(tmp_path / "run", "--corpus", str(tmp_path / "store"), "--dedup", "exact"))
    assert [w["message"] for w in found.object["warnings"] if w["kind"] == "store-settings"]


@pytest.mark.parametrize("named", ["stores/a", "stores"])
def test_a_damaged_store_is_refused_before_any_work(corpus: Path, wordpiece: WordPiece, tmp_path: Path, named: str) -> None:
    store = tmp_path / "stores" / "a"
    build_store(open_corpus([corpus]), wordpiece, CorpusSettings(), folder=store)
    data = (store / "ids.bin").read_bytes()
    (store / "ids.bin").write_bytes(data[:100] + bytes([data[100] ^ 255, 255]) + data[102:])  # an id that the vocabulary lacks
    found = call(*flags(tmp_path / "run", "--corpus", str(tmp_path / named)))
    assert (found.code, found.object["error"]["where"]) == (3, str(store))
    assert "the bytes of ids.bin have changed" in found.object["error"]["message"]
    (store / "store.json").unlink()
    found = call(*flags(tmp_path / "run", "--corpus", str(tmp_path / named)))
    assert (found.code, found.object["error"]["where"]) == (3, str(store))
    assert "store.json is missing" in found.object["error"]["message"]


def test_a_folder_of_stores_and_texts_is_refused(wordpiece: WordPiece, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    text = write(tmp_path / "mixed" / "a.txt", documents(4))
    build_store(open_corpus([text]), wordpiece, CorpusSettings(), folder=tmp_path / "mixed" / "store")
    found = call(*flags(tmp_path / "run", "--corpus", str(tmp_path / "mixed")))
    assert (found.code, "one by one" in found.object["error"]["hint"]) == (2, True)


def test_duplicates_left_out_on_request(tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt", documents(8) * 2)
    argv = ["--corpus", str(text), "--vocab-size", "200"]
    assert "8 of 16 documents (50.0%)" in done(*flags(tmp_path / "a", *argv)).err
    found = done(*flags(tmp_path / "b", *argv, "--dedup", "exact"))
    assert "Text: 7 documents" in found.err
    assert "8 documents whose text stood before were left out" in found.err
