"""A text that nobody wrote, as ids: for measurements where no corpus is at hand. Lengths are those of English prose."""

from __future__ import annotations

import numpy as np

from bertkit.batches.text import VocabularyFacts
from bertkit.corpus.store import TokenStore

VOCABULARY = 30_522
"""Entries of google's English vocabulary, whose layout of special tokens is taken too."""
_PAD, _UNK, _CLS, _SEP, _MASK = 0, 100, 101, 102, 103
_FIRST_WORD, _FIRST_PIECE = 1_000, 24_000  # words, then pieces that go on with one


def made_text(tokens: int, *, seed: int = 0) -> tuple[TokenStore, VocabularyFacts]:
    """About ``tokens`` tokens: documents of some 70 sentences (as Wikipedia's) of some 25 tokens, words by Zipf's law."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(np.exp(rng.normal(3.1, 0.6, 2 + tokens // 25)).astype(np.int64) + 2, 400)
    ends = np.cumsum(sizes)
    ids = _FIRST_WORD + np.minimum(rng.zipf(1.2, int(ends[-1])) - 1, VOCABULARY - _FIRST_WORD - 1)
    ids[np.concatenate([[0], ends[:-1]])] = _FIRST_WORD  # no sentence begins inside a word
    documents = ends[np.unique(np.minimum(np.cumsum(rng.geometric(1 / 70, 1 + len(ends) // 30)), len(ends)) - 1)]
    documents[-1] = ends[-1]
    store = TokenStore.from_arrays(ids.astype(np.uint16), ends, documents, vocab_size=VOCABULARY)
    continues = np.arange(VOCABULARY) >= _FIRST_PIECE
    facts = VocabularyFacts(
        pad_id=_PAD,
        cls_id=_CLS,
        sep_id=_SEP,
        mask_id=_MASK,
        continues=continues,
        replaceable=np.arange(_FIRST_WORD, VOCABULARY, dtype=np.int64),
    )
    return store, facts
