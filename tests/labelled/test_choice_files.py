"""Contexts with candidates: SWAG's table and people's own, the ways of naming the right one, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError, DataError, SettingsError
from bertkit.labelled.choices import choice_records, read_choices
from bertkit.labelled.columns import Columns
from bertkit.labelled.rows import ChoiceRow
from bertkit.notices import collecting
from bertkit.tasks.registry import task_named

SWAG = task_named("swag").columns
OWN = task_named("choice").columns
HEADER = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
assert SWAG is not None
assert OWN is not None


def read(folder: Path, text: str, columns: Columns = OWN, name: str = "own.csv") -> list[ChoiceRow]:
    (folder / name).write_text(text, encoding="utf-8")
    return read_choices(folder / name, columns)[0]


def test_swags_table(tmp_path: Path) -> None:
    text = f'{HEADER},label\n0,v,3,"He, she. They","He, she.",They,gold,a,"b, c",null,NA,2\n1,v,4,It,,It,gen,1,0,3,2,0\n'
    rows = read(tmp_path, text, SWAG)
    assert [(row.context, row.question, row.candidates, row.label) for row in rows] == [
        ("He, she.", "They", ("a", "b, c", "null", "NA"), 2),
        ("", "It", ("1", "0", "3", "2"), 0),  # the task says that labels are places: "0" is no text here
    ]
    assert str(rows[1].place) == f"{tmp_path}/own.csv, line 3"
    with collecting() as said:
        blind = read(tmp_path, f"{HEADER}\n0,v,3,s,He.,They,gold,a,b,c,d\n", SWAG)
    assert [(row.label, len(row.candidates)) for row in blind] == [(None, 4)]
    assert said == []


def test_the_hubs_records_have_classes_by_name_and_hide_them_in_test() -> None:
    record = {"sent1": "He.", "sent2": "They"} | {f"ending{n}": f"e{n}" for n in range(4)}
    rows, _ = choice_records([record | {"label": "3"}, record | {"label": "0"}], SWAG, source="hub")
    assert [row.label for row in rows] == [3, 0]
    assert choice_records([record | {"label": None}], SWAG, source="hub")[0][0].label is None
    assert choice_records([], SWAG, source="hub")[0] == []


@pytest.mark.data
@pytest.mark.parametrize(("part", "count"), [("train", 1665), ("val", 556), ("test", 555)])
def test_codah_reads_whole(real_data: Path, part: str, count: int) -> None:
    rows, report = read_choices(real_data / f"data/codah/codah-{part}.csv", SWAG)
    assert len(rows) == report.rows == count
    assert {len(row.candidates) for row in rows} == {4}
    assert {row.label for row in rows} == {0, 1, 2, 3}
    if part == "train":
        assert rows[0].context == "The chicken cannot fly."
        assert f"{rows[0].question} {rows[0].candidates[rows[0].label or 0]}" == "It crosses the road."


@pytest.mark.parametrize(
    ("labels", "places", "form"),
    [
        (("0", "2"), (0, 2), "number, counted from 0"),
        (("a", "C"), (0, 2), "letter"),
        (("red", "a sea "), (0, 2), "text"),
    ],
)
def test_how_the_right_one_is_named_is_said(tmp_path: Path, labels: tuple[str, str], places: tuple[int, int], form: str) -> None:
    with collecting() as said:
        rows = read(
            tmp_path,
            f"context,question,choice1,choice2,choice10,label\nx,why,red,blue,green,{labels[0]}\ny,,sea,lake,a sea,{labels[1]}\n",
        )
    assert [row.label for row in rows] == list(places)
    assert rows[0].candidates == ("red", "blue", "green")  # choice10 stands behind choice2
    assert rows[0].question == "why"
    columns, named = (notice.message for notice in said)
    assert "the columns choice1, choice2, choice10, each behind the text of question" in columns
    assert form in named


def test_counting_from_one_is_stated_never_taken(tmp_path: Path) -> None:
    text = "context,choice1,choice2,label\nx,red,blue,2\ny,sea,lake,1\n"
    with pytest.raises(DataError, match="'2' names none of the row's 2 candidates") as caught:
        read(tmp_path, text)
    assert "number_from_1" in str(caught.value.hint)
    rows = read(tmp_path, text, Columns(text="context", label_form="number_from_1"))
    assert [row.label for row in rows] == [1, 0]
    with pytest.raises(DataError, match="counted from 1, but holds '0'"):
        read(tmp_path, text.replace(",2\n", ",0\n"), Columns(text="context", label_form="number_from_1"))


def test_labels_that_can_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    text = "context,choice1,choice2,choice3,label\ntwo less two,1,0,2,0\n"
    with pytest.raises(SettingsError, match="2 ways: its number, counted from 0, or its text") as caught:
        read(tmp_path, text)
    assert caught.value.exit_code == 2
    assert [read(tmp_path, text, Columns(text="context", label_form=form))[0].label for form in ("number", "text")] == [0, 1]


def test_counts_may_differ_and_gaps_stay(tmp_path: Path) -> None:
    rows = read(tmp_path, "context,ending0,ending1,ending2,label\nx,a,b,,1\ny,,b,c,2\nz,a,b,c,\n", OWN)
    assert [row.candidates for row in rows] == [("a", "b"), ("", "b", "c"), ("a", "b", "c")]
    assert [row.label for row in rows] == [1, 2, None]
    with pytest.raises(DataError, match="2 candidates") as caught:
        read(tmp_path, "context,ending0,ending1,ending2,label\nx,a,b,,2\n", OWN)
    assert "line 2" in str(caught.value.where)
    with pytest.raises(DataError, match="one candidate"):
        read(tmp_path, "context,ending0,ending1,label\nx,a,,0\n", OWN)


def test_lists_in_every_format(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    records = [{"text": "x", "options": ["a, b", "1.0"], "y": 1}, {"text": "y", "options": ["ja", "né", "中"], "y": 0}]
    columns = Columns(text="text", label="y", candidates=("options",))
    lines = "".join(json.dumps(record) + "\n" for record in records)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "own.parquet")
    cells = 'text,options,y\nx,"[""a, b"", 1.0]",1\ny,"[""ja"", ""né"", ""中""]",0\n'
    want = [(("a, b", "1.0"), 1), (("ja", "né", "中"), 0)]
    for found in (
        read(tmp_path, lines, columns, "own.jsonl"),
        read(tmp_path, cells, columns),
        read_choices(tmp_path / "own.parquet", columns)[0],
    ):
        assert [(row.candidates, row.label) for row in found] == want


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("context,label\nx,0\n", OWN, "no columns of candidates"),
        ("context,a,b,label\nx,1,2,0\n", Columns(text="context", candidates=("a", "c")), "no column 'c'"),
        ("contxt,choice0,choice1\nx,a,b\n", OWN, "no column 'context'"),
        ("context,options,label\nx,a|b,0\n", OWN, "no list of texts"),
        ('context,options,label\nx,"[""a"", null]",0\n', OWN, "no list of texts"),
        ("context,choice0,choice1,label\nx,a,b,0\ny,c,d,-1\n", OWN, "'-1' names none"),
        ("context,choice0,choice1,label\nx,a,b,0\ny,c,d,q\n", OWN, "'q' names none"),
    ],
)
def test_one_clear_error(tmp_path: Path, text: str, columns: Columns, said: str) -> None:
    with pytest.raises(BertkitError, match=said):
        read(tmp_path, text, columns)
