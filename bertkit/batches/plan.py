"""The examples of one epoch in their order: a pure function of the store, the vocabulary, the settings, seed and epoch.

It knows nothing of batches' masks, of workers or of processes. Beside a store it is kept as a file that is mapped into
memory, so that resuming is slicing and every process reads the same one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertkit.batches.pairs import draw_chunks
from bertkit.batches.runs import gather_runs
from bertkit.batches.text import Bools, Ints, Store, Text, VocabularyFacts
from bertkit.batches.twins import find_twins
from bertkit.errors import DataError
from bertkit.fields import Settings
from bertkit.randomness import stream

RULES = 1  # version of the rules that make a plan: raised when they change, so that an older plan is not taken for one of these
EXAMPLE = np.dtype([("a", "<i8"), ("b", "<i8"), ("a_length", "<u2"), ("b_length", "<u2"), ("label", "<i2")])


class ExampleSettings(Settings):
    """How text becomes examples."""

    objective: Literal["mlm+nsp", "mlm"] = Field(
        default="mlm+nsp", description="What is learned: masked words, and whether B follows A."
    )
    max_length: int = Field(default=128, ge=8, le=65_535, description="Tokens of a sequence at most, special tokens included.")
    short_share: float = Field(default=0.1, ge=0, le=1, description="Share of pairs that aim at a random shorter length.")

    @property
    def room(self) -> int:
        """Tokens of text that fit beside the special ones."""
        return self.max_length - (3 if self.objective == "mlm+nsp" else 2)


class EpochPlan:
    """Examples in their shuffled order.

    Attributes:
        examples: ``[n]`` of ``EXAMPLE``: where A and B begin in the store, their lengths (B's is 0 where there is
            none), and the label: 0 is next, 1 is not next, -1 none.
    """

    __slots__ = ("examples",)

    def __init__(self, examples: NDArray[np.void]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, index: int, size: int) -> NDArray[np.void]:
        """The examples of the ``index``-th batch of ``size``; the last one of an epoch may be smaller."""
        return np.array(self.examples[index * size : (index + 1) * size])

    def share_of_next(self) -> float:
        """The share of label 0 among the pairs."""
        return float(np.mean(self.examples["label"] == 0))


def make_plan(
    store: Store,
    facts: VocabularyFacts,
    settings: ExampleSettings,
    *,
    seed: int,
    epoch: int,
    purpose: str = "training",
    without: Ints | None = None,
) -> EpochPlan:
    """Draws the examples of one epoch; the documents ``without`` (sorted indices) are in none of them.

    Raises:
        DataError: Pairs are asked for and the text has fewer than two documents of two words.
    """
    text = Text(store, facts.continues, settings.room)
    if settings.objective == "mlm":
        start, end = gather_runs(text, text.taken(without))
        examples = np.zeros(len(start), dtype=EXAMPLE)
        examples["a"], examples["a_length"], examples["label"] = start, end - start, -1
    else:
        examples = _pairs(text, text.usable() & text.taken(without), settings, stream(seed, f"{purpose}/pairs", epoch))
    order = stream(seed, f"{purpose}/order", epoch).permutation(len(examples))
    return EpochPlan(examples[order])


def _pairs(text: Text, usable: Bools, settings: ExampleSettings, rng: np.random.Generator) -> NDArray[np.void]:
    require_two_documents(int(usable.sum()))
    chunks = draw_chunks(text, usable, settings.short_share, rng)
    examples = np.zeros(len(chunks.start), dtype=EXAMPLE)
    examples["a"], examples["a_length"], examples["label"] = chunks.start, chunks.cut - chunks.start, chunks.label
    begin, end = chunks.cut.copy(), chunks.end.copy()
    swap = np.flatnonzero(chunks.label == 1)
    if len(swap):
        room = text.room - (chunks.cut - chunks.start)[swap]
        begin[swap], end[swap] = find_twins(text, usable, begin[swap], end[swap], room, rng)
    examples["b"], examples["b_length"] = begin, end - begin
    return examples


def require_two_documents(usable: int) -> None:
    """Refuses next sentence prediction on a text that has no other document to take a wrong B from."""
    if usable < 2:
        raise DataError(
            f"Next sentence prediction needs two documents of at least two words each, and this text has {usable}.",
            hint="Learn from masked words alone: `bertkit pretrain --corpus FILE --objective mlm`; "
            "or, if each line is a document of its own: `bertkit pretrain --corpus FILE --documents line`.",
        )


def plan_key(
    store: Store, facts: VocabularyFacts, settings: ExampleSettings, *, seed: int, purpose: str, without: Ints | None = None
) -> str:
    """Names a series of plans, one an epoch: the same key and epoch, the same examples."""
    words = hashlib.sha256(np.packbits(facts.continues).tobytes()).hexdigest()
    said = [RULES, store.fingerprint, words, settings.model_dump(mode="json"), seed, purpose]
    if without is not None and len(without):
        said.append(hashlib.sha256(np.asarray(without, "<i8").tobytes()).hexdigest())
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def open_plan(folder: Path, key: str, epoch: int) -> EpochPlan | None:
    """The plan kept in ``folder``, mapped; None where there is none, or one that is damaged."""
    path = folder / f"plan-{key}-{epoch:05d}.npy"
    try:
        examples = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    return EpochPlan(examples) if examples.dtype == EXAMPLE and examples.ndim == 1 else None


def keep_plan(plan: EpochPlan, folder: Path, key: str, epoch: int) -> None:
    """Writes a plan under another name, flushes it, renames it; plans two epochs older go.

    Several processes may do this at once: what they write is the same, and the last name stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"plan-{key}-{epoch:05d}.npy"
    draft = folder / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        with draft.open("wb") as file:
            np.save(file, plan.examples)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    for old in folder.glob(f"plan-{key}-*.npy"):
        number = re.fullmatch(rf"plan-{key}-(\d+)\.npy", old.name)
        if number and int(number[1]) < epoch - 1:
            with contextlib.suppress(OSError):  # another process was quicker, or still reads it
                old.unlink()


def say_facts(plan: EpochPlan, sentences: Any) -> str | None:
    """What a person should know of pairs whose documents hold one sentence each; None where they do not."""
    single = int(np.sum(sentences == 1))
    if single < 0.9 * len(sentences):
        return None
    share = plan.share_of_next()
    return (
        f"{single} of {len(sentences)} documents hold one sentence: A and B are parts of one sentence. "
        f"{share:.1%} of the pairs are next (label 0), {1 - share:.1%} are not (label 1). "
        "If these are no documents, `--objective mlm` learns from masked words alone."
    )
