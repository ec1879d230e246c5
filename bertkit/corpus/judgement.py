"""A fault of a text: what it is, how bad, its figures, and what to do about it.

An *error* wastes the run, a *warning* makes it worse than it could be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One fault.

    Attributes:
        kind: A stable word for programs.
        level: ``warning`` or ``error``.
        message: What is wrong, with its figures.
        hint: What to do.
        figures: The figures by name, and examples.
    """

    kind: str
    level: Level
    message: str
    hint: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "kind": self.kind, "level": self.level, "message": self.message, "hint": self.hint, "figures": dict(self.figures)
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a store counts of its text, as far as it is judged.

    Attributes:
        documents: Documents.
        tokens: Tokens.
        unknown_tokens: Those that are ``[UNK]``.
        one_sentence_documents: Documents of one sentence.
        dropped_documents: Documents without a token.
        longest_document: Tokens of the longest.
        parting: What parts documents: ``blank``, ``line`` or ``file``.
        lowercase: The vocabulary's casing.
    """

    documents: int
    tokens: int
    unknown_tokens: int
    one_sentence_documents: int
    dropped_documents: int
    longest_document: int
    parting: str
    lowercase: bool


def level_of(share: float, thresholds: tuple[float, float]) -> Level | None:
    """None below both."""
    warning, error = thresholds
    return "error" if share >= error else "warning" if share >= warning else None


def percent(share: float) -> str:
    """A share as people read it: three digits, never 0 % for what is not 0."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.1f} %" if value >= 0.1 else f"{value:.2g} %"
