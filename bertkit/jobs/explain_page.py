"""An explanation as a page: what BERT reads, what it is to guess, what a model guesses, each block with what it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bertkit.jobs.columns import shown_width
from bertkit.jobs.console import Console, clean
from bertkit.jobs.layout import cut, page_width
from bertkit.jobs.masked_text import LEGEND, STYLES, styled

if TYPE_CHECKING:
    from bertkit.jobs.explain import Explanation
    from bertkit.jobs.explain_model import Guesses

_INDENT = "   "
_LABEL = 9  # columns of the widest row's name
_CELL = 24  # columns of a piece at most
_PAIRS = {
    "is_next": ("P(IsNext)", "B follows A in the text that it comes from"),
    "in_order": ("P(in order)", "A and B stand in the order of their text"),
}


def print_page(found: Explanation, console: Console) -> None:
    """Prints it on stdout."""
    _pieces(found, console)
    console.result()
    _draw(found, console)
    console.result()
    if found.guesses is None:
        _sentences(console, "3", ("With --model RUN this page goes on with what a model guesses here.",))
        return
    _guesses(found, found.guesses, console)
    console.result()
    _pair(found.guesses, console, two=len(found.texts) > 1)


def _sentences(console: Console, number: str, sentences: Sequence[str]) -> None:
    """The head of a block: one sentence a line, the first one bold."""
    for place, sentence in enumerate(sentences):
        first = f"{number}. " if place == 0 else _INDENT
        console.styled([(sentence, "bold" if place == 0 else "")], first=first, rest=_INDENT)


def _pieces(found: Explanation, console: Console) -> None:
    sentences = [
        "The text becomes pieces of a vocabulary; a piece with ## goes on with a word.",
        "[CLS] opens the sequence, [SEP] ends each text.",
        "id: its line in vocab.txt, from 0. segment: 0 in text A, 1 in text B.",
        "The model adds up three vectors: of the id, of the segment, of the position.",
    ]
    if found.wordpiece.unk_id in found.ids:
        sentences.append("[UNK] is a word that the vocabulary cannot spell.")
    _sentences(console, "1", sentences)
    tokens = [cut(clean(found.wordpiece.vocabulary[i]), _CELL) for i in found.ids.tolist()]
    places = [str(place) for place in range(len(tokens))]
    rows = [tokens, [str(i) for i in found.ids.tolist()], [str(i) for i in found.segments.tolist()], places]
    special = (found.wordpiece.cls_id, found.wordpiece.sep_id)
    columns = list(zip(*rows, ["special" if i in special else "plain" for i in found.ids.tolist()], strict=True))
    for block in _blocks(columns, page_width(console.stdout) - len(_INDENT) - _LABEL):
        console.result()
        for row, name in enumerate(("piece", "id", "segment", "position")):
            parts = []
            for column in block:
                room = max(map(shown_width, column[:4]))
                parts.append((" " * (room - shown_width(column[row]) + 1) + column[row], STYLES[column[4]]))
            console.styled(parts, first=f"{_INDENT}{name:<{_LABEL - 1}}")


def _blocks(columns: Sequence[tuple[str, ...]], width: int) -> Iterator[list[tuple[str, ...]]]:
    """The columns in as few lines as they fit, each with a space before it."""
    block: list[tuple[str, ...]] = []
    used = 0
    for column in columns:
        room = max(map(shown_width, column[:4])) + 1
        if block and used + room > width:
            yield block
            block, used = [], 0
        block.append(column)
        used += room
    yield block


def _draw(found: Explanation, console: Console) -> None:
    mask, random = found.shares
    own = len(found.ids) - 1 - len(found.texts)
    sentences = (
        f"{100 * found.probability:.4g} % of the pieces are drawn, to be guessed: here {len(found.places)} of {own}.",
        f"Of those, {100 * mask:.4g} % become [MASK], {100 * random:.4g} % another piece; the rest stay as they are.",
        "As any piece may be wrong, the model must learn what fits in every place.",
    )
    _sentences(console, "2", sentences)
    console.styled([*LEGEND], first=_INDENT, rest=_INDENT)
    console.result()
    console.styled(styled(found.shown), first=_INDENT, rest=_INDENT)


def _guesses(found: Explanation, guesses: Guesses, console: Console) -> None:
    sentences = [
        "From what stands left and right the model gives every piece a probability P.",
        "-log P of the piece that was there is the loss: 0 for a sure, right guess.",
    ]
    if guesses.words is None:
        sentences.append("This model has no head for masked words (fine-tuning leaves it away): name a pretrained one.")
        _sentences(console, "3", sentences)
        return
    _sentences(console, "3", sentences)
    console.result()
    originals = [clean(found.wordpiece.vocabulary[found.ids[place]]) for place in found.places.tolist()]
    wide = min(_CELL, max(5, *map(shown_width, originals)))
    console.styled([("likeliest", "dim")], first=f"{_INDENT}position  {'piece':<{wide}}  -log P  ")
    for place, original, piece, guess in zip(
        found.places.tolist(), originals, [p for p in found.shown if p.original is not None], guesses.words, strict=True
    ):
        word = cut(original, wide)
        before = f"{_INDENT}{place:>8}  {word}{' ' * (wide - shown_width(word))}  {guess.loss:>6.2f}  "
        words = [
            (f"{cut(clean(likely), _CELL)} {100 * share:.1f}%", STYLES[piece.kind] if likely == piece.original else "")
            for likely, share in guess.likeliest
        ]
        for line in _lines(words, page_width(console.stdout) - shown_width(before)):
            console.styled(line, first=before)
            before = " " * shown_width(before)
    console.styled([(f"The mean of -log P, {guesses.loss:.2f}, is the masked-word loss of this draw.", "")], first=_INDENT)


def _lines(words: Sequence[tuple[str, str]], width: int) -> Iterator[list[tuple[str, str]]]:
    """Words with their styles in as few lines as they fit, two spaces between them."""
    line: list[tuple[str, str]] = []
    for text, style in words:
        if line and sum(shown_width(part) for part, _ in line) + 2 + shown_width(text) > width:
            yield line
            line = []
        line += [("  ", ""), (text, style)] if line else [(text, style)]
    yield line


def _pair(guesses: Guesses, console: Console, *, two: bool) -> None:
    name, meaning = _PAIRS[guesses.pair_kind]
    if guesses.pair is not None:
        sentences: tuple[str, ...] = (
            f"{name} = {guesses.pair:.3f}: whether {meaning}.",
            "It is read off the state of [CLS] alone, which has looked at every piece of both texts.",
        )
    elif not guesses.has_pair_head:
        sentences = ("This model has no head for pairs of texts, so it does not say whether B follows A.",)
    elif two:
        sentences = (f"Without a head for masked words {name} is not asked for.",)
    else:
        sentences = (f"With a second text the model would also say {name}: whether {meaning}.",)
    _sentences(console, "4", sentences)
