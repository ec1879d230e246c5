from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.files import Pipe
from bertkit.corpus.forecast import Forecast
from bertkit.corpus.hold_out import HeldOut, held_out_documents
from bertkit.corpus.passes import cut_batches
from bertkit.corpus.report import BuildReport
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store import TokenStore
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.word_list import WordList
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, FolderError, MissingError, ResourceError, SettingsError
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


def build(path: Path, cache: Path | None = None, **kinds: Any) -> tuple[TokenStore, BuildReport]:
    build_args = {name: kinds.pop(name) for name in ("workers", "words", "shard", "folder", "progress", "told") if name in kinds}
    return build_store(open_corpus([path]), LETTERS, CorpusSettings(**kinds), cache=cache, **build_args)


def texts_of(store: TokenStore) -> list[list[int]]:
    return [part.tolist() for part in np.split(store.ids, store.document_ends[:-1])]


def ends(store: TokenStore) -> list[int]:
    return store.sentence_ends_between(0, store.tokens).tolist()


def files_of(folder: Path | None) -> dict[str, bytes]:
    assert folder is not None
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def finely(patch: pytest.MonkeyPatch, batch: int, *, point: int | None = None) -> None:
    """Batches of so many characters, and points to go on from."""
    patch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, size=batch))
    if point is not None:
        patch.setattr("bertkit.corpus.making.POINT_EVERY", point)


@pytest.mark.parametrize("batch", [1, 40, 1_000_000])
def test_the_build_is_the_plain_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    path = corpus(tmp_path)
    path.write_bytes(path.read_bytes() + b"\n\n\xe2\x80\x8d\n\na b\n\xe2\x80\x8e\n\n\xc2\xad")
    finely(monkeypatch, batch, point=500)
    store, report = build(path, tmp_path / "cache")
    plain = TokenStore.from_documents(read_documents(open_corpus([path]), CorpusSettings(), ReadReport()), LETTERS)
    for name in ("ids", "document_ends", "document_hashes"):
        assert np.array_equal(getattr(store, name), getattr(plain, name))
    assert ends(store) == ends(plain)
    assert store.folder is not None
    assert TokenStore.open(store.folder, checksums=True).tokens == report.tokens == plain.tokens
    assert (report.documents, report.dropped_documents, report.sentences) == (151, 2, plain.sentences)
    assert (report.one_sentence_documents, report.pairable_documents) == (1, 151)
    assert report.unknown_tokens == 0
    assert load_wordpiece(store.folder) == LETTERS
    assert store.tokenizer == LETTERS.fingerprint


SPACES, ENDS = ["", " ", "\t", "\u3000"], ["\n", "\r\n", "\r"]
LINES = st.text(st.sampled_from("ab. 中国。\x00\x0b\u200d\ud7ff"), max_size=12)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(LINES, st.sampled_from(SPACES), st.sampled_from(ENDS), st.integers(0, 2)), min_size=1, max_size=30),
    st.integers(1, 30),
    st.sampled_from(["blank", "line", "file"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 30),
)
def test_any_text_is_what_its_plain_reading_is(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, str, str, int]],
    batch: int,
    documents: str,
    dedup: bool,
    last_end: bool,
    cut: int,
) -> None:
    folder = tmp_path_factory.mktemp("text")
    made = [space + line + end * (1 + blank) for line, space, end, blank in lines]
    paths = [folder / "1.txt", folder / "2.txt"]  # the first one may end inside a document, the second one be empty
    for path, some in zip(paths, (made[:cut], made[cut:]), strict=True):
        text = "".join(some)
        path.write_bytes((text if last_end else text.rstrip("\r\n")).encode())
    vocabulary = WordPiece([*SPECIALS, *"ab.中国。", "##a", "##b"], Flags(lowercase=True))
    rules = CorpusSettings(documents=documents, dedup="exact" if dedup else "none")  # type: ignore[arg-type]
    read = list(read_documents(open_corpus(paths), rules, ReadReport()))
    texts: list[list[str]] = []
    for document in ([line.strip() for line in document] for document in read):
        if not dedup or document not in texts:
            texts.append(document)
    plain = TokenStore.from_documents(texts, vocabulary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: None)
        finely(patch, batch, point=2 * batch)
        words = WordList({"中国": 1})
        make = partial(build_store, open_corpus(paths), vocabulary, rules, cache=folder / "cache", words=words)
        if not plain.tokens:
            with pytest.raises(DataError, match="no document with a token"):
                make()
            return
        store, report = make()
    assert (store.ids.tolist(), ends(store)) == (plain.ids.tolist(), ends(plain))
    assert store.document_ends.tolist() == plain.document_ends.tolist()
    assert store.document_hashes.tolist() == plain.document_hashes.tolist()
    found = store.word_begins(np.arange(store.tokens))
    assert found is not None
    spelt = [vocabulary.vocabulary[i] for i in store.ids]
    pairs = list(zip(["", *spelt[:-1]], spelt, strict=True))
    inside = [one.startswith("##") or (before == "中" and one == "国") for before, one in pairs]
    assert (found | np.array(inside)).all()  # what is not inside a word begins one
    assert not found[[one.startswith("##") for one in spelt]].any()
    kept = [document for document in read if TokenStore.from_documents([document], vocabulary).tokens]
    distinct = {tuple(line.strip() for line in document) for document in kept}
    assert (report.duplicate_documents, report.lines) == (len(kept) - len(distinct), sum(map(len, read)))
    stripped = [line.strip() for document in read for line in document]
    assert report.duplicate_lines == len(stripped) - len(set(stripped))
    assert report.dropped_documents == len(read) - len(kept)


