"""Documents in, a WordPiece vocabulary out: the same bytes for the same text, whatever the machine.

Words are counted as the tokenizer will see them, then pieces that stand together most often are merged (byte-pair
encoding over characters, as the tokenizers library trains WordPiece too), ties by spelling. Everything is decided by
counts and spellings alone, so neither the order of the documents nor any hash or thread can matter.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from tokenizers import pre_tokenizers

from bertkit.corpus.vocabulary import MAX_WORD, SPECIALS, Flags
from bertkit.corpus.wordpiece import WordPiece, bert_normalizer
from bertkit.errors import DataError, SettingsError
from bertkit.notices import say

COVERAGE = 0.99995  # of the characters of the text; the rarest letters of other scripts are not worth an entry each,
ALPHABET_LEAST = 256  # but so many
ALPHABET_LEAST_SHARE = 0.05  # and this share of the vocabulary always go to single characters, where the text has them
ALPHABET_SHARE = 0.75  # of the vocabulary, at most, goes to single characters
_LONG = 48  # characters of a run between spaces from which on it is not worth remembering (Chinese has no spaces)
_BATCH = 200_000  # characters given to the normalizer at once
_SWEEP = 100_000  # different runs from which on the long ones among them are counted and forgotten
_CHUNKS = 2_000_000  # different runs remembered before they are counted as words

Documents = Iterable[list[str]] | Callable[[], Iterable[list[str]]]


def train_wordpiece(
    documents: Documents,
    *,
    size: int,
    lowercase: bool,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    min_frequency: int = 2,
) -> WordPiece:
    """Trains a vocabulary with ``[PAD] [UNK] [CLS] [SEP] [MASK]`` at ids 0 to 4.

    Args:
        documents: Documents as lists of lines, or a function that gives them.
        size: Entries in all; fewer come out where the text does not hold as many (said once).
        lowercase: Whether texts are lowercased.
        strip_accents: Whether accents go; None: as ``lowercase``.
        tokenize_chinese_chars: Whether each Chinese character is a word.
        min_frequency: Times that two pieces must stand together to be merged.

    Raises:
        DataError: The text has no word.
        SettingsError: ``size`` or ``min_frequency`` is too small.
    """
    if size <= len(SPECIALS) or min_frequency < 1:
        raise SettingsError(f"A vocabulary of {size} entries at a minimum frequency of {min_frequency} cannot be trained.")
    flags = Flags(lowercase=lowercase, strip_accents=strip_accents, tokenize_chinese_chars=tokenize_chinese_chars)
    words = count_words(documents() if callable(documents) else documents, flags)
    if not words:
        raise DataError("The text holds no word to train a vocabulary on.")
    pieces = learn_pieces(words, size - len(SPECIALS), min_frequency)
    if len(pieces) + len(SPECIALS) < size:
        say(
            "vocabulary-size",
            f"The text gives a vocabulary of {len(pieces) + len(SPECIALS)} entries, not {size}: "
            f"no further pieces stand together {min_frequency} times.",
        )
    return WordPiece([*SPECIALS, *pieces], flags, where="the trained vocabulary")


def count_words(documents: Iterable[list[str]], flags: Flags) -> dict[str, int]:
    """How often each word stands in the documents, as BERT's normalizer and pre-tokenizer cut it."""
    words: Counter[str] = Counter()
    count = _WordCounter(flags, words)
    chunks: Counter[str] = Counter()
    sweep = _SWEEP
    for document in documents:
        for line in document:
            chunks.update(line.split(" "))
        if len(chunks) > sweep:
            count.long_ones(chunks)
            sweep = max(_SWEEP, 2 * len(chunks))  # what is left is short and stays, so looking again soon is no use
        if len(chunks) > _CHUNKS:
            count.chunks(chunks)
            chunks = Counter()
    count.chunks(chunks)
    return words


class _WordCounter:
    """Cuts runs between spaces into words, all runs of one count in one call: the table says how often each word stands."""

    def __init__(self, flags: Flags, words: Counter[str]) -> None:
        self._normalizer = bert_normalizer(flags)
        self._pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._words = words

    def long_ones(self, chunks: Counter[str]) -> None:
        """Counts and forgets the long runs, which seldom come again."""
        long = {chunk: chunks[chunk] for chunk in list(chunks) if len(chunk) > _LONG}
        for chunk in long:
            del chunks[chunk]
        self.chunks(long)

    def chunks(self, chunks: Mapping[str, int]) -> None:
        """Adds the words of ``chunks``, each as often as its chunk."""
        by_count: defaultdict[int, list[str]] = defaultdict(list)
        for chunk, times in chunks.items():
            by_count[times].append(chunk)
        for times, alike in by_count.items():
            for batch in _batches(alike):
                text = self._normalizer.normalize_str(" ".join(batch))
                for word, n in Counter(word for word, _ in self._pre_tokenizer.pre_tokenize_str(text)).items():
                    self._words[word] += n * times


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


