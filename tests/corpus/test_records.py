"""Every format gives the same documents; and what is wrong with a record is said with its place."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_texts import PACKERS, as_articles, as_json_lines, as_text, read, write_parquet

from bertkit.corpus.documents import ReadReport
from bertkit.corpus.wikiextractor import begins_article
from bertkit.errors import DataError
from bertkit.notices import collecting

LINE = st.text(alphabet=st.sampled_from(list('ab .é中𝔸\t\x0b\x0c\x00\x1c\x85\u2028\ufeff"\\{<')), min_size=1, max_size=12)
# A corpus may not begin with what says its format, and a byte order mark at its start goes.
FIRST = LINE.map(lambda line: f"x{line}")
DOCUMENTS = st.lists(st.lists(FIRST, min_size=1, max_size=4), min_size=1, max_size=5)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@settings(deadline=None, max_examples=60)
@given(DOCUMENTS, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(sorted(PACKERS)))
def test_every_format_gives_the_same_documents(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[str]], ends: str, packed: str
) -> None:
    folder = tmp_path_factory.mktemp("formats")
    text = as_text(documents).replace(b"\n", ends.encode())
    json_lines = as_json_lines(documents, ends)
    for path in (
        write(folder / "a.txt", text),
        write(folder / "a", text + b"\n \t\n\n"),
        write(folder / f"a.txt{packed}", PACKERS[packed](text)),
        write(folder / "wiki_00", as_articles(documents)),
        write(folder / f"wiki_01{packed}", PACKERS[packed](as_articles(documents))),
        write(folder / "a.jsonl", json_lines),
        write(folder / "wiki_02", json_lines.replace(b"\n", b"\n\n")),
        write(folder / f"a.jsonl{packed}", PACKERS[packed](json_lines)),
        write_parquet(folder / "a.parquet", documents, row_group_size=2),
    ):
        report = ReadReport()
        assert read(path, report=report) == documents, path
        assert report.documents == len(documents)
        assert report.lines == sum(map(len, documents))
        assert read(path, documents="line") == [[line] for document in documents for line in document]
        assert read(path, documents="file") == [[line for document in documents for line in document]]


def test_articles_that_do_not_end(tmp_path: Path) -> None:
    data = b'\n<doc id="1" url="u" title="T">\nT\n\nOne.\n<doc id="2" title="U">\nU\n</doc>\n</doc>\nafter\n</doc> no\n<doc>\n'
    path = write(tmp_path / "wiki_00", data)
    with collecting() as heard:
        assert read(path) == [["T", "One."], ["U"], ["after", "</doc> no", "<doc>"]]
    assert [notice.kind for notice in heard] == ["corpus-format"]
    assert "WikiExtractor" in heard[0].message
    assert read(path, format="text")[0] == ['<doc id="1" url="u" title="T">', "T"]


def test_titles_with_quotes_which_wikiextractor_does_not_escape(tmp_path: Path) -> None:
    titles = ['"Weird Al" Yankovic', "A > B", 'The "X"', "plain", '"']
    marks = [f'<doc id="{n}" url="https://x/?curid={n}" title="{title}">\n' for n, title in enumerate(titles)]
    text = "".join(f"{mark}{title}\n\nText.\n\n</doc>\n" for mark, title in zip(marks, titles, strict=True))
    with collecting() as heard:
        assert read(write(tmp_path / "wiki_00", text.encode())) == [[title, "Text."] for title in titles]
    assert [notice.kind for notice in heard] == ["corpus-format"]
    began = time.perf_counter()
    for line in ("<doc " + 'title="x" ' * 100_000 + ">x", "<doc " + 'a="b" ' * 100_000, '<doc title="' + '">' * 100_000 + "x"):
        assert not begins_article(line)
    assert time.perf_counter() - began < 5  # a square of these lengths takes minutes


def test_a_text_is_not_taken_for_another_format(tmp_path: Path) -> None:
    for line in ("{a}", "<docs>", "<doc>", '<doc id="1"', "{", "[1]", "<doc id=1> is a tag"):
        with collecting() as heard:
            assert read(write(tmp_path / "a.txt", line.encode())) == [[line]]
        assert heard == []


def told(path: Path, **kinds: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **kinds)
    assert caught.value.exit_code == 3
    return str(caught.value)


GOOD = b'{"text": "a"}\n\n'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"text": "b"', ("no JSON", "whole object")),
        (b'{"Text": "b", "n": 1}', ("no field 'text'", "Did you mean 'Text'", "It has 'Text', 'n'", "--text-field")),
        (b"{}", ("no field 'text'", "no field at all")),
        (b'{"text": null}', ("'text' holds null, not a string",)),
        (b'{"text": ["a"]}', ("'text' holds an array",)),
        (b'{"text": 1}', ("'text' holds a number",)),
        (b'["a"]', ("holds an array, not an object", "jq -c '.[]'")),
        (b'"a"', ("holds a string, not an object",)),
        (b"[" * 100_000, ("no JSON",)),
        (b'{"text": "a\\ud800"}', ("half a surrogate pair", "\\ud800", "--encoding-errors replace")),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: bytes, words: tuple[str, ...]) -> None:
    message = told(write(tmp_path / "a.jsonl", GOOD + line + b"\n"))
    assert all(word in message for word in (*words, "a.jsonl, line 3")), message


def test_bad_bytes_in_records(tmp_path: Path) -> None:
    import pyarrow as pa

    path = write(tmp_path / "a.jsonl", GOOD + b'{"text": "\xe9"}\n')
    assert "line 3, byte offset 25, byte 0xE9" in told(path)
    report = ReadReport()
    half = json.dumps({"text": "x\ud800y\ufffd"}).encode()
    path = write(tmp_path / "b.jsonl", GOOD + b'{"text": "\xe9"}\n' + half)
    assert read(path, report=report, encoding_errors="replace") == [["a"], ["\ufffd"], ["x\ufffdy\ufffd"]]
    assert report.replacements == 2
    raw = write_parquet(tmp_path / "a.parquet", [["a"]])
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": pa.array([b"ok", b"b\xe9\n"], pa.binary())}), raw)
    assert "a.parquet, row 2, byte offset 1 of its text, byte 0xE9" in told(raw)
    assert read(raw, encoding_errors="replace") == [["ok"], ["b\ufffd"]]


def test_another_field(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"body": "one\\n\\ntwo", "text": 5}\n')
    assert read(path, text_field="body") == [["one", "two"]]
    parquet = write_parquet(tmp_path / "a.parquet", [["x"]])
    message = told(parquet, text_field="txt")
    assert all(
        word in message for word in ("no field 'txt'", "Did you mean 'text'", "'id', 'text'", "--text-field", str(parquet))
    )
    assert "values of type int64, not a string" in told(parquet, text_field="id")


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "dictionary"])
def test_kinds_of_parquet_columns(tmp_path: Path, kind: str) -> None:
    import pyarrow as pa

    types = {"dictionary": pa.dictionary(pa.int32(), pa.string()), "string_view": pa.string_view()}
    wanted = types.get(kind) or getattr(pa, kind)()
    path = write_parquet(tmp_path / "a.parquet", [["é", "b"], ["c"]], type=wanted)
    assert read(path) == [["é", "b"], ["c"]]


def test_parquet_that_is_none_or_has_a_null(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = write_parquet(tmp_path / "a.parquet", [["some text"]] * 1000, row_group_size=10)
    data = whole.read_bytes()
    for damaged in (data[:-9], b"", b"plain text", data[:200] + bytes(400) + data[600:]):
        assert "cut.parquet" in told(write(tmp_path / "cut.parquet", damaged))
    pq.write_table(pa.table({"text": ["a", None]}), whole)
    assert "a.parquet, row 2" in told(whole)
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), whole)
    assert read(whole) == []


def test_parquet_is_read_in_batches_of_bounded_size(tmp_path: Path) -> None:
    from bertkit.corpus.records import parquet_spans

    path = write_parquet(tmp_path / "a.parquet", [["x" * 100_000]] * 200 + [["y"]] * 20_000, row_group_size=10**6)
    size = path.stat().st_size
    spans = list(parquet_spans(str(path), "text", "a", size, replace=False))
    assert sum(span.taken for span in spans) == size
    assert max(len(span.lines) for span in spans) // 2 <= 4096
    assert [span.first for span in spans] == [1 + sum(len(s.lines) // 2 for s in spans[:n]) for n in range(len(spans))]


def test_a_huge_record_is_named_by_its_number(tmp_path: Path) -> None:  # C04
    path = write(tmp_path / "a.jsonl", GOOD + json.dumps({"text": "short\n" + "word " * 1_000_000}).encode())
    with collecting() as heard:
        read(path)
    assert next(n.message for n in heard if n.kind == "huge-line").startswith(f"{path}, record 3 has 5,000,000 characters")


def test_whatever_is_damaged_is_said_with_the_files_name(tmp_path: Path) -> None:
    rng = random.Random(5)
    documents = [[f"line {i} {j} " + "é中x" * rng.randint(0, 30) for j in range(3)] for i in range(40)]
    whole = {"wiki_00": as_articles(documents), "a.jsonl": as_json_lines(documents)}
    whole |= {f"a.txt{ending}": pack(as_text(documents)) for ending, pack in PACKERS.items()}
    whole["a.parquet"] = write_parquet(tmp_path / "x.parquet", documents, row_group_size=10).read_bytes()
    said = []
    for number in range(160):
        name = sorted(whole)[number % len(whole)]
        data = bytearray(whole[name])
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            data[at : at + rng.choice((0, 1, 30, len(data)))] = rng.randbytes(rng.choice((0, 1, 9))) or b"x"
        try:
            read(write(tmp_path / name, bytes(data)))
        except DataError as error:
            said.append((name, str(error)))
    assert all(name in message for name, message in said)
    assert len(said) > 80  # the others are text still, or in zstd without a checksum
