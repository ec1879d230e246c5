"""People's own tables: every cell is text until its column says otherwise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.errors import DataError, MissingError, UsageError
from bertkit.labelled.columns import Columns
from bertkit.labelled.tables import read_table
from bertkit.notices import collecting

OWN = Columns(text="text", label="label")
MISSING_LOOKING = ["null", "NA", 'two\nlines, "quoted"', "", "nan"]


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(path: Path, columns: Columns = OWN) -> list[tuple[str, object]]:
    return [(row.text, row.label) for row in read_table(path, columns)[0]]


def test_texts_that_look_missing(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbftext,label\r\nnull,0\r\nNA,1\r\n"two\nlines, ""quoted""",0\r\n"",1\r\nnan,0\r\n'
    path = write(tmp_path, "own.csv", content)
    rows, report = read_table(path, OWN)
    assert [row.text for row in rows] == MISSING_LOOKING
    assert [row.label for row in rows] == ["0", "1", "0", "1", "0"]
    assert [row.place.line for row in rows] == [2, 3, 4, 6, 7]
    assert report.columns == ("text", "label")


def test_the_same_texts_in_every_format(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    labels = ["0", "1", "0", "1", "0"]
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip(MISSING_LOOKING, labels, strict=True)]
    json_lines = write(tmp_path, "own.jsonl", "\ufeff" + "\n\n".join(lines))
    tsv = write(tmp_path, "own.tsv", 'text\tlabel\nnull\t0\nNA\t1\n"two\nlines, ""quoted"""\t0\n""\t1\nnan\t0\n')
    parquet.write_table(pyarrow.table({"text": MISSING_LOOKING, "label": labels}), tmp_path / "own.parquet")
    expected = list(zip(MISSING_LOOKING, labels, strict=True))
    assert texts(json_lines) == expected
    assert texts(tsv) == expected
    assert texts(tmp_path / "own.parquet") == expected


def test_a_cell_of_parquet_that_is_not_utf8_is_located(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cells = pyarrow.array([b"fine", b"resum\xe9"], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"text": cells, "label": ["0", "1"]}), tmp_path / "own.parquet")
    with pytest.raises(DataError, match="Byte 0xE9 is not UTF-8") as caught:
        texts(tmp_path / "own.parquet")
    assert caught.value.where == f"{tmp_path / 'own.parquet'}, row 2, byte offset 5 of its cell"


def test_tsv_quotes_that_do_not_pair_up_are_characters(tmp_path: Path) -> None:
    path = write(tmp_path, "own.tsv", 'text\tpair\tlabel\n"A b\tc\t1\nd\te\t0\nf" g\th\t1\n')
    with collecting() as said:
        rows, _ = read_table(path, Columns(text="text", pair="pair"))
    assert [row.text for row in rows] == ['"A b', "d", 'f" g']
    assert [notice.kind for notice in said] == ["tsv-quotes"]


def test_tsv_quotes_in_the_middle_of_a_cell_are_characters(tmp_path: Path) -> None:
    path = write(tmp_path, "own.tsv", 'text\tlabel\nhe said "no" twice\t1\n5" screen\t0\n')
    with collecting() as said:
        assert texts(path) == [('he said "no" twice', "1"), ('5" screen', "0")]
    assert said == []


@pytest.mark.parametrize(
    ("name", "content", "message", "line"),
    [
        ("a.csv", "text,label\nfine,1\nshort\n", "Row 2 has 1 cells, but the header has 2", "line 3"),
        ("a.csv", "text,label\na,b,1\n", "Row 1 has 3 cells", "line 2"),
        ("a.csv", 'text,label\nok,1\n"a"b,1\n', "cannot be told apart", "line 3"),
        ("a.csv", 'text,label\nok,1\n"never closed,1\n', "cannot be told apart", "line 3"),
        ("a.csv", "", "empty", "a.csv"),
        ("a.csv", "text;label\nx;1\n", "no column 'text'.*parted by ';'", "a.csv"),
        ("a.tsv", "text\tlabel\nshort\n", "Row 1 has 1 cells", "line 2"),
        ("a.jsonl", '{"text": "a", "label": 1}\n\n{"text": 1', "no JSON", "line 3"),
        ("a.jsonl", '["a", 1]\n', "no object", "line 1"),
        ("a.jsonl", '{"text": "a"}\n{"text": null}\n', "no text here", "line 2"),
        ("a.jsonl", '{"text": "a"}\n{"label": "x"}\n', "no text here", "line 2"),
        ("a.jsonl", '{"text": "a\\ud800b", "label": 1}\n', r"half a surrogate pair \(U\+D800\)", "line 1"),
        ("a.jsonl", '{"text": "a", "label": ["x", "y"]}\n', "several labels", "line 1"),
        ("a.csv", b"text,label\nresum\xe9,1\n", "0xE9", "line 2, byte offset 16"),
        ("a.csv", "text,label\nx,1\n".encode("utf-16"), "iconv -f UTF-16", "line 1, byte offset 0"),
        ("a.parquet", "text,label\n", "no readable Parquet", "a.parquet"),
    ],
)
def test_faults_are_named_by_row(tmp_path: Path, name: str, content: str | bytes, message: str, line: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        texts(write(tmp_path, name, content))
    assert str(caught.value.where).endswith(line)


def test_unknown_ending_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Did you mean '.csv'"):
        texts(write(tmp_path, "own.cvs", "text,label\n"))
    for ending in ("csv", "parquet"):
        with pytest.raises(MissingError):
            texts(tmp_path / f"none.{ending}")


def test_json_values_are_the_text_they_are_spelled_with(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.jsonl",
        '{"text": 1.0, "label": 1}\n{"text": true, "label": false}\n{"text": 007e, "label": ""}'.replace("007e", "7e3"),
    )
    assert texts(path) == [("1.0", "1"), ("true", "false"), ("7e3", None)]


def test_unicode_line_separators_do_not_part_json_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"text": "a\u2028b\x85c", "label": 1}\n')
    assert texts(path) == [("a\u2028b\x85c", "1")]


