"""Masked sequences as people read them: words put together from their pieces, what is to be guessed in colour.

``[MASK=word]`` is masked, ``[other=word]`` another token stands there, ``[=word]`` it was left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bertkit.corpus.wordpiece import WordPiece

STYLES = {"mask": "bold red", "random": "bold yellow", "kept": "bold green", "special": "dim", "plain": ""}
LEGEND = (
    ("[MASK=word]", STYLES["mask"]),
    (" masked, ", ""),
    ("[other=word]", STYLES["random"]),
    (" replaced, ", ""),
    ("[=word]", STYLES["kept"]),
    (" left as it is; all three are to be guessed.", ""),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One token: what stands there, what it is (a key of ``STYLES``), and what is to be guessed."""

    token: str
    kind: str
    original: str | None = None


def pieces(wordpiece: WordPiece, ids: Sequence[int], labels: Mapping[int, int]) -> list[Piece]:
    """The tokens of one sequence.

    Args:
        wordpiece: Their vocabulary.
        ids: ``[n]`` as the model sees them.
        labels: Place in the sequence -> the id that is to be guessed there.
    """
    found = []
    for place, number in enumerate(ids):
        token = wordpiece.vocabulary[number]
        if place in labels:
            kind = "kept" if labels[place] == number else "mask" if number == wordpiece.mask_id else "random"
            found.append(Piece(token, kind, wordpiece.vocabulary[labels[place]]))
        else:
            found.append(Piece(token, "special" if number in (wordpiece.cls_id, wordpiece.sep_id) else "plain"))
    return found


def styled(shown: Sequence[Piece]) -> list[tuple[str, str]]:
    """Texts with their styles, spaces between words: the pieces of a word stand together."""
    parts: list[tuple[str, str]] = []
    for number, piece in enumerate(shown):
        original = piece.token if piece.original is None else piece.original
        goes_on = number > 0 and original.startswith("##") and shown[number - 1].kind != "special"
        if number and not goes_on:
            parts.append((" ", ""))
        parts.append((_text(piece, goes_on), STYLES[piece.kind]))
    return parts


def _text(piece: Piece, goes_on: bool) -> str:
    bare = piece.token.removeprefix("##") if goes_on else piece.token
    if piece.original is None:
        return bare
    word = piece.original.removeprefix("##") if goes_on else piece.original
    return {"mask": f"[MASK={word}]", "random": f"[{bare}={word}]", "kept": f"[={word}]"}[piece.kind]