def test_any_number_of_workers_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path)
    path.write_bytes(path.read_bytes() + b"\n" + b"a b.\n" * 300)  # a document of several batches
    finely(monkeypatch, 700, point=2000)
    words = WordList({"中国": 1})
    made = [files_of(build(path, tmp_path / f"{n}", workers=n, words=words)[0].folder) for n in (0, 1, 2, 3)]
    assert made[0] == made[1] == made[2] == made[3]
    assert set(made[0]) >= {"ids.bin", "word_bits.bin", "vocab.txt", "store.json"}


def test_documents_without_a_token(tmp_path: Path) -> None:  # C02
    path = tmp_path / "a.txt"
    path.write_bytes(b"First real line.\nSecond real line.\n\n\xe2\x80\x8d\n\nThird doc line one.\nThird doc line two.\n")
    with collecting() as heard:
        store, report = build(path, tmp_path / "cache")
    assert (store.documents, store.sentences, report.dropped_documents) == (2, 4, 1)
    assert [n.kind for n in heard] == ["dropped-documents"]
    for nothing in (b"  \t \n", b"\xef\xbb\xbf\n", "\u00ad\n\n\ue000\n".encode(), b""):
        path.write_bytes(nothing)
        with pytest.raises(DataError, match="no document with a token"):
            build(path, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob(".building*"))


def test_the_second_call_does_no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path)
    first = build(path, tmp_path / "cache")
    moved = path.rename(tmp_path / "other.txt")  # names decide nothing
    monkeypatch.setattr("bertkit.corpus.build.make", None)
    again = build(moved, tmp_path / "cache", workers=2)
    assert again[0].fingerprint == first[0].fingerprint
    assert (first[1].reused, again[1].reused) == (False, True)
    assert {**first[1].as_dict(), "reused": True} == again[1].as_dict()