def test_a_cell_of_a_million_characters_and_a_nul(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,label\n" + "x" * 1_000_000 + ",1\na\0b,0\n")
    assert [(len(text), label) for text, label in texts(path)] == [(1_000_000, "1"), (3, "0")]


def test_label_kinds(tmp_path: Path) -> None:
    csv = write(tmp_path, "a.csv", "text,label\na,3.5\nb,-1e2\n")
    assert [label for _, label in texts(csv, Columns(kind="number"))] == [3.5, -100.0]
    for bad in ("x", "nan", "inf"):
        with pytest.raises(DataError, match=f"should be a number, but holds '{bad}'"):
            texts(write(tmp_path, "b.csv", f"text,label\na,{bad}\n"), Columns(kind="number"))
    several = write(tmp_path, "c.csv", 'text,label\na,"x, y"\nb,\nc,z\n')
    assert [label for _, label in texts(several, Columns(kind="several"))] == [("x", "y"), (), ("z",)]
    listed = write(tmp_path, "c.jsonl", '{"text": "a", "label": ["x, y", "z"]}\n{"text": "b", "label": []}\n')
    assert [label for _, label in texts(listed, Columns(kind="several"))] == [("x, y", "z"), ()]


def test_class_numbers_become_their_names(tmp_path: Path) -> None:
    named = Columns(names=("no", "yes"))
    assert texts(write(tmp_path, "a.csv", "text,label\na,1\nb,NO\nc,\n"), named) == [("a", "yes"), ("b", "no"), ("c", None)]
    with pytest.raises(DataError, match="holds '2', which is none of no, yes or 0 to 1"):
        texts(write(tmp_path, "b.csv", "text,label\na,2\n"), named)


def test_a_table_without_the_label_column_has_no_labels(tmp_path: Path) -> None:
    rows, report = read_table(write(tmp_path, "a.csv", "text,lable\na,1\n"), OWN)
    assert [row.label for row in rows] == [None]
    assert report.columns == ("text", "lable")


def test_parquet_with_hub_class_labels(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features = {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}
    table = pyarrow.table({"text": ["a", "b", "c"], "label": [1, 0, -1]})
    table = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert texts(tmp_path / "a.parquet") == [("a", "pos"), ("b", "neg"), ("c", None)]


def test_reading_needs_no_slow_library_and_no_utf8_locale(tmp_path: Path) -> None:
    path = write(tmp_path, "é中.csv", "text,label\nnaïve 中文,é\n")
    script = (
        "import sys, pathlib; from bertkit.labelled.tables import read_table; from bertkit.labelled.columns import Columns\n"
        "rows, _ = read_table(next(pathlib.Path(sys.argv[1]).glob('*.csv')), Columns())\n"
        "print(ascii((rows[0].text, rows[0].label)), *{'torch', 'pandas', 'datasets', 'pyarrow'} & set(sys.modules))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path.parent)], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ascii(("naïve 中文", "é"))


def test_bytes_of_parquet_are_texts_where_they_are_utf8(tmp_path: Path) -> None:
    """Hive and Impala leave out the mark of a string; a picture in another column is nobody's text."""
    import pyarrow.parquet

    path = tmp_path / "bytes.parquet"
    table = {"text": ["né".encode(), b"b"], "label": [b"x", b"y"], "image": [b"\xff\xd8", b"\x89"]}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    rows, _ = read_table(path, Columns())
    assert [(row.text, row.label) for row in rows] == [("né", "x"), ("b", "y")]
    for columns in (Columns(text="image"), Columns(label="image")):
        with pytest.raises(DataError, match="holds bytes that are not UTF-8") as fault:
            read_table(path, columns)
        assert fault.value.where == f"{path}, row 1"


@pytest.mark.parametrize("spelled", ["['red', 'cat']", "[]", '["red"]', "['red' 'cat']"])
def test_a_list_that_is_spelled_as_a_text_is_no_name(tmp_path: Path, spelled: str) -> None:
    """What pandas writes into a CSV for lists would be labels with brackets and quotes in their names."""
    path = tmp_path / "lists.csv"
    quoted = spelled.replace('"', '""')
    path.write_text(f'text,label\na,[red]\nb,"{quoted}"\n')
    with pytest.raises(DataError, match="a list spelled as a text") as fault:
        read_table(path, Columns(kind="several"))
    assert fault.value.where == f"{path}, line 3"
