"""One training on sequences of several lengths, one after another: 90 % of the steps at 128 tokens, then 10 % at 512.

Comes in: a source of batches for each phase, each with settings of its own and so with plans of its own. Goes out: one
source whose epochs count on through all phases: a phase ends with the epoch that it is in, however far that has come, and
the next one begins with the epoch behind it. Which epochs those are is all there is to remember beside (epoch, batch).
"""

from __future__ import annotations

import copy
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from bertkit.batches.source import BatchSource, Position
from bertkit.fields import Settings


class Phase(Settings):
    """One phase of a pretraining."""

    max_length: int = Field(ge=8, le=65_535, description="Tokens of a sequence at most, special tokens included.")
    share: float = Field(gt=0, le=1, description="Share of the steps, or of the time where the clock ends the training.")

    def __str__(self) -> str:
        return f"{self.max_length}:{self.share:g}"


def _read(value: Any) -> Any:
    """``128:0.9,512:0.1``, or a list of ``{max_length, share}``, as phases."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        if not all(re.fullmatch(r"[0-9]{1,9}:[0-9]*\.?[0-9]+", part) for part in parts):
            raise ValueError(f"is LENGTH:SHARE,LENGTH:SHARE such as 128:0.9,512:0.1, not {value!r}")
        pairs = [part.split(":") for part in parts]
        value = [{"max_length": int(length), "share": float(share)} for length, share in pairs]
    if isinstance(value, list):
        keys = set(Phase.model_fields)
        if not all(isinstance(each, Phase) or (isinstance(each, dict) and set(each) == keys) for each in value):
            raise ValueError("is a list of phases, each with its max_length and its share, or a text such as 128:0.9,512:0.1")
        return tuple(value)
    return value


def _whole(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    total = sum(phase.share for phase in phases)
    if phases and abs(total - 1) > 1e-6:
        raise ValueError(f"is {phases_text(phases)}: the shares come to {total:g}, and must come to 1")
    return phases


Phases = Annotated[tuple[Phase, ...], BeforeValidator(_read), AfterValidator(_whole)]
"""A tuple of phases in settings; the text ``128:0.9,512:0.1`` is taken for one too."""


def phases_text(phases: Sequence[Phase]) -> str:
    """``128:0.9,512:0.1``, as ``--phases`` takes it."""
    return ",".join(map(str, phases))


def sequences(size: int, first: Phase, phase: Phase) -> int:
    """Sequences of a batch in ``phase``, where ``first`` has ``size``: the tokens of a step stay what they are."""
    return max(1, (2 * size * first.max_length + phase.max_length) // (2 * phase.max_length))  # rounded


class PhasedSource:
    """Sources one after another (:class:`bertkit.batches.source.BatchSource`).

    Args:
        sources: One a phase.
        began: ``[phases that have begun]`` the epoch with which each of them began, rising; the first is 0.
    """

    def __init__(self, sources: Sequence[BatchSource], began: Sequence[int] = (0,)) -> None:
        if not 0 < len(began) <= len(sources) or began[0] != 0 or any(a >= b for a, b in pairwise(began)):
            raise ValueError(f"{len(sources)} phases that began with epochs {list(began)}")
        self.sources = tuple(sources)
        self.began = tuple(began)

    @property
    def phase(self) -> int:
        """The phase that is on, from 0."""
        return len(self.began) - 1

    def of(self, epoch: int) -> int:
        """The phase of an epoch, from 0."""
        return bisect_right(self.began, epoch) - 1

    def start(self, done: Position) -> Position:
        """Where the data goes on behind ``done``: there, or at the beginning of a phase that has only just begun."""
        return max(done, Position(self.began[-1], 0))

    def changed(self, done: Position) -> PhasedSource:
        """The same sources with the next phase begun, once the batches up to ``done`` have been used."""
        return PhasedSource(self.sources, (*self.began, max(done.epoch, self.began[-1]) + 1))

    def steps(self, epoch: int) -> int:
        """Optimizer steps of this epoch, were it to be used to its end."""
        return self.sources[self.of(epoch)].steps(epoch)

    def step(self, epoch: int, index: int, rank: int = 0, world: int = 1) -> list[Any]:
        """The micro-batches of process ``rank`` of ``world`` in one optimizer step."""
        return self.sources[self.of(epoch)].step(epoch, index, rank, world)

    @property
    def micro_tokens(self) -> int | None:
        """Tokens per forward pass at most, in every phase."""
        return self.sources[0].micro_tokens

    @micro_tokens.setter
    def micro_tokens(self, tokens: int | None) -> None:
        made = tuple(copy.copy(source) for source in self.sources)
        for source in made:
            source.micro_tokens = tokens
        self.sources = made