def test_whatever_decides_the_store_decides_its_fingerprint(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    cache = tmp_path / "cache"
    kinds: list[dict[str, Any]] = [{}, {"documents": "line"}, {"dedup": "exact"}, {"words": WordList({"中国": 1})}]
    kinds += [{"words": WordList({"北京": 1})}, {"shard": (1, 2)}, {"shard": (2, 2)}]
    stores = [build(path, cache, **kind)[0] for kind in kinds]
    cased = WordPiece(LETTERS.vocabulary, Flags(lowercase=False))
    stores.append(build_store(open_corpus([path]), cased, CorpusSettings(), cache=cache)[0])
    path.write_text(path.read_text("utf-8") + "more", "utf-8")
    stores.append(build(path, cache)[0])
    assert len({store.fingerprint for store in stores}) == len(kinds) + 2


def test_a_damaged_store_is_built_anew(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    store, _ = build(path, tmp_path / "cache")
    expected = store.ids.tolist()
    assert store.folder is not None
    damage = [(name, lambda _: b"{") for name in ("ids.bin", "store.json", "sentence_bits.bin")]
    flips = [(name, lambda data: bytes([data[0] ^ 1]) + data[1:]) for name in ("ids.bin", "document_hashes.bin")]
    for name, harm in [*damage, *flips]:
        (store.folder / name).write_bytes(harm((store.folder / name).read_bytes()))
        with collecting() as heard:
            again, report = build(path, tmp_path / "cache")
        assert [n.kind for n in heard if n.kind == "store-damaged"] == ["store-damaged"]
        assert not report.reused
        assert again.ids.tolist() == expected


@pytest.mark.parametrize("change", ["cut", "longer", "other bytes"])
def test_a_text_that_changes_while_it_is_read_leaves_no_store(tmp_path: Path, change: str) -> None:
    """A store has the name of the bytes that were summed: with others in it every later run would take it for theirs."""
    path = corpus(tmp_path)
    text = path.read_bytes()
    changed = {"cut": text[:50], "longer": text + b"\n\nmore.", "other bytes": text[::-1]}[change]
    told: list[int] = []

    def progress(done: int, total: int | None) -> None:
        told.append(done)
        if len(told) == 1:  # summed, and not read yet
            path.write_bytes(changed)
            os.utime(path, ns=(1, 1))  # two writes within one tick of the clock

    with pytest.raises(DataError, match="changed while it was read"):
        build(path, tmp_path / "cache", progress=progress)
    assert list((tmp_path / "cache").iterdir()) == []
    path.write_bytes(text)
    assert not build(path, tmp_path / "cache")[1].reused


def test_held_out_documents(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    store, _ = build(path, tmp_path / "cache")
    held = held_out_documents(store.document_hashes, HeldOut(share=0.1))
    assert len(held) == 15
    out = texts_of(store.select(held))
    assert out == [texts_of(store)[d] for d in held]
    reversed_text = tmp_path / "reversed.txt"
    reversed_text.write_text("\n\n".join(path.read_text("utf-8").strip().split("\n\n")[::-1]), "utf-8")
    other, _ = build(reversed_text, tmp_path / "cache")
    again = held_out_documents(other.document_hashes, HeldOut(share=0.1))
    assert texts_of(other.select(again)) == out[::-1]  # by the text, not by its place


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=80),
    st.floats(0, 0.5),
    st.integers(1, 3),
    st.integers(3, 20),
    st.sampled_from([1, 0x9E3779B97F4A7C15]),
)
def test_equal_texts_lie_on_one_side(texts: list[int], share: float, least: int, most: int, spread: int) -> None:
    hashes = np.array(texts, dtype=np.uint64) * np.uint64(spread)
    rule = HeldOut(share=share, least=least, most=most)
    out = np.zeros(len(texts), dtype=bool)
    out[held_out_documents(hashes, rule)] = True
    assert not set(hashes[out].tolist()) & set(hashes[~out].tolist())
    assert (~out).any()
    if len(set(texts)) > 1:
        assert out.any()
        if len(set(texts)) == len(texts):
            assert out.sum() == min(max(round(share * len(texts)), least), most, len(texts) - 1)
            assert set(hashes[out].tolist()) == set(sorted(hashes.tolist())[: out.sum()])
    assert np.array_equal(held_out_documents(hashes[::-1], rule), np.flatnonzero(out[::-1]))


def test_duplicates_are_counted_and_left_out_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\nc\n\nd e.\n\n  a b \nc\n\nd f\n\nd e.\n", "utf-8")
    with collecting() as heard:
        store, report = build(path, tmp_path / "cache")
    assert (store.documents, report.duplicate_documents, report.duplicate_lines) == (5, 2, 3)
    assert [n.kind for n in heard] == ["duplicate-documents", "duplicate-lines"]
    assert "2 of 5 documents (40.0%)" in heard[0].message
    assert "--dedup exact" in heard[0].message
    with collecting() as heard:
        fewer, report = build(path, tmp_path / "cache", dedup="exact")
    assert (fewer.documents, report.duplicate_documents, report.duplicate_lines) == (3, 2, 3)
    assert texts_of(fewer) == [texts_of(store)[d] for d in (0, 1, 3)]
    assert "were left out" in heard[0].message


def test_a_vocabulary_that_does_not_fit_is_told(tmp_path: Path) -> None:
    for unknown, told in ((1, ["unknown-words"]), (0, [])):
        path = tmp_path / f"{unknown}.txt"
        path.write_text("a b c d e.\n" * 10 + "\n" + ("a 清 b.\n" if unknown else ""), "utf-8")
        for _ in range(2):  # and again where the store is found
            with collecting() as heard:
                _, report = build(path, tmp_path / "cache")
            assert report.unknown_tokens == unknown
            assert [n.kind for n in heard if n.kind == "unknown-words"] == told


def test_a_giant_document_that_stood_before_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    giant = "\n".join(f"{'abc' * (n % 5 + 1)} d." for n in range(200))
    path = tmp_path / "a.txt"
    path.write_text(f"{giant}\n\nx y\n\n{giant}\n\nz\n", "utf-8")
    finely(monkeypatch, 100, point=100)  # points inside it too
    store, report = build(path, tmp_path / "cache", dedup="exact")
    path.write_text(f"{giant}\n\nx y\n\nz\n", "utf-8")
    once, _ = build(path, tmp_path / "cache")
    assert report.duplicate_documents == 1
    assert (store.ids.tolist(), ends(store), store.counts["sentences"]) == (once.ids.tolist(), ends(once), once.sentences)
    assert store.document_ends.tolist() == once.document_ends.tolist()


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


def test_a_bad_byte_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # C01
    path = tmp_path / "b.txt"
    path.write_bytes(b"ok line\nresum\xe9 x\nlast line\n")
    with pytest.raises(DataError, match=r"b\.txt.*line 2.*byte offset 13.*0xE9"):
        build(path, tmp_path / "cache", workers=1)
    assert list((tmp_path / "cache").iterdir()) == []
    _, report = build(path, tmp_path / "cache", encoding_errors="replace")
    assert (report.replacements, report.lines) == (1, 3)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "full")])
