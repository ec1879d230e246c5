"""Which columns of a table are a row's text, pair, label and id: plain facts that task declarations and flags state."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

LabelKind = Literal["class", "number", "several"]
LabelForm = Literal["number", "number_from_1", "letter", "text"]
"""How a file names the right one of several candidates: 0, 1, …; 1, 2, …; A, B, …; or by its very text."""


def _read_only(values: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(values)


# Columns go to the other processes of a run, and pickle does not know of mappings that nobody may write to.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Column names of one table.

    Attributes:
        text: The (first) text's column.
        pair: The second text's, or None.
        label: The label's, or None where none is asked for.
        id: The id's, or None: the row's number from 0 then.
        kind: What a label is: a class by name, a number, or several names (in one column, or as columns of 0 and 1).
        names: Class names in the order of their numbers, where the file writes ``0``, ``1``, … for them; else empty.
        aliases: Other spellings of classes in the file and on the hub (TNEWS's ``100``), and the names that they stand for.
        positions: Columns by place, from 0, for a file whose first line is no header (``{"text": 3, "label": 1}``).
        width: Columns of a file without header.
        plain: True where a ``.tsv`` is GLUE's: without quoting, malformed rows skipped.
        no_label: Spellings that stand for no label (SNLI's ``-``, where the annotators did not agree; a hidden ``-1``). A row
            without a label in a part where others have one is then left out and counted.
        delimiter: Between the names of one cell where a label is several (a JSON list needs none).
        indicators: Columns of 0 and 1, a name each, where a label is several; ``label`` is then no column.
        candidates: Where a row's candidates are: several columns, one column that holds a list, or the name that numbered columns
            share (``ending`` for ending0, ending1, …); empty where the usual names are looked for.
        label_form: How the right candidate is named; None where the labels say it.
        start: Of a question's answer, the column of the character at which it begins in the context; None for others.
        characters: True where each character of a text is a word (Chinese sets of tags).
        joined: What is put between the items where a text is a list (CSL's keywords); None: a list is an error.
    """

    text: str = "text"
    pair: str | None = None
    label: str | None = "label"
    id: str | None = None
    kind: LabelKind = "class"
    names: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    positions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    width: int | None = None
    plain: bool = False
    no_label: tuple[str, ...] = ()
    delimiter: str = ","
    indicators: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    label_form: LabelForm | None = None
    start: str | None = None
    characters: bool = False
    joined: str | None = None
