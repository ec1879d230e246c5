"""Documents in, a WordPiece vocabulary out: the same bytes for the same text, whatever the machine.

Words are counted as the tokenizer will see them, then pieces that stand together most often are merged (byte-pair
encoding over characters, as the tokenizers library trains WordPiece too), ties by spelling. Everything is decided by
counts and spellings alone, so neither the order of the documents nor any hash or thread can matter. Memory has a bound
whatever the text: words are counted exactly, on disk where they are many, and the most frequent ones are learned from.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tokenizers import pre_tokenizers

from bertkit.corpus.characters import HAN
from bertkit.corpus.merges import MOST_PIECES, Pairs
from bertkit.corpus.vocabulary import MAX_WORD, SPECIALS, Flags
from bertkit.corpus.word_counts import WordCounts
from bertkit.corpus.wordpiece import WordPiece, bert_normalizer
from bertkit.errors import DataError, SettingsError
from bertkit.notices import say

MOST_WORDS = 500_000  # different words that are learned from: those of some 200 MB of English
COVERAGE = 0.99995  # of the characters of the text; the rarest letters of other scripts are not worth an entry each,
ALPHABET_LEAST = 256  # but so many
ALPHABET_LEAST_SHARE = 0.05  # and this share of the vocabulary always go to single characters, where the text has them
ALPHABET_SHARE = 0.75  # of the vocabulary, at most, goes to single characters
_LONG = 48  # characters of a run between spaces from which on it is not worth remembering (Chinese has no spaces)
_BATCH = 50_000  # characters given to the normalizer at once
_SWEEP = 8_000_000  # characters after which the long runs among those remembered are counted and forgotten
_CHUNKS = 500_000  # different runs remembered before they are counted as words: some 80 MB
_PART = 1_000_000  # characters of a line cut at once
_ASCII = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9]")  # letters and digits, or one mark: all others of ASCII are punctuation
_HAN = re.compile(f"([{chr(HAN.start)}-{chr(HAN.stop - 1)}]+)")

Documents = Iterable[list[str]] | Callable[[], Iterable[list[str]]]


def train_wordpiece(
    documents: Documents,
    *,
    size: int,
    lowercase: bool,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    min_frequency: int = 2,
    folder: Path | None = None,
) -> WordPiece:
    """Trains a vocabulary with ``[PAD] [UNK] [CLS] [SEP] [MASK]`` at ids 0 to 4.

    Args:
        documents: Documents (or parts of them) as lists of lines, or a function that gives them.
        size: Entries in all; fewer come out where the text does not hold as many (said once).
        lowercase: Whether texts are lowercased.
        strip_accents: Whether accents go; None: as ``lowercase``.
        tokenize_chinese_chars: Whether each Chinese character is a word.
        min_frequency: Times that two pieces must stand together to be merged.
        folder: Where counts lie while there are too many for memory; None: where the system puts temporary files.

    Raises:
        DataError: The text has no word.
        SettingsError: ``size`` or ``min_frequency`` is too small, or ``size`` too large.
    """
    if size <= len(SPECIALS) or size > MOST_PIECES or min_frequency < 1:
        raise SettingsError(f"A vocabulary of {size} entries at a minimum frequency of {min_frequency} cannot be trained.")
    flags = Flags(lowercase=lowercase, strip_accents=strip_accents, tokenize_chinese_chars=tokenize_chinese_chars)
    with WordCounts(folder) as counts:
        count_words(documents() if callable(documents) else documents, flags, counts)
        words, characters = most_frequent(counts, MOST_WORDS)
    if not words:
        raise DataError("The text holds no word to train a vocabulary on.")
    pieces = learn_pieces(words, characters, size - len(SPECIALS), min_frequency)
    if len(pieces) + len(SPECIALS) < size:
        say(
            "vocabulary-size",
            f"The text gives a vocabulary of {len(pieces) + len(SPECIALS):,} entries, not {size:,}: "
            f"no further pieces stand together {'once' if min_frequency == 1 else f'{min_frequency} times'}.",
        )
    return WordPiece([*SPECIALS, *pieces], flags, where="the trained vocabulary")


def count_words(documents: Iterable[list[str]], flags: Flags, counts: WordCounts) -> None:
    """Counts each word of the documents, as BERT's normalizer and pre-tokenizer cut it, up to 100 characters."""
    count = _WordCounter(flags, counts)
    chunks: Counter[str] = Counter()
    length = 0  # read since the last sweep
    for document in documents:
        for line in document:
            for part in _parts(line):
                chunks.update(part.split(" "))
                length += len(part)
                if length > _SWEEP:
                    count.long_ones(chunks)
                    length = 0
                if len(chunks) > _CHUNKS:
                    count.chunks(chunks)
                    chunks = Counter()
    count.chunks(chunks)


