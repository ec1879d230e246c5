"""Rows, reviews and what a command leaves behind: plain things that the tests of the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MakeModel = Callable[..., Path]


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The one JSON object of stdout."""
        assert self.out.count("\n") == 1, self.out
        told: dict[str, Any] = json.loads(self.out)
        return told

    @property
    def metrics(self) -> dict[str, Any]:
        assert self.code == 0, self.err
        figures: dict[str, Any] = self.report["metrics"]
        return figures

    def warned(self, kind: str) -> list[str]:
        return [warning["message"] for warning in self.report["warnings"] if warning["kind"] == kind]


Call = Callable[..., Done]

WORDS = {"positive": ("good", "fine"), "negative": ("bad", "poor")}


def review(number: int) -> tuple[str, str]:
    """A text and its label, which one of its words gives away; no text comes twice below 2 600."""
    label = ("negative", "positive")[number % 2]
    return f"{'abcdefghijklmnopqrstuvwxyz'[number // 100 % 26]} {number % 100} {WORDS[label][number // 2 % 2]} .", label


def sst2_lines(numbers: range, *, gold: bool = True) -> str:
    rows = [review(number) for number in numbers]
    if not gold:
        return "index\tsentence\n" + "".join(f"{place}\t{text}\n" for place, (text, _) in enumerate(rows))
    return "sentence\tlabel\n" + "".join(f"{text}\t{int(label == 'positive')}\n" for text, label in rows)


QUICK = ("--lr", "0.01", "--epochs", "6", "--batch-size", "16")
"""Enough for a model of 32 columns to tell the words of :func:`review`."""


def predictions(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:  # whose lines, unlike splitlines', may have U+2028 within
        return [json.loads(line) for line in file]
