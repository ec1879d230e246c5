"""Which batch an optimizer step of a run trained on, or will: out of its log, its checkpoints and its settings.

log.jsonl says of moments of the run how many optimizer steps and which batches lay behind them: at intervals, at every change
of phase, and for every step that was left out (and so used up a batch without moving the count). From the last such moment
before a step on, each step therefore took the next batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.batches.phases import PhasedSource
from bertkit.batches.source import Position
from bertkit.errors import DataError, UsageError
from bertkit.jobs.run_folder import LOG
from bertkit.jobs.start import CHECKPOINTS
from bertkit.training.budget import Budget, Until
from bertkit.training.checkpoint import STATE


@dataclass(frozen=True, slots=True)
class Moment:
    """So many optimizer steps lie behind, and these batches have been used."""

    step: int
    done: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """What is known of how a run went through its data.

    Attributes:
        moments: In the order of the data.
        began: The first epoch of each phase that has begun.
        newest: The optimizer step that the run is known to have done.
    """

    moments: tuple[Moment, ...]
    began: tuple[int, ...]
    newest: int

    @staticmethod
    def of(folder: Path) -> Track:
        """Reads a run folder's log and its checkpoints.

        Raises:
            DataError: The log lacks what decides which batch came when: steps that were left out, or a change of phase.
        """
        moments, began, left_out = [Moment(0, Position())], [0], set()
        for line in _lines(folder / LOG):
            if not all(isinstance(line.get(key), int) for key in ("step", "epoch", "batch")):
                continue
            done = Position(line["epoch"], line["batch"])
            moments.append(Moment(line["step"], done))
            if line.get("left_out"):
                left_out.add(done)
            if "phase" in line and "loss" not in line:
                began.append(line["epoch"])
        for path in sorted((folder / CHECKPOINTS).glob(f"checkpoint-*/{STATE}")):
            train, extra = _state(path)
            done = Position(train.get("epoch", 0), train.get("batch", 0))
            moments.append(Moment(train.get("step", 0), done))
            if train.get("skipped", 0) > sum(place <= done for place in left_out):
                raise _lacks(folder, f"which {train['skipped']} steps were left out")
            if set(extra.get("phases_began") or ()) - set(began):
                raise _lacks(folder, "where the phase changed")
        moments.sort(key=lambda moment: (moment.done, moment.step))
        return Track(moments=tuple(moments), began=tuple(sorted(set(began))), newest=max(each.step for each in moments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the batch of a step is.

    Attributes:
        epoch: Its epoch, from 0.
        index: Its number in that epoch, from 0.
        phase: Its phase, from 0.
        seen: Has the run done this step?
        sure: False: the clock may have changed the phase by then.
    """

    epoch: int
    index: int
    phase: int
    seen: bool
    sure: bool


def place_of(step: int, track: Track, source: PhasedSource, budget: Budget, ends: Sequence[Until]) -> Place:
    """Finds the batch of optimizer step ``step``, from 1.

    Args:
        step: The step.
        track: How the run has gone so far.
        source: Its batches, with the phases that have begun.
        budget: Its end.
        ends: The ends of its phases.

    Raises:
        UsageError: The run has no such step.
    """
    if step < 1 or (budget.steps is not None and step > budget.steps):
        many = "from 1 on" if budget.steps is None else f"1 to {budget.steps:,}"
        raise UsageError(f"There is no step {step:,}: this run's are {many}.", where="--step")
    last = max((each for each in track.moments if each.step < step), key=lambda each: (each.done, each.step))
    gone, at = last.step, source.start(last.done) if last.done.epoch >= source.began[-1] else last.done
    while True:
        phase = source.of(at.epoch)
        end = ends[phase].step if phase == source.phase else None  # an earlier one is known to have ended where it did
        if end is not None and gone >= end:
            source = source.changed(at)
            at = source.start(at)
            continue
        more = source.steps(at.epoch) - at.batch
        if end is not None:
            more = min(more, end - gone)
        if step - gone <= more:
            seen = step <= track.newest
            sure = seen or ends[phase].share is None
            return Place(epoch=at.epoch, index=at.batch + step - gone - 1, phase=phase, seen=seen, sure=sure)
        gone += more
        used = Position(at.epoch, at.batch + more)
        at = used if end is not None and gone >= end else Position(at.epoch + 1, 0)


def _lacks(folder: Path, what: str) -> DataError:
    return DataError(
        f"{LOG} does not tell {what}, so it is not known which batch came at which step.",
        where=str(folder / LOG),
        hint="Put the whole log back.",
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a log; what was cut or is no object is passed over."""
    try:
        texts: Iterable[str] = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for text in texts:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line


def _state(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of a checkpoint: where the run stood, and what lay beside that; empty where it cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return dict(found["train"]), dict(found["extra"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, {}
