from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import DataError, MissingError
from bertkit.labelled.conll import each_sentence, is_running_text, read_conll, tagged_lines
from bertkit.labelled.tags import recognise, to_iob2


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_words_columns_tags_and_places(tmp_path: Path) -> None:
    rows, report = read_conll(written(tmp_path, "EU  NNP\tI-NP \t I-ORG\nrejects VBZ I-VP O\n\n\n\nBonn NNP I-NP I-LOC\n"))
    assert [row.words for row in rows] == [("EU", "rejects"), ("Bonn",)]
    assert [row.tags for row in rows] == [("I-ORG", "O"), ("I-LOC",)]
    assert rows[0].columns == (("NNP", "I-NP"), ("VBZ", "I-VP"))
    assert [row.place.line for row in rows] == [1, 6]
    assert [row.id for row in rows] == ["0", "1"]
    assert report.rows == 2


def test_docstart_parts_documents_and_is_no_sentence(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- -X- O\n\na DT x O\n\nb DT x O\n-DOCSTART- -X- -X- O\nc DT x O\n"
    rows, _ = read_conll(written(tmp_path, text))
    assert [(row.words, row.document) for row in rows] == [(("a",), True), (("b",), False), (("c",), True)]


def test_iob1_becomes_iob2(tmp_path: Path) -> None:
    rows, _ = read_conll(written(tmp_path, "a I-LOC\nb B-LOC\nc O\nd I-PER\ne I-PER\n"))
    assert recognise(row.tags or () for row in rows) == ("IOB1", 0)
    assert to_iob2(rows[0].tags or ()) == ["B-LOC", "B-LOC", "O", "B-PER", "I-PER"]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_every_line_end_and_a_byte_order_mark(tmp_path: Path, end: str) -> None:
    rows, _ = read_conll(written(tmp_path, "\ufeff" + end.join(["a O", "b O", " \t", "c O"])))
    assert [row.words for row in rows] == [("a", "b"), ("c",)]


def test_only_spaces_and_tabs_part_columns(tmp_path: Path) -> None:
    rows, _ = read_conll(written(tmp_path, "\u3000\tO\na\u00a0b\tO\n\u2028\tO\n\u200e O\n\x0c O\n"))
    assert rows[0].words == ("\u3000", "a\u00a0b", "\u2028", "\u200e", "\x0c")


def test_bare_words_have_no_gold(tmp_path: Path) -> None:
    rows, _ = read_conll(written(tmp_path, "a\nb\n\nc\n"))
    assert [row.tags for row in rows] == [None, None]
    assert rows[0].words == ("a", "b")
    rows, _ = read_conll(written(tmp_path, "a DT\nb NN\n"), tagged=False)
    assert rows[0].tags is None
    assert rows[0].columns == (("DT",), ("NN",))
    with pytest.raises(DataError, match="no column of tags"):
        read_conll(written(tmp_path, "a\n"), tagged=True)


def test_a_line_with_other_columns_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"3 columns, but the first word of the file has 2.*line 3"):
        read_conll(written(tmp_path, "a O\n\nNew York O\n"))


def test_no_word_no_file_bad_bytes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no word"):
        read_conll(written(tmp_path, "\n\n-DOCSTART- O\n"))
    with pytest.raises(MissingError):
        read_conll(tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match=r"0xE9.*line 2, byte offset 6"):
        read_conll(written(tmp_path, b"ok O\nr\xe9 O\n"))


def test_tagged_lines_are_the_file_again(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O\n\n\na DT O\nb\tNN\tO  \n\n \n-DOCSTART- -X- O\n\nc NN O\n\n\n"
    lines = list(tagged_lines(written(tmp_path, text), [["B-X", "O"], ["I-X"]]))
    assert lines == [
        "-DOCSTART- -X- O",
        "",
        "",
        "a DT O B-X",
        "b\tNN\tO\tO",
        "",
        " ",
        "-DOCSTART- -X- O",
        "",
        "c NN O I-X",
        "",
        "",
    ]


def test_tags_for_the_first_sentences_end_the_file_there(tmp_path: Path) -> None:
    lines = list(tagged_lines(written(tmp_path, "a\n\nb\n\n-DOCSTART-\n\nc\n"), [["X"], ["Y"]]))
    assert [line for line in lines if line.strip()] == ["a X", "b Y", "-DOCSTART-"]


def test_a_file_that_has_changed_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"2 words, but 1 tags.*line 1"):
        list(tagged_lines(written(tmp_path, "a O\nb O\n"), [["X"]]))


COLUMNS = [
    "a O\nb B-X\n",
    "EU NNP I-ORG\n\nNew York O\n",
    "a\nb\n\nc\n",
    "Berlin\n",
    "a DT\nb NN\n\nc DT\n",
    "U.S. adj.\nwent v.\nhome n.\n. PUNCT\n\nshe P\nran V\n? PUNCT\nthen R\n",
    "-DOCSTART- x y\nin Berlin\n",
]
TEXT = [
    "John lives in Berlin .\n",
    "He came .\nShe went .\n",
    "He came .\n\nShe went to Berlin .\n\nAnd I ?\n",
    "Berlin\nIn Berlin it rained\n",
    "\n \nO my B-52\nwhat a plane that is\nit is\n",
    'She flew to New York yesterday.\nHe likes Oslo, she "said."\n\nNothing here\n',
    "She came home.\nHe left!\n\nWho went too?\n",
]


@pytest.mark.parametrize(("text", "running"), [*((text, False) for text in COLUMNS), *((text, True) for text in TEXT)])
def test_running_text_is_told_from_columns(tmp_path: Path, text: str, running: bool) -> None:
    assert is_running_text(written(tmp_path, text)) == running


@pytest.mark.parametrize(
    ("text", "running"), [("我在北京\n很好\n", True), ("我\n在\n\n好\n", False), ("我0\n在1\n", False), ("", False)]
)
def test_running_text_of_characters(tmp_path: Path, text: str, running: bool) -> None:
    assert is_running_text(written(tmp_path, text), characters=True) == running


def test_sentences_come_while_the_file_is_read(tmp_path: Path) -> None:
    rows = each_sentence(written(tmp_path, "a O\n\nb O\n\nNew York O\n"))
    assert [next(rows).words, next(rows).words] == [("a",), ("b",)]
    with pytest.raises(DataError, match="line 5"):
        next(rows)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sentences", "words", "documents"),
    # the counts of Tjong Kim Sang and De Meulder 2003, table 1
    [("train", 14041, 203621, 946), ("valid", 3250, 51362, 216), ("test", 3453, 46435, 231)],
)
def test_conll2003_as_published(real_data: Path, name: str, sentences: int, words: int, documents: int) -> None:
    path = real_data / f"data/conll2003/{name}.txt"
    rows, _ = read_conll(path)
    assert (len(rows), sum(len(row.words) for row in rows), sum(row.document for row in rows)) == (sentences, words, documents)
    assert recognise(row.tags or () for row in rows)[0] == "IOB1"
    # what was read goes back to the same lines
    again = [line.removesuffix(" T") for line in tagged_lines(path, [["T"] * len(row.words) for row in rows])]
    assert again == path.read_text(encoding="utf-8").split("\n")[: len(again)]
    assert len(again) >= path.read_text(encoding="utf-8").count("\n")
