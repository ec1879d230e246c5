"""GLUE's files: columns by name, no quoting, rows that never shift."""

from pathlib import Path

import pytest

from bertkit.errors import DataError, MissingError
from bertkit.labelled.columns import Columns
from bertkit.labelled.glue import read_glue
from bertkit.tasks.glue import COLA

PAIRS = Columns(text="q1", pair="q2", label="l")
QQP = Columns(text="question1", pair="question2", label="is_duplicate", id="id")


def write(folder: Path, content: bytes, name: str = "train.tsv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_quote_is_a_character(tmp_path: Path) -> None:
    path = write(tmp_path, b'q1\tq2\tl\n"A b\tc\t1\nd\te\t0\nf" g\th\t1\n')
    rows, report = read_glue(path, PAIRS)
    assert [(row.text, row.pair, row.label) for row in rows] == [('"A b', "c", "1"), ("d", "e", "0"), ('f" g', "h", "1")]
    assert report.skipped == []
    assert [row.id for row in rows] == ["0", "1", "2"]


def test_malformed_rows_are_skipped_counted_and_located(tmp_path: Path) -> None:
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    good = "{n}\t1\t2\twhat {n}?\twhich {n}?\t0\n"
    content = header + good.format(n=7) + "8\t1\t2\n" + good.format(n=9) + "10\t1\t2\ta\tb\t0\textra\n" + good.format(n=11)
    path = write(tmp_path, content.encode())
    rows, report = read_glue(path, QQP)
    assert [(row.id, row.text, row.pair) for row in rows] == [(n, f"what {n}?", f"which {n}?") for n in ("7", "9", "11")]
    assert [(skipped.place.line, skipped.reason) for skipped in report.skipped] == [
        (3, "3 columns instead of 6"),
        (5, "7 columns instead of 6"),
    ]
    assert report.summary() == (
        f"2 rows were skipped: {path}, line 3: 3 columns instead of 6; {path}, line 5: 7 columns instead of 6."
    )
    with pytest.raises(DataError, match="3 columns instead of 6") as caught:
        read_glue(path, QQP, strict=True)
    assert caught.value.where == f"{path}, line 3"
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_cola_with_and_without_header(tmp_path: Path, end: bytes) -> None:
    train = write(tmp_path, end.join([b"gj04\t1\t\tFirst sentence.", b"gj04\t0\t*\tSecond.", b""]))
    test = write(tmp_path, end.join([b"index\tsentence", b"0\tThird.", b""]), "test.tsv")
    assert COLA.columns is not None
    rows, _ = read_glue(train, COLA.columns)
    assert [(row.text, row.label, row.place.line) for row in rows] == [
        ("First sentence.", "acceptable", 1),
        ("Second.", "unacceptable", 2),
    ]
    rows, _ = read_glue(test, COLA.columns)
    assert [(row.id, row.text, row.label, row.place.line) for row in rows] == [("0", "Third.", None, 2)]


def test_cola_rows_of_another_width_do_not_shift(tmp_path: Path) -> None:
    path = write(tmp_path, b"gj04\t1\t\tOne.\ngj04\t0\tTwo.\ngj04\t0\t\tThree.\n")
    assert COLA.columns is not None
    rows, report = read_glue(path, COLA.columns)
    assert [row.text for row in rows] == ["One.", "Three."]
    assert [skipped.place.line for skipped in report.skipped] == [2]


def test_a_byte_order_mark_goes(tmp_path: Path) -> None:
    columns = Columns(text="#1 String", pair="#2 String", label="Quality")
    path = write(tmp_path, b"\xef\xbb\xbfQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t5\t6\ta b\tc d\n")
    rows, _ = read_glue(path, columns)
    assert [(row.text, row.pair, row.label) for row in rows] == [("a b", "c d", "1")]


def test_line_separators_of_unicode_stay_in_their_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "q1\tq2\tl\na\u2028b\x0bc\x85d\te\t1\n".encode())
    rows, report = read_glue(path, PAIRS)
    assert [row.text for row in rows] == ["a\u2028b\x0bc\x85d"]
    assert not report.skipped


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"q1\tQ2\tl\n", r"no column 'q2'\. Did you mean 'Q2'"),
        (b"q1\tq2\tq2\tl\na\tb\tc\t1\n", "2 columns 'q2'"),
        (b"q1\tq2\tl\nok\tok\t1\nresum\xe9\tx\t1\n", "0xE9"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_glue(write(tmp_path, content), PAIRS)
    assert "train.tsv" in str(caught.value.where)


def test_a_bad_byte_is_named_by_line_and_offset_with_the_mark_counted(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbfq1\tq2\tl\nok\tok\t1\nresum\xe9\tx\t1\n")
    with pytest.raises(DataError) as caught:
        read_glue(path, PAIRS)
    assert caught.value.where == f"{path}, line 3, byte offset {path.read_bytes().index(0xE9)}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError) as caught:
        read_glue(tmp_path / "none.tsv", PAIRS)
    assert caught.value.exit_code == 4


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "columns", "rows"),
    [
        ("CoLA/train.tsv", COLA.columns, 8551),
        ("CoLA/test.tsv", COLA.columns, 1063),
        ("SST-2/dev.tsv", Columns(text="sentence"), 872),
        ("MRPC/train.tsv", Columns(text="#1 String", pair="#2 String", label="Quality"), 3668),
        ("MRPC/test.tsv", Columns(text="#1 String", pair="#2 String", label="Quality"), 1725),
        ("RTE/dev.tsv", Columns(text="sentence1", pair="sentence2"), 277),
        ("WNLI/dev.tsv", Columns(text="sentence1", pair="sentence2"), 71),
        ("QNLI/dev.tsv", Columns(text="question", pair="sentence"), 5463),
        ("STS-B/dev.tsv", Columns(text="sentence1", pair="sentence2", label="score", kind="number"), 1500),
        ("MNLI/dev_matched.tsv", Columns(text="sentence1", pair="sentence2", label="gold_label"), 1000),
    ],
)
def test_the_published_files(real_data: Path, name: str, columns: Columns, rows: int) -> None:
    """The counts are those of the GLUE paper's table (MNLI's of the rows held out for this data)."""
    read, report = read_glue(real_data / "data/glue" / name, columns, strict=True)
    assert len(read) == rows == report.rows
    assert all((row.label is None) == ("test" in name) for row in read)