def learn_pieces(words: Mapping[str, int], room: int, min_frequency: int) -> list[str]:
    """At most ``room`` pieces for counted words: single characters in order of code point, then merges as they were made."""
    cut = {word: [word[0], *("##" + c for c in word[1:])] for word in words if len(word) <= MAX_WORD}
    alphabet, rest = _alphabet(cut, words, room)
    kept = set(alphabet)
    table = _Pairs([(pieces, words[word]) for word, pieces in sorted(cut.items()) if kept.issuperset(pieces)])
    pieces = list(alphabet)
    known = set(pieces)
    while len(pieces) < room and (merged := table.merge(min_frequency)) is not None:
        if merged not in known:  # two ways may lead to one piece: ab + c and a + bc
            known.add(merged)
            pieces.append(merged)
    return pieces + rest[: room - len(pieces)]


def _alphabet(cut: Mapping[str, list[str]], words: Mapping[str, int], room: int) -> tuple[list[str], list[str]]:
    """The characters kept (sorted) and those left out (the most frequent first)."""
    counts: Counter[str] = Counter()
    for word, pieces in cut.items():
        times = words[word]
        for piece in pieces:
            counts[piece] += times
    order = sorted(counts, key=lambda piece: (-counts[piece], piece))
    needed = COVERAGE * sum(counts.values())
    least = max(ALPHABET_LEAST, int(room * ALPHABET_LEAST_SHARE))
    most = max(1, int(room * ALPHABET_SHARE))
    covered = taken = 0
    while taken < len(order) and taken < most and (covered < needed or taken < least):
        covered += counts[order[taken]]
        taken += 1
    return sorted(order[:taken]), order[taken:]


class _Pairs:
    """The pairs of neighbouring pieces in a list of counted words, kept up to date while pairs are merged.

    Pieces are small numbers here (their spelling in ``_spelt``), and only what lies beside a merged pair is counted anew.
    """

    def __init__(self, words: list[tuple[list[str], int]]) -> None:
        self._spelt: list[str] = []
        self._number: dict[str, int] = {}
        self._words = [[self._piece(piece) for piece in pieces] for pieces, _ in words]
        self._times = [times for _, times in words]
        self._counts: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._where: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # may name words that have lost the pair
        for index, (pieces, times) in enumerate(zip(self._words, self._times, strict=True)):
            for pair in pairwise(pieces):
                self._counts[pair] += times
                self._where[pair].append(index)
        self._heap = [self._entry(pair) for pair in self._counts]
        heapq.heapify(self._heap)

    def _piece(self, spelt: str) -> int:
        number = self._number.setdefault(spelt, len(self._spelt))
        if number == len(self._spelt):
            self._spelt.append(spelt)
        return number

    def _entry(self, pair: tuple[int, int]) -> tuple[int, str, str, tuple[int, int]]:
        return (-self._counts[pair], self._spelt[pair[0]], self._spelt[pair[1]], pair)

    def merge(self, min_frequency: int) -> str | None:
        """Merges the commonest pair everywhere (the first by spelling of several) and names the new piece."""
        while self._heap:
            count, _, _, pair = heapq.heappop(self._heap)
            current = self._counts.get(pair, 0)
            if current != -count:  # its count has changed since it was put there
                if current >= min_frequency:
                    heapq.heappush(self._heap, self._entry(pair))
                continue
            return self._apply(pair) if current >= min_frequency else None
        return None

    def _apply(self, pair: tuple[int, int]) -> str:
        spelt = self._spelt[pair[0]] + self._spelt[pair[1]][2:]  # the right one is always a continuation
        new = self._piece(spelt)
        changed: defaultdict[tuple[int, int], int] = defaultdict(int)
        for index in self._where.pop(pair):
            self._merge_word(index, pair, new, changed)
        for other, difference in changed.items():
            self._counts[other] += difference
            if difference > 0:
                heapq.heappush(self._heap, self._entry(other))
        self._counts.pop(pair, None)
        return spelt

    def _merge_word(self, index: int, pair: tuple[int, int], new: int, changed: defaultdict[tuple[int, int], int]) -> None:
        left, right = pair
        pieces, times = self._words[index], self._times[index]
        out: list[int] = []
        i, last = 0, len(pieces) - 1
        while i <= last:
            piece = pieces[i]
            if piece != left or i == last or pieces[i + 1] != right:
                out.append(piece)
                i += 1
                continue
            if out:
                changed[out[-1], left] -= times
                changed[out[-1], new] += times
                self._where[out[-1], new].append(index)
            if i + 2 <= last:
                changed[right, pieces[i + 2]] -= times
                changed[new, pieces[i + 2]] += times
                self._where[new, pieces[i + 2]].append(index)
            out.append(new)
            i += 2
        self._words[index] = out
