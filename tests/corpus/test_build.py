from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.build import HeldOut, build_stores
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.hold_out import held_out_documents
from bertkit.corpus.store import TokenStore
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, MissingError, ResourceError
from bertkit.notices import collecting

LETTERS = WordPiece(
    [*SPECIALS, *"abcdefghijklmnopqrstuvwxyz.,", *("##" + c for c in "abcdefghijklmnopqrstuvwxyz")], Flags(lowercase=True)
)


def corpus(folder: Path, documents: int = 150) -> Path:
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(1, 6))) for _ in range(50)]
    texts = []
    for _ in range(documents):
        texts.append("\n".join(" ".join(rng.choices(words, k=5)) + ". The end." for _ in range(rng.randint(1, 4))))
    folder.mkdir(exist_ok=True)
    path = folder / "text.txt"
    path.write_text("\n\n".join(texts) + "\n", "utf-8")
    return path


def build(path: Path, cache: Path, **kinds: Any) -> Any:
    held_out = kinds.pop("held_out", None)
    return build_stores(open_corpus([path]), LETTERS, CorpusSettings(**kinds), cache=cache, held_out=held_out)


def texts_of(store: TokenStore) -> list[list[int]]:
    return [part.tolist() for part in np.split(store.ids, store.document_ends[:-1])]


@pytest.mark.parametrize("batch", [1, 40, 1_000_000])
def test_the_build_is_the_plain_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    path = corpus(tmp_path)
    path.write_bytes(path.read_bytes() + b"\n\n\xe2\x80\x8d\n\na b\n\xe2\x80\x8e\n\n\xc2\xad")
    monkeypatch.setattr("bertkit.corpus.passes._BATCH", batch)
    store, valid, report = build(path, tmp_path / "cache")
    plain = TokenStore.from_documents(read_documents(open_corpus([path]), CorpusSettings(), ReadReport()), LETTERS)
    assert valid is None
    for name in ("ids", "sentence_ends", "document_ends"):
        assert np.array_equal(getattr(store, name), getattr(plain, name))
    assert TokenStore.open(store.folder, checksums=True).tokens == report.tokens == plain.tokens
    assert (report.documents, report.dropped_documents) == (151, 2)
    assert report.one_sentence_documents == 1
    assert report.unknown_tokens == 0


def test_documents_without_a_token(tmp_path: Path) -> None:  # C02
    path = tmp_path / "a.txt"
    path.write_bytes(b"First real line.\nSecond real line.\n\n\xe2\x80\x8d\n\nThird doc line one.\nThird doc line two.\n")
    with collecting() as heard:
        store, _, report = build(path, tmp_path / "cache")
    assert (store.documents, store.sentences, report.dropped_documents) == (2, 4, 1)
    assert [n.kind for n in heard] == ["dropped-documents"]
    for nothing in (b"  \t \n", b"\xef\xbb\xbf\n", "\u00ad\n\n\ue000\n".encode(), b""):
        path.write_bytes(nothing)
        with pytest.raises(DataError, match="no document with a token"):
            build(path, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob(".building*"))


def test_the_second_call_does_no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path)
    first = build(path, tmp_path / "cache", held_out=HeldOut())
    moved = path.rename(tmp_path / "other.txt")  # names decide nothing
    with monkeypatch.context() as patch:
        patch.setattr("bertkit.corpus.build.encode_corpus", None)
        again = build(moved, tmp_path / "cache", held_out=HeldOut())
    assert [s.fingerprint for s in again[:2]] == [s.fingerprint for s in first[:2]]
    assert (first[2].reused, again[2].reused) == (False, True)
    assert {**first[2].as_dict(), "reused": True} == again[2].as_dict()


