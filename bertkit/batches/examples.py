"""The examples of one epoch, drawn block by block: a pure function of the store, the vocabulary, the settings, seed and epoch.

A block is some stripes of the store from anywhere in it (:mod:`bertkit.batches.stripes`); no more than one is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertkit.batches.census import take_census
from bertkit.batches.orders import draw_orders
from bertkit.batches.pairs import draw_chunks
from bertkit.batches.runs import gather_runs
from bertkit.batches.stripes import Stripes
from bertkit.batches.text import Bools, Ints, Store, Text, VocabularyFacts
from bertkit.batches.twins import find_twins
from bertkit.errors import DataError
from bertkit.fields import Settings
from bertkit.randomness import stream

EXAMPLE = np.dtype([("a", "<i8"), ("b", "<i8"), ("a_length", "<u2"), ("b_length", "<u2"), ("label", "<i2")])
"""Where A and B begin in the store, their lengths (B's is 0 where there is none), and the label, -1 where there is none."""

Progress = Callable[[int, int], object]
"""Told the tokens done and the tokens in all."""


class ExampleSettings(Settings):
    """How text becomes examples."""

    objective: Literal["mlm+nsp", "mlm+sop", "mlm"] = Field(
        default="mlm+nsp",
        description="What is learned: masked words, and whether B follows A (nsp) or in which order two neighbours stand (sop).",
    )
    max_length: int = Field(default=128, ge=8, le=65_535, description="Tokens of a sequence at most, special tokens included.")
    short_share: float = Field(default=0.1, ge=0, le=1, description="Share of pairs that aim at a random shorter length.")

    @property
    def pairs(self) -> bool:
        """Are examples of an A and a B?"""
        return self.objective != "mlm"

    @property
    def pair_part(self) -> str:
        """What the part of the loss that pairs have is called."""
        return "sop" if self.objective == "mlm+sop" else "nsp"

    @property
    def room(self) -> int:
        """Tokens of text that fit beside the special ones."""
        return self.max_length - (3 if self.pairs else 2)


def draw_examples(
    store: Store,
    facts: VocabularyFacts,
    settings: ExampleSettings,
    *,
    seed: int,
    epoch: int,
    purpose: str = "training",
    without: Ints | None = None,
    progress: Progress | None = None,
) -> Iterator[NDArray[np.void]]:
    """The examples of each block, ``[n]`` of :data:`EXAMPLE`, in the order in which they are trained on.

    Raises:
        DataError: As :func:`require_documents`.
    """
    require_documents(store, facts, settings, without)
    stripes = Stripes(store, facts.continues)
    done = 0
    for number, block in enumerate(stripes.blocks(seed, purpose, epoch)):
        rng = stream(seed, f"{purpose}/examples", epoch, number)
        if settings.objective != "mlm+nsp":
            text = stripes.text(block, settings.room)
            taken = text.taken(without)
            examples = _orders(text, text.usable() & taken, settings, rng) if settings.pairs else _runs(text, taken)
        else:
            text, own = stripes.with_others(block, settings.room, without, rng)
            examples = _pairs(text, text.usable() & text.taken(without), own, settings, rng)
        for place in ("a", "b"):
            examples[place] = text.traced(examples[place])
        yield rng.permutation(examples)
        done += int(np.diff(stripes.edges)[block].sum())
        if progress is not None:
            progress(done, len(store.ids))


def _runs(text: Text, taken: Bools) -> NDArray[np.void]:
    start, end = gather_runs(text, taken)
    examples = np.zeros(len(start), dtype=EXAMPLE)
    examples["a"], examples["a_length"], examples["label"] = start, end - start, -1
    return examples


def _pairs(text: Text, usable: Bools, own: Bools, settings: ExampleSettings, rng: np.random.Generator) -> NDArray[np.void]:
    """Pairs of the usable rows that are the block's ``own``; a wrong B may come from any that is usable."""
    if not (usable & own).any():
        return np.zeros(0, dtype=EXAMPLE)
    chunks = draw_chunks(text, usable & own, settings.short_share, rng)
    examples = np.zeros(len(chunks.start), dtype=EXAMPLE)
    examples["a"], examples["a_length"], examples["label"] = chunks.start, chunks.cut - chunks.start, chunks.label
    begin, end = chunks.cut.copy(), chunks.end.copy()
    swap = np.flatnonzero(chunks.label == 1)
    if len(swap):
        room = text.room - (chunks.cut - chunks.start)[swap]
        begin[swap], end[swap] = find_twins(text, usable, begin[swap], end[swap], room, rng)
    examples["b"], examples["b_length"] = begin, end - begin
    return examples


def _orders(text: Text, usable: Bools, settings: ExampleSettings, rng: np.random.Generator) -> NDArray[np.void]:
    """Neighbouring runs; label 1 has the second of them first."""
    if not usable.any():
        return np.zeros(0, dtype=EXAMPLE)
    chunks = draw_orders(text, usable, settings.short_share, rng)
    swapped = chunks.label == 1
    examples = np.zeros(len(chunks.start), dtype=EXAMPLE)
    examples["label"] = chunks.label
    one, two = chunks.cut - chunks.start, chunks.end - chunks.cut
    examples["a"], examples["b"] = np.where(swapped, (chunks.cut, chunks.start), (chunks.start, chunks.cut))
    examples["a_length"], examples["b_length"] = np.where(swapped, (two, one), (one, two))
    return examples


def require_documents(store: Store, facts: VocabularyFacts, settings: ExampleSettings, without: Ints | None) -> None:
    """Refuses a text without a document to learn from, and pairs of one that has too few: a wrong B comes from another one.

    Raises:
        DataError: There is no document; or those of two words or more are fewer than two (next sentence prediction) or than
            one (order prediction).
    """
    if len(store.document_ends) <= (0 if without is None else len(without)):
        raise DataError("The text has no document to learn from.", hint="Is it empty, or all of it held out?")
    needed = {"mlm": 0, "mlm+sop": 1, "mlm+nsp": 2}[settings.objective]
    found = take_census(store, facts.continues, without, enough=needed).pairable if needed else 0
    if found < needed:
        what = "Next sentence prediction needs two documents of at least two words each"
        if needed == 1:
            what = "Order prediction needs a document of at least two words"
        raise DataError(
            f"{what}, and this text has {found}.",
            hint="Learn from masked words alone: `bertkit pretrain --corpus FILE --objective mlm`; "
            "or, if each line is a document of its own: `bertkit pretrain --corpus FILE --documents line`.",
        )
