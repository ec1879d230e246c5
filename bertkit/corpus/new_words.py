"""A file of words in, the vocabulary that knows them out: how text of a field meets a model that was trained on other text.

The words are whole-word entries of a plain vocab.txt, so that every reader of WordPiece takes them. What rows of the
model's embeddings start at is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.corpus.numbered_lines import numbered_lines
from bertkit.corpus.pieces import Ids
from bertkit.corpus.vocabulary import MAX_WORD
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError

_UNUSED = re.compile(r"\[unused\d+\]")
_NAMED = 3  # refused lines that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWords:
    """Words that a vocabulary gets.

    Attributes:
        before: The vocabulary without them.
        wordpiece: With them.
        ids: The id of each, ``[n]``, in the order of the file.
        pieces: The ids that each was cut into before, at least one.
        unused: How many of them stand where an ``[unusedN]`` stood.
        known: Lines whose word the vocabulary had.
        repeated: Lines whose word stood above already.
        unknown: How many were ``[UNK]`` before.
    """

    before: WordPiece
    wordpiece: WordPiece
    ids: tuple[int, ...]
    pieces: tuple[Ids, ...]
    unused: int
    known: int
    repeated: int
    unknown: int


def read_new_words(path: Path, wordpiece: WordPiece) -> NewWords:
    """Reads one word a line and puts those that are new into the vocabulary: for ``[unusedN]`` first, then behind the last.

    Words are written as the tokenizer writes them: in small letters and without accents where it is uncased.

    Raises:
        MissingError: The file cannot be read.
        DataError: A byte is not UTF-8, a line is no single word to BERT, or there is none.
    """
    refused: list[str] = []
    new: dict[str, None] = {}
    known = repeated = 0
    for number, line in numbered_lines(path):
        words = wordpiece.words_of(line)
        if len(words) != 1 or len(words[0]) > MAX_WORD:
            refused.append(f"line {number}, {line[:40]!r}, {_why(words)}")
        elif wordpiece.token_id(words[0]) is not None:
            known += 1
        elif words[0] in new:
            repeated += 1
        else:
            new[words[0]] = None
    if refused:
        more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise DataError(
            f"A line must be one word to BERT's tokenizer: {'; '.join(refused[:_NAMED])}{more}.",
            where=f"{path}, {refused[0].split(',')[0]}",
            hint="Give one word a line. Spaces, punctuation and Chinese characters part words, whatever the vocabulary.",
        )
    if not new and not known:
        raise DataError("The file holds no word.", where=str(path))
    return _added(list(new), wordpiece, known=known, repeated=repeated)


def _why(words: Sequence[str]) -> str:
    if not words:
        return "holds nothing visible"
    if len(words) == 1:
        return f"has {len(words[0])} characters, more than {MAX_WORD}"
    return f"is {len(words)}: {' '.join(words[:5])}{' …' if len(words) > 5 else ''}"


def _added(new: list[str], before: WordPiece, *, known: int, repeated: int) -> NewWords:
    tokens = list(before.vocabulary)
    free = [i for i, token in enumerate(tokens) if _UNUSED.fullmatch(token)][: len(new)]
    ids = (*free, *range(len(tokens), len(tokens) + len(new) - len(free)))
    tokens += [""] * (len(new) - len(free))
    for number, word in zip(ids, new, strict=True):
        tokens[number] = word
    pieces = before.encode_words(new)
    return NewWords(
        before=before,
        wordpiece=WordPiece(tokens, before.flags, where="the vocabulary with new words"),
        ids=ids,
        pieces=tuple(pieces),
        unused=len(free),
        known=known,
        repeated=repeated,
        unknown=sum(before.unk_id in each for each in pieces),
    )
