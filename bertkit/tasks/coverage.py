"""What an encoding puts out of reach: counts, the sentences about them, and what a perfect model could still get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

UNKNOWN = 0.01  # of the tokens: a released vocabulary leaves 0.01 % (English) to 0.5 % (Chinese) of a clean text unknown


@dataclass(slots=True)
class Coverage:
    """What the settings put out of reach, for the line that every evaluation says.

    Attributes:
        rows: Rows encoded.
        examples: Sequences made of them.
        cut_rows: Rows that lost tokens to ``max_length``.
        cut_tokens: Tokens lost.
        emptied: Rows with a text of which the tokenizer leaves nothing.
        skipped: Training rows left out.
        unreachable: Golds that no output can give (answers outside every window, words that the tokenizer deletes).
        words: Words to be tagged; 0 where the task tags none.
        deleted_words: Those that no piece stands for.
        unknown_words: Those of which the vocabulary has no piece.
        tokens: Tokens of all examples, special ones included; 0 where words are tagged, which are counted instead.
        unknown_tokens: Those that stand for what the vocabulary does not have.
        ceilings: The score that a perfect model could still get, by metric name, where that is below the top.
        notes: Sentences of the kind's own.
    """

    rows: int = 0
    examples: int = 0
    cut_rows: int = 0
    cut_tokens: int = 0
    emptied: int = 0
    skipped: int = 0
    unreachable: int = 0
    words: int = 0
    deleted_words: int = 0
    unknown_words: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    ceilings: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Sentences for people; empty where nothing is out of reach."""
        said = []
        if self.cut_rows:
            said.append(
                f"{self.cut_rows} of {self.rows} texts were cut to the length, {self.cut_tokens} tokens lost; raise --max-length."
            )
        if self.emptied:
            said.append(f"{self.emptied} of {self.rows} texts have no token that the tokenizer keeps.")
        if self.skipped:
            said.append(f"{self.skipped} of {self.rows} rows were left out of training.")
        if self.unreachable:
            scale = 1 if "exact" in self.ceilings else 100  # SQuAD's are points already
            best = ", ".join(f"{name} {scale * value:.2f}" for name, value in self.ceilings.items())
            said.append(
                f"{self.unreachable} gold labels are out of reach{f'; a perfect model could get {best}' if best else ''}."
            )
        if self.deleted_words:
            said.append(f"{self.deleted_words} words are deleted by the tokenizer and get the tag O.")
        if self.unknown_words:
            said.append(f"{self.unknown_words} of {self.words} words are [UNK]: the vocabulary has no piece of them.")
        if self.unknown_tokens > UNKNOWN * self.tokens:
            said.append(f"{self.unknown_tokens} of {self.tokens} tokens are [UNK]: the vocabulary has no piece of these words.")
        return said + self.notes

    def facts(self) -> dict[str, Any]:
        """The counts as metrics.json has them under ``coverage``; ceilings in the scale of its figures."""
        names: tuple[str, ...] = ("rows", "cut_rows", "cut_tokens", "emptied", "unreachable")
        names += ("words", "deleted_words", "unknown_words") if self.words else ()
        names += ("tokens", "unknown_tokens") if self.tokens else ()
        return {name: getattr(self, name) for name in names} | {"ceilings": dict(self.ceilings)}

    def add(self, more: Coverage) -> None:
        """Counts further rows. What is out of reach can be told of all rows together alone, and falls away."""
        for name in (
            "rows",
            "examples",
            "cut_rows",
            "cut_tokens",
            "emptied",
            "skipped",
            "words",
            "deleted_words",
            "unknown_words",
            "tokens",
            "unknown_tokens",
        ):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.unreachable, self.ceilings, self.notes = 0, {}, []
