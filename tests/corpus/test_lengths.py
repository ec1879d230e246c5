from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.corpus import lengths
from bertkit.corpus.lengths import document_lengths, sentence_lengths


class Text:
    def __init__(self, sentences: list[int], documents: list[int]) -> None:
        self.sentence_ends = np.cumsum(sentences)
        self.ids = np.zeros(sum(sentences), dtype=np.uint16)
        self.document_ends = np.cumsum(documents)

    def sentence_ends_between(self, first: int, last: int) -> Any:
        return self.sentence_ends[(self.sentence_ends > first) & (self.sentence_ends <= last)]


@given(st.lists(st.integers(1, 70), min_size=1, max_size=50), st.integers(1, 90))
def test_every_length_is_in_the_class_that_its_label_names(sizes: list[int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lengths, "_BLOCK", block)
        text = Text(sizes, sizes)
        for found in (sentence_lengths(text), document_lengths(text)):
            assert (found.count, found.longest) == (len(sizes), max(sizes))
            assert found.mean == pytest.approx(sum(sizes) / len(sizes))
            for label, count in zip(found.labels, found.classes, strict=True):
                low, _, high = label.partition("-")
                assert count == sum(int(low) <= size <= int(high or low) for size in sizes)


def test_labels() -> None:
    assert sentence_lengths(Text([1, 2, 5000], [5003])).labels[:5] == ["1", "2", "3-4", "5-8", "9-16"]
    assert sentence_lengths(Text([5000], [5000])).labels[-1] == "4,097-8,192"
