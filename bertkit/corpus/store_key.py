"""What decides a token store, as one fingerprint: the text, the tokenizer, the settings and the versions of all rules."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from bertkit.corpus.chinese import Segmenter
from bertkit.corpus.documents import READER_VERSION, CorpusSettings, Progress
from bertkit.corpus.sentences import SENTENCES_VERSION
from bertkit.corpus.sources import Corpus
from bertkit.corpus.store_files import STORE_FORMAT
from bertkit.corpus.wordpiece import WORDPIECE_VERSION, WordPiece

BUILD_VERSION = 2
"""Raised whenever the same lines and tokens would be parted otherwise: stores of before are then built anew."""

_NAMES = 20  # of sources that a store remembers


class StoreKey:
    """What decides a store. Of a pipe it is known only when all is read."""

    def __init__(
        self,
        corpus: Corpus,
        wordpiece: WordPiece,
        settings: CorpusSettings,
        words: Segmenter | None,
        shard: tuple[int, int] | None,
        progress: Progress | None = None,
    ) -> None:
        self.corpus, self.shard, self._progress = corpus, shard, progress
        versions = (STORE_FORMAT, READER_VERSION, SENTENCES_VERSION, WORDPIECE_VERSION, BUILD_VERSION)
        rules = settings.model_dump(mode="json", exclude={"words"})
        self._rest = [wordpiece.fingerprint, rules, words.fingerprint if words else None, versions]
        self._digests: list[str] | None = None
        self._stamps = corpus.stamps()  # before anything is read

    @property
    def fingerprint(self) -> str:
        """Hex digest of the content in order, the tokenizer, the settings and the versions of all rules; not of any name."""
        return self._of(self.shard)

    def facts(self) -> dict[str, Any]:
        """What store.json says of it, once all is read.

        Raises:
            DataError: A file was changed meanwhile.
        """
        self.corpus.must_be_as(self._stamps)
        names = [source.name for source in self.corpus.sources[:_NAMES]]
        facts: dict[str, Any] = {"fingerprint": self.fingerprint, "sources": names}
        return facts if self.shard is None else {**facts, "shard": list(self.shard), "whole": self._of(None)}

    def _of(self, shard: tuple[int, int] | None) -> str:
        if self._digests is None:
            self._digests = self.corpus.digests(self._progress)
        return hashlib.sha256(json.dumps([self._digests, shard, *self._rest], sort_keys=True).encode()).hexdigest()
