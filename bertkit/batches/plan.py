"""The plan of an epoch: its examples in their order, kept beside the store as a file that is mapped into memory.

It is written block by block as the examples are drawn (:mod:`bertkit.batches.examples`); resuming is slicing, and every
process reads the same one. It knows nothing of batches' masks, of workers or of processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from bertkit.batches.census import Census
from bertkit.batches.examples import EXAMPLE, ExampleSettings
from bertkit.batches.text import Ints, Store, VocabularyFacts

RULES = 2
"""Raised whenever the same text, settings and seed would give other examples, in another order or with other masks: an older
plan is then drawn anew, and a run that began with the older rules is not gone on with."""

_READ = 1 << 20  # examples looked at in one go
_ABANDONED = 86_400  # seconds after which nobody writes on a draft any more
_UNUSED = 30 * 86_400  # seconds after which a plan that nobody has opened goes: of other seeds, lengths and objectives


class EpochPlan:
    """Examples in the order in which they are trained on.

    Attributes:
        examples: ``[n]`` of :data:`bertkit.batches.examples.EXAMPLE`.
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
        parts = (self.examples["label"][start : start + _READ] for start in range(0, len(self), _READ))
        return sum(int(np.count_nonzero(part == 0)) for part in parts) / max(1, len(self))


def joined(blocks: Iterable[NDArray[np.void]]) -> EpochPlan:
    """The plan of blocks of examples, in memory."""
    return EpochPlan(np.concatenate([np.zeros(0, dtype=EXAMPLE), *blocks]))


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
    """The plan kept in ``folder``, mapped; None where there is none, or its head or its size is not what was written."""
    path = folder / f"plan-{key}-{epoch:05d}.npy"
    before = len(_head(0))
    try:
        length = (path.stat().st_size - before) // EXAMPLE.itemsize
        with path.open("rb") as file:
            head = file.read(before)
        if length < 0 or head != _head(length) or path.stat().st_size != before + length * EXAMPLE.itemsize:
            return None
        with contextlib.suppress(OSError):  # the time of its last use, where it may be left
            os.utime(path)
        return EpochPlan(np.memmap(path, dtype=EXAMPLE, mode="r", offset=before, shape=(length,)))
    except OSError:
        return None


def keep_plan(blocks: Iterable[NDArray[np.void]], folder: Path, key: str, epoch: int) -> None:
    """Writes blocks of examples, as they come, under another name, flushes, renames; what nobody needs any more goes.

    Several processes may do this at once: what they write is the same, and the last name stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"plan-{key}-{epoch:05d}.npy"
    draft = folder / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}"
    try:
        with draft.open("wb") as file:
            _write(file, blocks)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    _clear(folder, key, epoch)


def _clear(folder: Path, key: str, epoch: int) -> None:
    """Removes plans two epochs older, those long unused, and what processes that were killed have left half-written."""
    old = {path for path in folder.glob(f"plan-{key}-{5 * '[0-9]'}.npy") if int(path.stem[-5:]) < epoch - 1}
    for path in [*folder.glob("plan-*.npy"), *folder.glob(".plan-*")]:
        with contextlib.suppress(OSError):  # another process was quicker, or still reads it
            kept = _ABANDONED if path.name.startswith(".") else _UNUSED
            if path in old or time.time() - path.stat().st_mtime > kept:
                path.unlink()


def _write(file: BinaryIO, blocks: Iterable[NDArray[np.void]]) -> None:
    """An array in numpy's format whose length is known when the last of it is written."""
    file.write(_head(0))
    length = 0
    for block in blocks:
        file.write(block.tobytes())
        length += len(block)
    file.seek(0)
    file.write(_head(length))


def _head(length: int) -> bytes:
    """What stands before so many examples in numpy's format; it has room for any number, so all are equally long."""
    head = io.BytesIO()
    facts = {"descr": np.lib.format.dtype_to_descr(EXAMPLE), "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(head, facts)
    return head.getvalue()


def say_facts(plan: EpochPlan, census: Census) -> str | None:
    """What a person should know of pairs whose documents hold one sentence each; None where they do not."""
    if census.single < 0.9 * census.documents:
        return None
    share = plan.share_of_next()
    return (
        f"{census.single} of {census.documents} documents hold one sentence: A and B are parts of one sentence. "
        f"{share:.1%} of the pairs are next (label 0), {1 - share:.1%} are not (label 1). "
        "If these are no documents, `--objective mlm` learns from masked words alone."
    )
