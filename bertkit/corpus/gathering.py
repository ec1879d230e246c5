"""What became of each batch, in order, into one store: documents put together, counted, and dropped where they repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.corpus.hashes import Seen, document_hashes, joined_chain
from bertkit.corpus.passes import Made
from bertkit.corpus.repeats import RepeatCounter
from bertkit.corpus.writer import StoreWriter

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class Counts:
    """What was counted of whole documents; lines and characters of all that was read.

    Attributes:
        documents: Documents kept, each with a token.
        dropped_documents: Documents without one.
        one_sentence_documents: Documents kept of one sentence.
        pairable_documents: Documents kept of two sentences or two words: others cannot be parted into A and B.
        duplicate_documents: Documents whose text stood before: kept, or left out where that was asked for.
        sentences: Sentences kept.
        tokens: Tokens kept.
        unknown_tokens: Tokens kept that are ``[UNK]``.
        lines: Lines that are not blank.
        characters: Their characters.
    """

    documents: int = 0
    dropped_documents: int = 0
    one_sentence_documents: int = 0
    pairable_documents: int = 0
    duplicate_documents: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    lines: int = 0
    characters: int = 0


@dataclass(slots=True, kw_only=True)
class _Open:
    """The document whose end has not come yet; ``start`` is its first token's place."""

    start: int = 0
    lines: int = 0
    chain: int = 0
    tokens: int = 0
    sentences: int = 0
    words: int = 0
    unknown: int = 0


class Gatherer:
    """Puts batches into a store.

    Args:
        writer: Where they go.
        counter: Counts repeated lines.
        seen: Documents that the store holds already.
        dedup: Documents whose text stood before are left out.
        state: What :meth:`state` gave when the writer stood where it stands.
        going_back: Told to how many tokens, before the writer goes back: where a document of several batches is left out.
    """

    def __init__(
        self,
        writer: StoreWriter,
        counter: RepeatCounter,
        seen: Seen,
        *,
        dedup: bool,
        state: dict[str, Any] | None = None,
        going_back: Callable[[int], None] = lambda tokens: None,
    ) -> None:
        self._writer, self._counter, self._seen, self._dedup = writer, counter, seen, dedup
        self._going_back = going_back
        self.counts = Counts(**state["counts"]) if state else Counts()
        self._open = _Open(**state["open"]) if state else _Open()

    def state(self) -> dict[str, Any]:
        """What another needs to go on from here, for JSON."""
        return {"counts": asdict(self.counts), "open": asdict(self._open)}

    def add(self, made: Made) -> None:
        """Takes the next batch in order."""
        self._counter.add(made.line_hashes)
        self.counts.lines += len(made.line_hashes)
        self.counts.characters += made.characters
        totals = self._joined(made)
        hashes = document_hashes(totals["chains"][:-1], totals["lines"][:-1])
        with_token = totals["tokens"][:-1] > 0
        kept = with_token.copy()
        first = self._seen.first(hashes[with_token])
        if self._dedup:
            kept[with_token] = first
        self.counts.dropped_documents += int((~with_token).sum())
        self.counts.duplicate_documents += int((~first).sum())
        self._count(totals, kept)
        self._write(made, kept, hashes)
        self._left_open(totals, ended=len(kept) > 0)

    def _joined(self, made: Made) -> dict[str, NDArray[Any]]:
        """The figures of each piece, the first one's with those of the document that was open."""
        names = ("lines", "chains", "tokens", "sentences", "words", "unknown")
        totals = {name: np.array(getattr(made, name)) for name in names}
        chain = joined_chain(self._open.chain, self._open.lines, int(made.chains[0]))
        for name in names:
            if name != "chains":
                totals[name][0] += getattr(self._open, name)
        totals["chains"][0] = chain
        return totals

    def _count(self, totals: dict[str, NDArray[Any]], kept: Bools) -> None:
        counts = self.counts
        sentences, words = totals["sentences"][:-1][kept], totals["words"][:-1][kept]
        counts.documents += int(kept.sum())
        counts.tokens += int(totals["tokens"][:-1][kept].sum())
        counts.sentences += int(sentences.sum())
        counts.unknown_tokens += int(totals["unknown"][:-1][kept].sum())
        counts.one_sentence_documents += int((sentences == 1).sum())
        counts.pairable_documents += int(((sentences > 1) | (words > 1)).sum())

    def _write(self, made: Made, kept: Bools, hashes: NDArray[np.uint64]) -> None:
        if len(kept) and not kept[0] and self._open.tokens:
            self._going_back(self._open.start)
            self._writer.rewind(self._open.start, self._writer.documents)
        stays = np.append(kept, True)
        base = self._writer.tokens
        ends = base + np.cumsum(np.where(stays, made.tokens, 0))
        words = made.word_begins
        if stays.all() or not made.tokens[~stays].any():
            self._writer.add(made.ids, made.sentence_ends, ends[:-1][kept], hashes[kept], words)
        else:
            some = np.repeat(stays, made.tokens)
            words = None if words is None else words[some]
            self._writer.add(made.ids[some], made.sentence_ends[some], ends[:-1][kept], hashes[kept], words)

    def _left_open(self, totals: dict[str, NDArray[Any]], *, ended: bool) -> None:
        names = {"chain": "chains", "lines": "lines", "tokens": "tokens"}
        names |= {name: name for name in ("sentences", "words", "unknown")}
        figures = {name: int(totals[column][-1]) for name, column in names.items()}
        start = self._writer.tokens - figures["tokens"] if ended else self._open.start
        self._open = _Open(start=start, **figures)