def _parts(line: str) -> Iterator[str]:
    """A long line cut at spaces, where no word is cut."""
    start = 0
    while len(line) - start > _PART and (space := line.find(" ", start + _PART)) >= 0:
        yield line[start:space]
        start = space + 1
    yield line[start:] if start else line


class _WordCounter:
    """Cuts runs between spaces into words, all runs of one count in one call."""

    def __init__(self, flags: Flags, counts: WordCounts) -> None:
        self._normalizer = bert_normalizer(flags)
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._counts = counts
        self._lowercase, self._parts_chinese = flags.lowercase, flags.tokenize_chinese_chars

    def long_ones(self, chunks: Counter[str]) -> None:
        """Counts and forgets the long runs, which seldom come again."""
        long = {chunk: chunks[chunk] for chunk in list(chunks) if len(chunk) > _LONG}
        for chunk in long:
            del chunks[chunk]
        self.chunks(long)

    def chunks(self, chunks: Mapping[str, int]) -> None:
        """Adds the words of ``chunks``, each as often as its chunk."""
        by_count: defaultdict[int, list[str]] = defaultdict(list)
        plain: defaultdict[str, int] = defaultdict(int)
        for chunk, times in chunks.items():
            if chunk.isascii() and chunk.isprintable():  # plain enough to be cut here, which is several times as fast
                for word in _ASCII.findall(chunk.lower() if self._lowercase else chunk):
                    plain[word] += times
            else:
                by_count[times].append(chunk)
        self._counts.add({word: times for word, times in plain.items() if len(word) <= MAX_WORD})
        for times, alike in by_count.items():
            for batch in _batches(alike):
                text = " ".join(batch)
                if self._parts_chinese:  # each such character is a word, and parts what stands on both sides of it
                    apart = _HAN.split(text)
                    self._counts.add(Counter("".join(apart[1::2])), times)
                    text = " ".join(apart[::2])
                text = self._normalizer.normalize_str(text)
                words = Counter(word for word, _ in self._pre_tokenizer.pre_tokenize_str(text) if len(word) <= MAX_WORD)
                self._counts.add(words, times)


def _batches(chunks: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for chunk in chunks:
        batch.append(chunk)
        length += len(chunk)
        if length > _BATCH:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def most_frequent(counts: WordCounts, most: int) -> tuple[dict[str, int], dict[str, int]]:
    """The ``most`` commonest words (ties by spelling) with their counts, and how often each character stands in all words.

    Characters are spelt as pieces: ``a`` where a word begins with it, else ``##a``.
    """
    first: defaultdict[str, int] = defaultdict(int)
    inner: defaultdict[str, int] = defaultdict(int)
    different = 0

    def all_of_them() -> Iterator[tuple[int, str]]:
        nonlocal different
        for word, times in counts.items():
            different += 1
            first[word[0]] += times
            for character in word[1:]:
                inner[character] += times
            yield -times, word

    words = {word: -times for times, word in heapq.nsmallest(most, all_of_them())}
    if different > most:
        say(
            "vocabulary-words",
            f"The vocabulary is learned from the {most:,} most frequent of the text's {different:,} different words; "
            "every character counts.",
        )
    return words, {**first, **{f"##{character}": times for character, times in inner.items()}}


def learn_pieces(words: Mapping[str, int], characters: Mapping[str, int], room: int, min_frequency: int) -> list[str]:
    """At most ``room`` pieces for counted words: single characters in order of code point, then merges as they were made.

    Args:
        words: How often each word stands in the text.
        characters: The same of single-character pieces (see :func:`most_frequent`).
        room: Entries.
        min_frequency: Times that two pieces must stand together to be merged.
    """
    alphabet, rest = _alphabet(characters, room)
    table = Pairs(words, alphabet, min_frequency)
    pieces = list(alphabet)
    known = set(pieces)
    while len(pieces) < room and (merged := table.merge()) is not None:
        if merged not in known:  # two ways may lead to one piece: ab + c and a + bc
            known.add(merged)
            pieces.append(merged)
    return pieces + rest[: room - len(pieces)]


def _alphabet(counts: Mapping[str, int], room: int) -> tuple[list[str], list[str]]:
    """The characters kept (sorted) and those left out (the most frequent first)."""
    order = sorted(counts, key=lambda piece: (-counts[piece], piece))
    needed = COVERAGE * sum(counts.values())
    least = max(ALPHABET_LEAST, int(room * ALPHABET_LEAST_SHARE))
    most = max(1, int(room * ALPHABET_SHARE))
    covered = taken = 0
    while taken < len(order) and taken < most and (covered < needed or taken < least):
        covered += counts[order[taken]]
        taken += 1
    return sorted(order[:taken]), order[taken:]
