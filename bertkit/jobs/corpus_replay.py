"""``bertkit corpus inspect RUN --step N``: the batch that the run saw, or will see, at that step, on a page."""

from __future__ import annotations

from pathlib import Path

from bertkit.errors import UsageError
from bertkit.jobs.console import Console
from bertkit.jobs.masked_text import LEGEND, pieces, styled
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.replay import Replay, ReplayedSequence, replay

_INDENT = "  "
PAIR_LABELS = {
    "mlm+nsp": ("IsNext", "NotNext"),  # by label: 0 is next
    "mlm+sop": ("InOrder", "Swapped"),
}


def show_step(paths: tuple[str, ...], step: int, console: Console, *, shown: int | None = None) -> Outcome:
    """Prints the batch of one step of a run: the first ``shown`` sequences, or all of them.

    Raises:
        UsageError: What is named is no run, or the run has no such step (exit 2).
        BertkitError: As :func:`bertkit.jobs.replay.replay`.
    """
    if len(paths) != 1:
        raise UsageError("A step is one of a single run.", where="--step", hint="bertkit corpus inspect RUN --step N")
    found, wordpiece = replay(Path(paths[0]), step, console)
    shown = len(found.sequences) if shown is None else min(shown, len(found.sequences))
    console.styled([(_heading(found, shown), "bold")])
    console.styled([*LEGEND])
    for number, sequence in enumerate(found.sequences[:shown], start=1):
        console.result()
        console.styled([(_facts(number, sequence, found.objective), "bold blue")])
        labels = dict(zip(sequence.masked_positions, sequence.labels, strict=True))
        console.styled(styled(pieces(wordpiece, sequence.after, labels)), first=_INDENT, rest=_INDENT)
    return Outcome(output=Path(paths[0]), extra=found.to_json())


def _heading(found: Replay, shown: int) -> str:
    seen = "was seen" if found.seen else "is to come"
    part = (
        "" if shown == len(found.sequences) else f", the first {shown} of them here" if shown != 1 else ", the first of them here"
    )
    sure = "" if found.sure else "; the clock may change the phase before it"
    return (
        f"Step {found.step:,} {seen}: epoch {found.epoch + 1}, batch {found.batch:,}, phase {found.phase}, "
        f"L = {found.max_length}, {found.objective}, {len(found.sequences)} sequences{part}{sure}."
    )


def _facts(number: int, sequence: ReplayedSequence, objective: str) -> str:
    facts = [f"{number}.", f"{len(sequence.after)} tokens, {len(sequence.labels)} to be guessed"]
    if sequence.pair_label is not None:
        facts.insert(1, PAIR_LABELS[objective][sequence.pair_label] + ",")
    documents = " and ".join(f"{document + 1:,}" for document in dict.fromkeys(sequence.documents))
    return " ".join(facts) + f", document {documents}"
