"""How many documents of a store can be learned from, counted stripe by stripe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertkit.batches.stripes import Stripes
from bertkit.batches.text import Bools, Ints, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """What was counted.

    Attributes:
        documents: Documents.
        single: Those of one sentence.
        pairable: Those of two words or more, which can be parted into A and B.
    """

    documents: int
    single: int
    pairable: int


def take_census(store: Store, continues: Bools, without: Ints | None = None, *, enough: int | None = None) -> Census:
    """Counts the documents but those ``without`` (indices), up to the stripe that brings ``enough`` pairable ones."""
    stripes = Stripes(store, continues)
    documents = single = pairable = 0
    for number in range(len(stripes)):
        text = stripes.text([number], 1)
        taken = text.taken(without)
        owner = text.owner
        begins = text.origin == np.where(owner > 0, store.document_ends[owner - 1], 0)
        whole = begins & (text.origin + np.diff(text.document_edges) == store.document_ends[owner])
        taken &= begins  # a document in parts is counted with the first of them
        documents += int(taken.sum())
        single += int((taken & whole & (text.sentences_per_document() == 1)).sum())
        pairable += int((taken & (text.usable() | ~whole)).sum())
        if enough is not None and pairable >= enough:
            break
    return Census(documents=documents, single=single, pairable=pairable)
