"""Micro-batches that fit into memory. The batches stay what they are: only their cut into forward passes becomes smaller.

In comes a source of batches, out goes the same source or one with fewer ``micro_tokens``; what is learned does not change.
"""

from __future__ import annotations

import copy
import os
from typing import TypeVar

from bertkit.batches.source import BatchSource, Position
from bertkit.errors import ResourceError
from bertkit.jobs.memory import Forecast, room
from bertkit.jobs.start import Machine
from bertkit.notices import say
from bertkit.training.files import readable
from bertkit.training.peers import Peers

S = TypeVar("S", bound=BatchSource)


def fitted(source: S, expected: Forecast, machine: Machine) -> S:
    """The source, in smaller micro-batches where its own would not fit on some process; said where that is so.

    Raises:
        ResourceError: Not even small ones fit (exit 5).
    """
    asked = source.micro_tokens
    if asked is None:
        return source
    here = room(machine.device, int(os.environ.get("LOCAL_WORLD_SIZE") or 1))
    there = min(machine.peers.gather_all(here))
    fitting = expected.fitting(asked, there)
    if fitting is None:
        raise ResourceError(
            f"The training needs about {readable(expected.total(256))} of memory, and {readable(there)} are free.",
            where=str(machine.device),
            hint="Take a smaller --size or --max-length, or --set batch.save_memory=true.",
        )
    if fitting == asked:
        return source
    why = f"The training would need about {readable(expected.total(asked))} and {readable(there)} are free"
    return smaller(source, fitting, why)


def smaller(source: S, micro_tokens: int, why: str) -> S:
    """The same batches in micro-batches of so many tokens, which is said."""
    say("memory", f"{why}: forward passes take {micro_tokens:,} tokens instead of {source.micro_tokens:,}.")
    return cut_to(source, micro_tokens)


def cut_to(source: S, micro_tokens: int) -> S:
    """The same batches in micro-batches of so many tokens."""
    made = copy.copy(source)
    made.micro_tokens = micro_tokens
    return made


def half(source: BatchSource, at: Position, peers: Peers) -> int:
    """Half of the micro-batch that did not fit, in tokens: the largest of all processes, so that they agree."""
    return max(peers.gather_all((source.micro_tokens or _widest(source, at, peers)) // 2))


def _widest(source: BatchSource, at: Position, peers: Peers) -> int:
    """Tokens of this process's largest micro-batch in the step that comes next."""
    epoch, batch = (at.epoch, at.batch) if at.batch < source.steps(at.epoch) else (at.epoch + 1, 0)
    return max((each.tokens for each in source.step(epoch, batch, peers.rank, peers.world)), default=0)
