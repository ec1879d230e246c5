"""Texts for the tests of corpus commands: plain prose of made-up words, and the same with one fault each."""

from __future__ import annotations

from bertkit.randomness import stream

SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "ze")
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES[:5] for c in ("", "n", "s")]


def sentence(rng: object, words: int = 12) -> str:
    """A sentence of made-up words."""
    drawn = rng.choice(WORDS, words)  # type: ignore[attr-defined]
    return " ".join(drawn).capitalize() + "."


def document(rng: object, lines: int = 4) -> list[str]:
    """A document of paragraphs of three sentences."""
    return [" ".join(sentence(rng) for _ in range(3)) for _ in range(lines)]


def prose(documents: int = 60, seed: int = 0) -> list[list[str]]:
    """Documents without any fault."""
    rng = stream(seed, "prose")
    return [document(rng) for _ in range(documents)]


def text_of(documents: list[list[str]]) -> str:
    """A text file's content: a blank line between documents."""
    return "\n\n".join("\n".join(lines) for lines in documents) + "\n"
