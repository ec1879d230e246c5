"""What a user names as a corpus: which files come of it, in which order, and what is said of the others."""

from __future__ import annotations

import errno
import gzip
import io
import os
import threading
from pathlib import Path

import pytest
from written_texts import as_articles, as_json_lines, as_text, write_parquet

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.named import short_name
from bertkit.corpus.sources import unreadable
from bertkit.errors import DataError, MissingError, UsageError
from bertkit.notices import collecting


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(gzip.compress(b"text") if name.endswith(".gz") else b"text")
    return root


def names(root: Path, *paths: str | Path) -> list[str]:
    return [Path(source.name).relative_to(root).as_posix() for source in open_corpus(paths).sources]


def test_a_folder_is_read_in_one_order_and_the_rest_said(tmp_path: Path) -> None:
    root = tree(tmp_path, "b.txt", "a/z.TXT.gz", "a.txt", "c.md", "wiki_00", ".hidden.txt", ".git/x.txt")
    (root / "j.jsonl").write_bytes(as_json_lines([["a"]]))
    write_parquet(root / "p.parquet", [["a"]])
    with collecting() as heard:
        assert names(root, root) == ["a/z.TXT.gz", "a.txt", "b.txt", "j.jsonl", "p.parquet"]
    assert [n.message for n in heard] == [
        f"{root}: 5 text files are read (2 .txt, 1 .jsonl, 1 .parquet, 1 .txt.gz); 2 are not (1 without ending, 1 .md)."
    ]


def test_links_of_a_folder_are_followed_once_and_lead_somewhere(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", "a.txt", "sub/b.txt")
    tree(tmp_path, "far/c.txt", "far/deep/d.txt")
    (root / "link").symlink_to(tmp_path / "far")
    (root / "sub" / "back").symlink_to("..")
    (root / "zlink").symlink_to("link")
    assert names(root, root) == ["a.txt", "link/c.txt", "link/deep/d.txt", "sub/b.txt"]
    (root / "sub" / "gone.txt").symlink_to("nowhere")
    with pytest.raises(MissingError, match=r"gone\.txt is a link to a file that is not there"):
        open_corpus([root])


def test_a_folder_that_may_not_be_read_is_no_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, real = tree(tmp_path, "a.txt", "sub/b.txt"), os.scandir

    def scandir(path: str) -> object:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)  # whoever runs the tests may read everything
    for named in (root, root / "sub"):
        with pytest.raises(MissingError, match=r"sub cannot be read: Permission denied"):
            open_corpus([named])


def test_a_disk_that_fails_is_no_missing_file() -> None:
    assert [unreadable(Path("a"), OSError(number, "")).exit_code for number in (errno.EIO, errno.EACCES)] == [5, 4]


def test_the_vocabulary_of_a_store_or_a_run_is_no_text(tmp_path: Path) -> None:
    root = tree(
        tmp_path, "a.txt", "store/vocab.txt", "store/store.json", "runs/x/vocab.txt", "runs/x/bertkit.json", "runs/x/c/v.txt"
    )
    with collecting() as heard:
        assert names(root, root) == ["a.txt"]
    left = [n.message for n in heard]
    assert left == [f"{root / 'runs' / 'x'} is a run, and is left out.", f"{root / 'store'} is a token store, and is left out."]
    for name, what in (("store", "a token store"), ("runs/x", "a run")):
        with pytest.raises(DataError, match=f"is {what}, not a folder of texts"):
            open_corpus([root / name])


