"""Which words of a text a vocabulary knows, and into how many pieces it cuts them, script by script."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertkit.corpus.frequent import FrequentTexts
from bertkit.corpus.scripts import CODE_POINTS, count_code_points, letters_of_scripts, script_of_text, scripts_of_tokens
from bertkit.corpus.vocabulary import MAX_WORD, SPECIALS
from bertkit.corpus.wordpiece import WordPiece

_BATCH = 1_000_000  # characters encoded at once
_LOOKED_AT_ONCE = 256  # lines whose characters are matched to pieces, some 30 kB each
_SAMPLE = 20_000  # lines with an unknown word that are all looked at; of more, every second, then every fourth …


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the corpus has of one script, and what the vocabulary makes of it.

    Attributes:
        name: ``Latin``, ``Han`` …
        letters: Letters.
        words: Words that became pieces; each Han character is one where the vocabulary has it so.
        pieces: The pieces that they became.
        unknown: Words that became ``[UNK]``.
    """

    name: str
    letters: int
    words: int
    pieces: int
    unknown: int

    @property
    def unknown_share(self) -> float:
        """Of all words, those that are unknown."""
        return self.unknown / max(1, self.words + self.unknown)

    @property
    def pieces_a_word(self) -> float:
        """Pieces by words that are known."""
        return self.pieces / max(1, self.words)


class WordSurvey:
    """Counts what becomes of a text's words, a batch of lines at a time.

    Attributes:
        characters: Characters of the lines so far.
        unknown: The unknown words that were looked at.
        stride: Of the lines with an unknown word one in so many is looked at by now.
    """

    def __init__(self, wordpiece: WordPiece) -> None:
        self.characters = 0
        self.unknown = FrequentTexts()
        self.stride = 1
        self._wordpiece = wordpiece
        self._names, self._script_of = scripts_of_tokens(wordpiece.vocabulary, SPECIALS)
        self._letters = np.zeros(CODE_POINTS, dtype=np.int64)
        self._pieces = np.zeros(len(self._names), dtype=np.int64)
        self._words = np.zeros(len(self._names), dtype=np.int64)
        self._unknown_tokens = 0
        self._lines: list[str] = []
        self._waiting = 0
        self._met = 0  # lines with an unknown word

    def add(self, line: str) -> None:
        """The next line."""
        self._lines.append(line)
        self.characters += len(line)
        self._waiting += len(line)
        if self._waiting > _BATCH:
            self.flush()

    def flush(self) -> None:
        """Counts the lines that wait."""
        wordpiece, lines = self._wordpiece, self._lines
        self._letters += count_code_points("".join(lines))
        encoded = wordpiece.encode_flat(lines)
        scripts = self._script_of[encoded.ids]
        self._pieces += np.bincount(scripts, minlength=len(self._names))
        self._words += np.bincount(scripts[~wordpiece.continues[encoded.ids]], minlength=len(self._names))
        unknown = np.flatnonzero(encoded.ids == wordpiece.unk_id)
        self._unknown_tokens += len(unknown)
        some = []
        for number in np.unique(np.searchsorted(encoded.ends, unknown, side="right")).tolist():
            if self._met % self.stride == 0:
                some.append(lines[number])
            self._met += 1
            self.stride = 1 << max(0, (self._met // _SAMPLE).bit_length() - 1)
        for begin in range(0, len(some), _LOOKED_AT_ONCE):
            self._look(some[begin : begin + _LOOKED_AT_ONCE])
        self._lines, self._waiting = [], 0

    def _look(self, lines: list[str]) -> None:
        for line, (ids, places) in zip(lines, self._wordpiece.encode_with_offsets(lines), strict=True):
            for start, end in places[ids == self._wordpiece.unk_id].tolist():
                self.unknown.add(line[start : min(end, start + MAX_WORD + 1)])  # what is longer is unknown for its length

    def known_in_small_letters(self) -> float:
        """Of the commonest unknown words, by their counts, the share that the vocabulary has in small letters."""
        most = self.unknown.most(1000)
        small = self._wordpiece.encode([word.lower() for word, _ in most])
        known = sum(
            count for (_, count), ids in zip(most, small, strict=True) if len(ids) and not (ids == self._wordpiece.unk_id).any()
        )
        return known / max(1, sum(count for _, count in most))

    def scripts(self) -> tuple[Script, ...]:
        """What was counted, the script with most letters first."""
        seen: dict[str, int] = {}
        for word, count in self.unknown.items():
            script = script_of_text(word) or ""
            seen[script] = seen.get(script, 0) + count
        scale = self._unknown_tokens / max(1, sum(seen.values()))
        number = {name: index for index, name in enumerate(self._names)}
        return tuple(
            Script(
                name=name,
                letters=letters,
                words=int(self._words[number[name]]) if name in number else 0,
                pieces=int(self._pieces[number[name]]) if name in number else 0,
                unknown=round(seen.get(name, 0) * scale),
            )
            for name, letters in letters_of_scripts(self._letters).items()
        )