def test_an_interrupted_build_leaves_nothing_under_a_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException] | BaseException
) -> None:
    path = corpus(tmp_path)

    def stop(*_: object, **__: object) -> None:
        raise error

    for point in (None, 1000):
        with monkeypatch.context() as patch:
            finely(patch, 500, point=point)
            patch.setattr("bertkit.corpus.writer.StoreWriter.finish", stop)
            with pytest.raises(ResourceError if isinstance(error, OSError) else KeyboardInterrupt):
                build(path, tmp_path / "cache")
        left = [path.name for path in (tmp_path / "cache").iterdir()]
        if point is None:  # nothing to go on from, nothing left
            assert left == []
        else:
            assert [name[:10] for name in left] == [".building-"]
            with pytest.raises(MissingError):
                TokenStore.open(tmp_path / "cache" / left[0])
    store, _ = build(path, tmp_path / "cache")
    assert store.folder is not None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [store.folder.name]


def test_progress_goes_to_the_end(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    for workers in (0, 1):
        told: list[tuple[int, int | None]] = []
        build(path, tmp_path / f"{workers}", workers=workers, progress=lambda *done: told.append(done))  # noqa: B023
        assert told[-1] == (path.stat().st_size, path.stat().st_size)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"gone\.txt"):
        build(tmp_path / "gone.txt", tmp_path / "cache")


def test_dirt_in_a_build(tmp_path: Path) -> None:  # C04
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\x00def\n" + b"word " * 400_000 + b"\n" + b"a" * 1_000_001 + b"\n")
    with collecting() as heard:
        store, report = build(path, tmp_path / "cache")
    assert (store.ids == LETTERS.unk_id).sum() == report.unknown_tokens == 1
    assert [n.kind for n in heard].count("huge-line") == 1
    assert report.longest_line == 2_000_000


