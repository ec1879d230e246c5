from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.lines import Span
from bertkit.corpus.lines import read_spans as spans_of
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.unpacked import Unpacked
from bertkit.errors import DataError, MissingError, UsageError
from bertkit.notices import collecting


def documents(path: Path, **kinds: str) -> list[list[str]]:
    return list(read_documents(open_corpus([path]), CorpusSettings(**kinds), ReadReport()))  # type: ignore[arg-type]


def read_spans(path: Path, *, replace: bool, block: int = 1 << 20) -> list[Span]:
    with path.open("rb") as file:
        return list(spans_of(Unpacked(file, str(path)), replace=replace, block=block))


def write(folder: Path, data: bytes, name: str = "a.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_bad_byte_is_located_and_replaced_on_request(tmp_path: Path) -> None:  # C01
    a = write(tmp_path, b"plain line\n")
    b = write(tmp_path, b"ok line\nresum\xe9 x\nlast line\n", "b.txt")

    def train(how: CorpusSettings, report: ReadReport) -> None:
        train_wordpiece(read_documents(open_corpus([a, b]), how, report), size=40, lowercase=True)

    with pytest.raises(DataError) as caught:
        train(CorpusSettings(), ReadReport())
    told = str(caught.value)
    assert all(part in told for part in ("b.txt", "line 2", "byte offset 13", "0xE9", "--encoding-errors replace"))
    assert caught.value.exit_code == 3
    report = ReadReport()
    lines = [line for d in read_documents(open_corpus([a, b]), CorpusSettings(encoding_errors="replace"), report) for line in d]
    assert lines == ["plain line", "ok line", "resum\ufffd x", "last line"]
    assert report.replacements == 1
    assert report.lines == 4


def test_a_pipe_is_refused_at_once_and_utf16_known(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(DataError, match="a pipe or a device"):
        open_corpus([tmp_path / "pipe.txt"])
    with pytest.raises(DataError, match="iconv -f UTF-16"):
        read_spans(write(tmp_path, "one two".encode("utf-16")), replace=False)


@pytest.mark.parametrize(
    ("text", "encoding", "known"),
    [
        ("清世宗，名胤禛，是清朝的皇帝。", "gb18030", True),
        ("他的书", "gbk", True),
        ("他的書，在這裡。", "big5", False),
        ("안녕하세요. 저는 학생입니다, 오늘 날씨가 좋네요.", "euc-kr", False),
        ("日本語の文章です。これはテスト、的を射る。", "euc-jp", False),
        ("Les élèves étudient ; naïveté, café.", "cp1252", False),
        ("Привет, это русский текст.", "cp1251", False),
    ],
)
def test_chinese_that_is_not_utf8_is_known_and_nothing_else_taken_for_it(
    tmp_path: Path, text: str, encoding: str, known: bool
) -> None:
    with pytest.raises(DataError) as refused:
        read_spans(write(tmp_path, text.encode(encoding)), replace=False)
    assert ("iconv -f GB18030" in str(refused.value)) == known


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("bad", [b"a\r\nb\r\rc\n\xe4\xb8", b"\xef\xbb\xbfone\ntwo \xff three\n", b"x" * 50 + b"\n\n\xc3("])
def test_bad_byte_place_does_not_depend_on_blocks(tmp_path: Path, bad: bytes, block: int) -> None:
    path = write(tmp_path, bad)
    try:
        bad.decode()
    except UnicodeDecodeError as error:
        offset = error.start
    line = len(re.findall(rb"\r\n|\r|\n", bad[:offset])) + 1
    with pytest.raises(DataError, match=f"line {line}, byte offset {offset}, byte 0x{bad[offset]:02X}"):
        read_spans(path, replace=False, block=block)


@settings(deadline=None)
@given(
    st.text(alphabet=st.sampled_from(list("ab \t\n\r\x0b\x0c\x1c\x85\u2028\u2029\ufeffé中𝔸")), max_size=60),
    st.integers(1, 9),
)
def test_where_lines_end(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    path = write(tmp_path_factory.mktemp("lines"), text.encode())
    expected = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    if not expected[-1]:
        expected.pop()
    spans = read_spans(path, replace=False, block=block)
    assert [line for span in spans for line in span.lines] == expected
    assert sum(span.bytes for span in spans) == len(text.encode())
    at = 1
    for span in spans:
        assert span.first == at
        at += len(span.lines)


@settings(deadline=None)
@given(
    st.binary(max_size=40)
    .map(lambda b: b.replace(b"\n", b"").replace(b"\r", b""))
    .filter(lambda b: not b.startswith((b"\x1f\x8b", b"\xfd7z", b"\x28\xb5\x2f"))),  # packed files begin so
    st.integers(1, 5),
)
def test_replacing_counts_what_python_replaces(tmp_path_factory: pytest.TempPathFactory, data: bytes, block: int) -> None:
    path = write(tmp_path_factory.mktemp("bytes"), data)
    spans = read_spans(path, replace=True, block=block)
    text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    assert "".join(line for span in spans for line in span.lines) == text
    assert sum(span.replacements for span in spans) == text.count("\ufffd") - data.count(b"\xef\xbf\xbd")


def test_what_parts_documents(tmp_path: Path) -> None:
    path = write(tmp_path, b"\n\na\nb\n \t \nc\r\n\r\n\r\nd")
    assert documents(path) == [["a", "b"], ["c"], ["d"]]
    assert documents(path, documents="line") == [["a"], ["b"], ["c"], ["d"]]
    assert documents(path, documents="file") == [["a", "b", "c", "d"]]


def test_the_end_of_a_file_parts_documents(tmp_path: Path) -> None:
    files = [write(tmp_path, b"a\nb"), write(tmp_path, b"\xef\xbb\xbfc\n", "b.txt")]
    report = ReadReport()
    assert list(read_documents(open_corpus(files), CorpusSettings(), report)) == [["a", "b"], ["c"]]
    assert report.unparted == [str(files[0])]
    assert (report.files, report.bytes, report.lines, report.documents) == (2, 8, 3, 2)


@pytest.mark.parametrize(
    ("data", "unparted"), [(b"a\nb\n\n", True), (b"\n\na\nb\n \n\n", True), (b"a\n\nb\n", False), (b"a\n\n", False)]
)
def test_blank_lines_around_a_file_part_nothing_in_it(tmp_path: Path, data: bytes, unparted: bool) -> None:
    report, path = ReadReport(), write(tmp_path, data)
    list(read_documents(open_corpus([path]), CorpusSettings(), report))
    assert report.unparted == [str(path)] * unparted


def test_a_byte_order_mark_goes_only_at_the_start(tmp_path: Path) -> None:
    assert documents(write(tmp_path, b"\xef\xbb\xbfa\n\xef\xbb\xbfb")) == [["a", "\ufeffb"]]


def test_a_huge_line_is_said_once(tmp_path: Path) -> None:  # C04
    path = write(tmp_path, b"first\n" + b"word " * 4_000_000 + b"\n" + b"a" * 25_000_000)
    with collecting() as heard:
        assert [len(line) for line in documents(path)[0]] == [5, 20_000_000, 25_000_000]
    assert [n.kind for n in heard] == ["huge-line"]
    assert "line 2 has 20,000,000 characters" in heard[0].message


def test_folders_are_read_in_one_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a.txt", "c.md", ".hidden.txt", ".git/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path, b"x", name)
    with collecting() as heard:
        assert [Path(s.name).relative_to(tmp_path).as_posix() for s in open_corpus([tmp_path]).sources] == [
            "a/z.txt",
            "a.txt",
            "b.txt",
        ]
        assert len(open_corpus([tmp_path / "b.txt", tmp_path / "a" / ".." / "b.txt"]).sources) == 1
    assert [n.kind for n in heard] == ["corpus-files", "corpus-files"]


def test_a_folder_of_files_without_endings(tmp_path: Path) -> None:
    (tmp_path / "AA").mkdir()
    write(tmp_path, b"x", "AA/wiki_00")
    assert [Path(source.name).name for source in open_corpus([tmp_path]).sources] == ["wiki_00"]


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    write(tmp_path, b"x", "corpus.txt")
    with pytest.raises(MissingError, match=r"corpus\.txt"):
        open_corpus([tmp_path / "corpsu.txt"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingError, match=r"no \.txt"):
        open_corpus([tmp_path / "empty"])
    with pytest.raises(DataError, match="not plain text"):
        open_corpus([write(tmp_path, b"PK", "x.zip")])
    with pytest.raises(DataError, match="UTF-16"):
        documents(write(tmp_path, "hello".encode("utf-16"), "u.txt"))


@pytest.mark.parametrize("data", [b"", b"\n", b" \t\n\r\n\x0b\x0c\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n \xe3\x80\x80\n", b"\r\r"])
def test_files_of_nothing_but_blanks(tmp_path: Path, data: bytes) -> None:
    path, other = write(tmp_path, data), write(tmp_path, b"text", "b.txt")
    for kind in ("blank", "line", "file"):
        report = ReadReport()
        settings = CorpusSettings(documents=kind)  # type: ignore[arg-type]
        assert list(read_documents(open_corpus([path, other]), settings, report)) == [["text"]]
        assert (report.files, report.documents, report.lines, report.bytes) == (2, 1, 1, len(data) + 4)
        assert report.unparted == []


def test_an_empty_name_is_no_corpus() -> None:
    with pytest.raises(UsageError, match="an empty name"):
        open_corpus([""])