def test_a_stated_format_goes_before_an_ending(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_bytes(as_articles([["One here."], ["Another."]]))
    with pytest.raises(DataError, match=r"\.xml files are not plain text") as caught:
        open_corpus([path])
    assert "--set corpus.format=text" in str(caught.value.hint)
    settings = CorpusSettings(format="wikiextractor")
    assert len(list(read_documents(open_corpus([path], settings), settings, ReadReport()))) == 2


def test_a_folder_of_wikiextractors(tmp_path: Path) -> None:
    for name in ("AB/wiki_00", "AA/wiki_01", "AA/wiki_00"):
        tree(tmp_path, name).joinpath(name).write_bytes(as_articles([["T", f"{name}."], ["U"]]))
    with collecting() as heard:
        assert names(tmp_path, tmp_path) == ["AA/wiki_00", "AA/wiki_01", "AB/wiki_00"]
    assert [n.kind for n in heard] == ["corpus-format"]
    assert f"{tmp_path / 'AA/wiki_00'} and 2 other files are WikiExtractor's" in heard[0].message


def test_patterns(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.txt", "b.md", "d/c.txt", "d/e/f.txt", ".h/x.txt", "x.pdf", "literal[1].txt")
    assert names(root, f"{root}/**/*.txt") == ["a.txt", "d/c.txt", "d/e/f.txt", "literal[1].txt"]
    assert names(root, f"{root}/*.md") == ["b.md"]
    assert names(root, f"{root}/literal[1].txt") == ["literal[1].txt"]
    with collecting() as heard:
        assert names(root, f"{root}/*") == ["a.txt", "b.md", "d/c.txt", "d/e/f.txt", "literal[1].txt"]
        assert names(root, f"{root}/**") == ["a.txt", "b.md", "d/c.txt", "d/e/f.txt", "literal[1].txt"]
    assert ["; 1 are not (1 .pdf)" in notice.message for notice in heard] == [True, True]
    for pattern in (f"{root}/*.nothing", f"{root}/*.pdf"):
        with pytest.raises(MissingError, match="No file of text matches") as caught:
            open_corpus([pattern])
        assert caught.value.exit_code == 4


def test_what_is_named_twice_is_read_once(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.txt", "b.txt")
    with collecting() as heard:
        assert names(root, root / "b.txt", root, f"{root}/*.txt") == ["b.txt", "a.txt"]
    assert "3 files were named more than once" in heard[0].message


def test_the_digest_is_of_the_content_and_the_format(tmp_path: Path) -> None:
    data = as_json_lines([["a"]])
    for name in ("a.jsonl", "b.jsonl", "c.txt"):
        (tmp_path / name).write_bytes(data)
    one, other, by_content = (open_corpus([tmp_path / name]).digests()[0] for name in ("a.jsonl", "b.jsonl", "c.txt"))
    assert one == other == by_content
    as_text = open_corpus([tmp_path / "c.txt"], CorpusSettings(format="text")).digests()[0]
    assert as_text != one
    (tmp_path / "a.jsonl").write_bytes(data + b"\n")
    assert open_corpus([tmp_path / "a.jsonl"]).digests()[0] != one
    told: list[tuple[int, int | None]] = []
    open_corpus([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]).digests(lambda done, total: told.append((done, total)))
    assert told[-1] == (2 * len(data) + 1, 2 * len(data) + 1)


DOCUMENTS = [["one", "two"], ["three"]]


@pytest.mark.parametrize("data", [as_text(DOCUMENTS), as_articles(DOCUMENTS), as_json_lines(DOCUMENTS)])
@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_read_once_and_summed_meanwhile(tmp_path: Path, data: bytes, packed: bool) -> None:
    data = gzip.compress(data) if packed else data
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_bytes(data)
    with pytest.raises(DataError, match="a pipe or a device"):
        open_corpus([pipe])
    corpus = open_corpus([pipe], once=True)
    assert corpus.once
    assert corpus.bytes is None
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    settings = CorpusSettings()
    assert list(read_documents(corpus, settings, ReadReport())) == DOCUMENTS
    writer.join()
    assert corpus.digests() == open_corpus([file]).digests()


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can be read once") as caught:
        open_corpus(["-"])
    assert "bertkit corpus build - " in str(caught.value)
    (tmp_path / "a.txt").write_bytes(b"one\n\ntwo")
    with (tmp_path / "a.txt").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        corpus = open_corpus(["-"], once=True)
        assert corpus.name == "stdin"
        assert list(read_documents(corpus, CorpusSettings(), ReadReport())) == [["one"], ["two"]]

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    with pytest.raises(UsageError, match="a terminal"):
        open_corpus(["-"], once=True)


def test_parquet_does_not_come_through_a_pipe_or_packed(tmp_path: Path) -> None:
    data = write_parquet(tmp_path / "a.parquet", [["a"]]).read_bytes()
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress(data))
    with pytest.raises(DataError, match="a file of its own"):
        list(read_documents(open_corpus([tmp_path / "b.parquet.gz"]), CorpusSettings(), ReadReport()))


def test_the_size_of_the_text(tmp_path: Path) -> None:
    plain = tree(tmp_path, "a.txt") / "a.txt"
    packed = tree(tmp_path, "a.txt.gz") / "a.txt.gz"
    parquet = write_parquet(tmp_path / "a.parquet", [["x" * 1000 + str(n)] for n in range(100)])
    assert open_corpus([plain]).text_bytes == 4
    assert open_corpus([packed]).text_bytes == 3 * packed.stat().st_size
    known = open_corpus([parquet]).text_bytes
    assert known is not None
    assert 100_000 < known < 110_000
    assert open_corpus([parquet]).bytes == parquet.stat().st_size


@pytest.mark.parametrize(
    ("named", "short"),
    [
        ("data/wiki.txt", "wiki"),
        ("wiki.txt.gz", "wiki"),
        ("data", "data"),
        ("data/*.txt", "data"),
        ("*.txt", "corpus"),
        ("data/**/a*", "data"),
        ("-", "stdin"),
        ("hf:owner/wiki.en@main:20220301:train", "wiki.en"),
        (".", "corpus"),
    ],
)
def test_names_of_what_is_made(named: str, short: str) -> None:
    assert short_name(named) == short
