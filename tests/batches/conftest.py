"""Small stores made up in memory, and stand-ins for a vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # under importlib mode pytest puts no folder on the path


@dataclass
class MadeStore:
    """A token store of arrays in memory."""

    ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray
    fingerprint: str = "made"
    folder: None = None

    @property
    def counts(self) -> dict[str, int]:
        return {"documents": len(self.document_ends), "tokens": len(self.ids)}

    def word_begins(self, places: np.ndarray) -> None:
        return None

    def sentence_ends_between(self, first: int, last: int) -> np.ndarray:
        return self.sentence_ends[(self.sentence_ends > first) & (self.sentence_ends <= last)]


@dataclass
class MadeVocabulary:
    """``size`` pieces, five of them special; the last quarter go on with a word. The one before them is ``[unused0]``."""

    size: int = 400
    pad_id: int = 0
    unk_id: int = 1
    cls_id: int = 2
    sep_id: int = 3
    mask_id: int = 4
    unused: int | None = None
    continues: np.ndarray = field(init=False)
    replaceable: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.continues = np.arange(self.size) >= self.size * 3 // 4
        self.replaceable = np.array([i for i in range(5, self.size) if i != self.unused])


def store_of(documents: Sequence[Sequence[Sequence[int]]]) -> MadeStore:
    """A store of documents of sentences of ids."""
    sentences = [sentence for document in documents for sentence in document]
    ends = np.cumsum([len(sentence) for sentence in sentences])
    return MadeStore(
        ids=np.concatenate([np.array(sentence, np.uint16) for sentence in sentences]),
        sentence_ends=ends,
        document_ends=ends[np.cumsum([len(document) for document in documents]) - 1],
        fingerprint=f"made of {len(ends)} sentences",
    )


@pytest.fixture(scope="session")
def vocabulary() -> MadeVocabulary:
    return MadeVocabulary()


@pytest.fixture(scope="session")
def make_vocabulary() -> type[MadeVocabulary]:
    return MadeVocabulary


@pytest.fixture(scope="session")
def make_store() -> Callable[[Sequence[Sequence[Sequence[int]]]], MadeStore]:
    return store_of


@pytest.fixture(scope="session")
def prose(vocabulary: MadeVocabulary) -> Callable[..., MadeStore]:
    """Documents that look like prose: log-normal sentences (22 tokens), geometric documents (8 sentences), all drawn."""

    def make(documents: int, *, seed: int = 0, sentences: float = 8.0, scale: float = 3.1) -> MadeStore:
        rng = np.random.default_rng(seed)
        made = []
        for count in rng.geometric(1 / sentences, documents):
            lengths = np.minimum(np.exp(rng.normal(scale, 0.6, count)).astype(int) + 1, 600)
            made.append([[int(rng.integers(5, 300)), *rng.integers(5, 400, length - 1).tolist()] for length in lengths])
        return store_of(made)

    return make


@pytest.fixture(scope="session")
def lines(vocabulary: MadeVocabulary) -> Callable[..., MadeStore]:
    """``count`` documents of one sentence of ``words`` words of one to three pieces each."""

    def make(count: int, words: int, *, seed: int = 0) -> MadeStore:
        rng = np.random.default_rng(seed)
        made = []
        for _ in range(count):
            sentence: list[int] = []
            for pieces in rng.choice([1, 2, 3], size=words, p=[0.8, 0.15, 0.05]):
                sentence += [int(rng.integers(5, 300)), *rng.integers(300, 400, pieces - 1).tolist()]
            made.append([sentence])
        return store_of(made)

    return make