@pytest.mark.slow
def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a b.\n\n" + b"The end. " * 1_150_000 + b"\n\nc d.\n")
    store, report = build(path, tmp_path / "cache", workers=2)
    assert (store.documents, report.longest_line, report.sentences) == (3, 10_350_000, 1_150_002)


def test_shards_part_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path)
    whole = texts_of(build(path, tmp_path / "cache")[0])
    monkeypatch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, size=300, group=500))
    shards = [build(path, tmp_path / "cache", shard=(i, 3), workers=i % 2) for i in (1, 2, 3)]
    found = [texts_of(store) for store, _ in shards]
    assert sorted(text for texts in found for text in texts) == sorted(whole)
    assert min(map(len, found)) > 30  # of 150
    assert all(whole[whole.index(texts[0]) : whole.index(texts[0]) + 3] == texts[:3] for texts in found)  # groups, in order
    assert sum(report.lines for _, report in shards) == build(path, tmp_path / "cache")[1].lines
    facts = [store.facts for store, _ in shards]
    assert [fact["shard"] for fact in facts] == [[1, 3], [2, 3], [3, 3]]
    assert len({fact["whole"] for fact in facts}) == 1
    assert facts[0]["whole"] == build(path, tmp_path / "cache")[0].fingerprint


def test_a_shard_may_be_empty_and_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\n\nc d\n", "utf-8")
    store, _ = build(path, tmp_path / "cache", shard=(2, 2))
    assert (store.tokens, store.documents, store.sentence_ends_between(0, 0).tolist()) == (0, 0, [])
    assert store.frequencies().sum() == 0
    for shard in ((0, 2), (3, 2), (1, 0)):
        with pytest.raises(SettingsError, match=f"no shard {shard[0]} of {shard[1]}"):
            build(path, tmp_path / "cache", shard=shard)