def test_whatever_decides_the_store_decides_its_fingerprint(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    cache = tmp_path / "cache"
    stores = [build(path, cache)[0], build(path, cache, documents="line")[0], build(path, cache, held_out=HeldOut())[0]]
    cased = WordPiece(LETTERS.vocabulary, Flags(lowercase=False))
    stores.append(build_stores(open_corpus([path]), cased, CorpusSettings(), cache=cache)[0])
    path.write_text(path.read_text("utf-8") + "more", "utf-8")
    stores.append(build(path, cache)[0])
    assert len({store.fingerprint for store in stores}) == 5


def test_a_damaged_store_is_built_anew(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    store, _, _ = build(path, tmp_path / "cache")
    expected = store.ids.tolist()
    assert store.folder is not None
    for name in ("ids.bin", "store.json", "../report.json"):
        (store.folder / name).write_bytes(b"{")
        with collecting() as heard:
            again, _, report = build(path, tmp_path / "cache")
        assert [n.kind for n in heard if n.kind == "store-damaged"] == ["store-damaged"]
        assert not report.reused
        assert again.ids.tolist() == expected


def test_held_out_documents(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    whole, _, _ = build(path, tmp_path / "cache")
    train, valid, report = build(path, tmp_path / "cache", held_out=HeldOut(share=0.1))
    assert (train.documents, valid.documents, report.train_documents, report.valid_documents) == (135, 15, 135, 15)
    assert train.sentences + valid.sentences == whole.sentences
    kept, out = texts_of(train), texts_of(valid)
    everything = texts_of(whole)
    assert [t for t in everything if t in kept] == kept
    assert [t for t in everything if t in out] == out
    assert sorted(kept + out) == sorted(everything)
    reversed_text = tmp_path / "reversed.txt"
    reversed_text.write_text("\n\n".join(path.read_text("utf-8").strip().split("\n\n")[::-1]), "utf-8")
    _, other, _ = build(reversed_text, tmp_path / "cache", held_out=HeldOut(share=0.1))
    assert texts_of(other) == out[::-1]  # by the text, not by its place


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.floats(0, 0.5), st.integers(1, 3), st.integers(3, 20))
def test_equal_texts_lie_on_one_side(texts: list[int], share: float, least: int, most: int) -> None:
    hashes = np.array(texts, dtype=np.uint64)
    out = held_out_documents(hashes, HeldOut(share=share, least=least, most=most))
    assert not set(hashes[out].tolist()) & set(hashes[~out].tolist())
    assert (~out).any()
    if len(set(texts)) > 1:
        assert out.any()
        if len(set(texts)) == len(texts):
            assert out.sum() == min(max(round(share * len(texts)), least), most, len(texts) - 1)
    assert np.array_equal(held_out_documents(hashes[::-1], HeldOut(share=share, least=least, most=most)), out[::-1])


def test_a_single_text_holds_nothing_out(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\n\na b\n", "utf-8")
    with collecting() as heard:
        train, valid, report = build(path, tmp_path / "cache", held_out=HeldOut())
    assert (train.documents, valid, report.duplicate_documents) == (2, None, 1)
    assert {n.kind for n in heard} == {"duplicate-documents", "duplicate-lines", "nothing-held-out"}


def test_a_file_without_blank_lines_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\nb c\n", "utf-8")
    for _ in range(2):
        with collecting() as heard:
            build(path, tmp_path / "cache")
        assert [n.kind for n in heard] == ["no-blank-line"]
        assert "--documents line" in heard[0].message
    with collecting() as heard:
        build(path, tmp_path / "cache", documents="line")
    assert heard == []


def test_a_bad_byte_leaves_nothing_behind(tmp_path: Path) -> None:  # C01
    path = tmp_path / "b.txt"
    path.write_bytes(b"ok line\nresum\xe9 x\nlast line\n")
    with pytest.raises(DataError, match=r"b\.txt.*line 2.*byte offset 13.*0xE9"):
        build(path, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    _, _, report = build(path, tmp_path / "cache", encoding_errors="replace")
    assert (report.replacements, report.lines) == (1, 3)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "full")])
def test_an_interrupted_build_leaves_nothing_under_a_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException] | BaseException
) -> None:
    path = corpus(tmp_path)

    def stop(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("bertkit.corpus.build.copy_documents", stop)
        with pytest.raises(ResourceError if isinstance(error, OSError) else KeyboardInterrupt):
            build(path, tmp_path / "cache", held_out=HeldOut())
    assert list((tmp_path / "cache").iterdir()) == []
    build(path, tmp_path / "cache", held_out=HeldOut())


def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    import socket

    left = tmp_path / "cache" / f".building-x-{socket.gethostname()}-999999999"
    (left / "train").mkdir(parents=True)
    build(corpus(tmp_path), tmp_path / "cache")
    assert not left.exists()


def test_progress_goes_to_the_end(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    told: list[tuple[int, int | None]] = []
    build_stores(
        open_corpus([path]),
        LETTERS,
        CorpusSettings(),
        cache=tmp_path / "c",
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (path.stat().st_size, path.stat().st_size)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"gone\.txt"):
        build(tmp_path / "gone.txt", tmp_path / "cache")


def test_dirt_in_a_build(tmp_path: Path) -> None:  # C04
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\x00def\n" + b"word " * 400_000 + b"\n" + b"a" * 1_000_001 + b"\n")
    with collecting() as heard:
        store, _, report = build(path, tmp_path / "cache")
    assert (store.ids == LETTERS.unk_id).sum() == report.unknown_tokens == 1
    assert [n.kind for n in heard].count("huge-line") == 1
    assert report.longest_line == 2_000_000


@pytest.mark.slow
@pytest.mark.data
def test_real_text(real_data: Path, tmp_path: Path) -> None:
    for name, documents, vocabulary in (("enwiki-valid", 179, "uncased"), ("zhwiki-valid", 75, "chinese")):
        path = real_data / f"data/corpora/{name}.txt"
        wordpiece = load_wordpiece(real_data / f"data/vocab/bert-base-{vocabulary}-vocab.txt", cased=False)
        train, valid, report = build_stores(open_corpus([path]), wordpiece, CorpusSettings(), cache=tmp_path, held_out=HeldOut())
        assert valid is not None
        assert (report.documents, report.dropped_documents, report.replacements) == (documents, 0, 0)
        assert report.unknown_tokens / report.tokens < 0.01
        whole = path.read_text("utf-8").replace("\n", " ")  # sentences cut nothing away
        assert train.tokens + valid.tokens == len(wordpiece.encode([whole])[0])
        trained = train_wordpiece(read_documents(open_corpus([path]), CorpusSettings(), ReadReport()), size=3000, lowercase=True)
        assert trained.size == 3000


ASCII_BUILD = """
import sys
from pathlib import Path
from bertkit.corpus.build import build_stores
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.wordpiece import load_wordpiece

folder = Path(sys.argv[1])
corpus = open_corpus([folder])
trained = train_wordpiece(read_documents(corpus, CorpusSettings(), ReadReport()), size=20, lowercase=False)
trained.save(folder / "out", max_length=8)
assert load_wordpiece(folder / "out") == trained
store, _, _ = build_stores(corpus, trained, CorpusSettings(), cache=folder / "cache")
print(ascii(trained.decode(store.ids)))
"""


def test_files_are_utf8_whatever_the_locale(tmp_path: Path) -> None:  # C50
    folder = tmp_path / "r\u00e9sultats"
    folder.mkdir()
    (folder / "\u4e2d.txt").write_text("\u00e9t\u00e9 \u4e2d \u00e9t\u00e9 \u4e2d", "utf-8")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", ASCII_BUILD, folder], env=env, capture_output=True, text=True, check=True)
    assert ascii("\u00e9t\u00e9 \u4e2d \u00e9t\u00e9 \u4e2d") == done.stdout.strip()