def test_a_store_in_a_folder_of_its_own(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    folder = tmp_path / "stores" / "letters"
    store, report = build(path, folder=folder)
    assert (store.folder, report.reused) == (folder, False)
    assert files_of(folder) == files_of(build(path, tmp_path / "cache")[0].folder)
    assert build(path, folder=folder)[1].reused
    assert [p.name for p in folder.parent.iterdir()] == ["letters"]
    with pytest.raises(FolderError, match="another text, tokenizer or settings"):
        build(path, folder=folder, documents="line")
    (tmp_path / "mine").mkdir()
    build(path, folder=tmp_path / "mine")  # empty
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(FolderError, match="other files"):
        build(path, folder=tmp_path / "full")
    assert (tmp_path / "full" / "notes.txt").exists()


def test_words_are_stored(tmp_path: Path) -> None:  # C18
    vocabulary = WordPiece([*SPECIALS, *"我喜欢北京大学", "bert", "模", "型", "un", "##want", "##ed"], Flags(lowercase=True))
    words = WordList(dict.fromkeys(("喜欢", "北京", "大学", "模型"), 1.0))
    path = tmp_path / "a.txt"
    path.write_text("我喜欢北京大学\nBERT模型unwanted\n", "utf-8")
    store, _ = build_store(open_corpus([path]), vocabulary, CorpusSettings(), cache=tmp_path, words=words)
    begins = store.word_begins(np.arange(store.tokens))
    assert begins is not None
    assert begins.tolist() == [bool(int(c)) for c in "1101010" + "1" + "10" + "100"]
    plain, _ = build_store(open_corpus([path]), vocabulary, CorpusSettings(), cache=tmp_path)
    assert plain.word_begins(np.arange(store.tokens)) is None


def test_a_large_build_is_forecast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path, documents=600)
    monkeypatch.setattr("bertkit.corpus.forecast.SMALL", 0)
    monkeypatch.setattr("bertkit.corpus.forecast.SAMPLE", 10_000)
    told: list[Forecast] = []
    for shard, words in ((None, None), ((1, 2), WordList({"中国": 1}))):
        monkeypatch.setattr("bertkit.corpus.making.cut_batches", partial(cut_batches, group=200))
        store, report = build(path, tmp_path / "cache", told=told.append, shard=shard, words=words, workers=1)
        arrays = sum(len(data) for name, data in files_of(store.folder).items() if name.endswith(".bin"))
        expected = arrays + 16 * report.lines
        assert abs(told[-1].disk / expected - 1) < 0.1
        assert told[-1].memory >= 180_000_000
    build(path, tmp_path / "cache", told=told.append)
    assert len(told) == 2  # nothing is foretold of what is there
    monkeypatch.setattr("shutil.disk_usage", lambda folder: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    with pytest.raises(ResourceError, match="takes about 0 MB of disk, and 0 MB are free"):
        build(path, tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    expected, _ = build(path, tmp_path / "cache")
    kinds: list[dict[str, Path]] = [{"cache": tmp_path / "other"}, {"folder": tmp_path / "own"}, {"cache": tmp_path / "other"}]
    for place in kinds:
        with path.open("rb") as file:
            corpus_ = Corpus((Pipe("stdin", lambda: file, kind=None, field="text"),))
            store, _ = build_store(corpus_, LETTERS, CorpusSettings(), **place)  # type: ignore[arg-type]
        assert store.fingerprint == expected.fingerprint
        for name in ("ids.bin", "sentence_bits.bin", "document_ends.bin", "document_hashes.bin"):
            assert files_of(store.folder)[name] == files_of(expected.folder)[name]
    assert [p.name for p in (tmp_path / "other").iterdir()] == [expected.folder.name]  # type: ignore[union-attr]
    with path.open("rb") as file:
        corpus_ = Corpus((Pipe("stdin", lambda: file, kind=None, field="text"),))
        with pytest.raises(FolderError, match="there already"):
            build_store(corpus_, LETTERS, CorpusSettings(), folder=tmp_path / "own")


@pytest.mark.slow
@pytest.mark.data
def test_real_text(real_data: Path, tmp_path: Path) -> None:
    for name, documents, vocabulary in (("enwiki-valid", 179, "uncased"), ("zhwiki-valid", 75, "chinese")):
        path = real_data / f"data/corpora/{name}.txt"
        wordpiece = load_wordpiece(real_data / f"data/vocab/bert-base-{vocabulary}-vocab.txt", cased=False)
        store, report = build_store(open_corpus([path]), wordpiece, CorpusSettings(), cache=tmp_path, workers=1)
        assert store.folder is not None
        arrays = sum(file.stat().st_size for file in store.folder.glob("*.bin"))
        assert arrays / store.tokens < 2.2
        assert (report.documents, report.dropped_documents, report.replacements) == (documents, 0, 0)
        assert report.unknown_tokens / report.tokens < 0.01
        whole = path.read_text("utf-8").replace("\n", " ")  # sentences cut nothing away
        assert store.tokens == len(wordpiece.encode([whole])[0])
        trained = train_wordpiece(read_documents(open_corpus([path]), CorpusSettings(), ReadReport()), size=3000, lowercase=True)
        assert trained.size == 3000


ASCII_BUILD = """
import sys
from pathlib import Path
from bertkit.corpus.build import build_store
from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.wordpiece import load_wordpiece

folder = Path(sys.argv[1])
corpus = open_corpus([folder])
trained = train_wordpiece(read_documents(corpus, CorpusSettings(), ReadReport()), size=20, lowercase=False)
trained.save(folder / "out", max_length=8)
assert load_wordpiece(folder / "out") == trained
store, _ = build_store(corpus, trained, CorpusSettings(), cache=folder / "cache")
print(ascii(trained.decode(store.ids)))
"""


def test_files_are_utf8_whatever_the_locale(tmp_path: Path) -> None:  # C50
    folder = tmp_path / "r\u00e9sultats"
    folder.mkdir()
    (folder / "\u4e2d.txt").write_text("\u00e9t\u00e9 \u4e2d \u00e9t\u00e9 \u4e2d", "utf-8")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", ASCII_BUILD, folder], env=env, capture_output=True, text=True, check=True)
    assert ascii("\u00e9t\u00e9 \u4e2d \u00e9t\u00e9 \u4e2d") == done.stdout.strip()
