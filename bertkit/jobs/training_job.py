"""What a training is of, and where it goes on: what pretraining and fine-tuning hand to the course of a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.batches.phases import Phase
from bertkit.batches.source import BatchSource
from bertkit.errors import FolderError
from bertkit.jobs.folder import RunFolder
from bertkit.jobs.start import CHECKPOINTS, Machine
from bertkit.tasks.models import TaskModel
from bertkit.training.checkpoint import Checkpoint, resume_point

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """What a training is of.

    Attributes:
        model: With its weights (new, of ``--init-from``, or of the checkpoint that the run goes on from).
        sources: Batches, of each phase.
        write_model: Writes the model's and tokenizer's files into a folder.
        validate: Figures of the validation data, or None where a signal cut it short; called by every process alike.
        primary: The figure that decides which model is best.
        lower_is_better: Is it a loss?
        validation_tokens: Tokens of one validation, for its forecast.
        identity: Fingerprints that a resume must meet again, by what they are of.
        reference: Unigram cross-entropy, for the run's health; None for tasks.
        smaller: A smaller command to offer.
        validations: How often to validate over the whole run where nothing is said.
        phases: Lengths and shares of the phases; none: there is one.
        longest: Tokens of the longest sequence, for the forecast of memory.
        patience: So many validations in a row without a better one end the training; None: none do.
        rate_scale: Each parameter's share of the rate by its name; None: all have the whole.
        word_targets: Share of the tokens that are scored over the whole vocabulary, for the same.
    """

    model: TaskModel
    sources: Sequence[BatchSource]
    write_model: Callable[[Path], None]
    validate: Callable[[], Figures | None]
    primary: str
    lower_is_better: bool
    validation_tokens: int
    identity: Mapping[str, str]
    reference: float | None = None
    smaller: str = ""
    validations: int = 5
    phases: Sequence[Phase] = ()
    longest: int = 512
    patience: int | None = None
    rate_scale: Callable[[str], float] | None = None
    word_targets: float = 0.0


def resuming(folder: RunFolder, machine: Machine) -> Checkpoint | None:
    """The checkpoint that a run goes on from; None where it starts.

    Raises:
        CheckpointError: There are checkpoints and none is whole.
    """
    if folder.situation != "unfinished":
        return None
    return machine.peers.main_only(lambda: resume_point(folder.path / CHECKPOINTS))


def check_identity(checkpoint: Checkpoint, identity: Mapping[str, str], folder: Path) -> None:
    """Refuses to go on with other data than the run began with; see :func:`same_identity`."""
    same_identity(checkpoint.extra.get("identity", {}), identity, folder)


def same_identity(before: Mapping[str, str], identity: Mapping[str, str], folder: Path) -> None:
    """Refuses fingerprints that are not what they were ``before``.

    Raises:
        FolderError: Something is not what it was; each is named (exit 2).
    """
    changed = [what for what, fingerprint in identity.items() if before.get(what) not in (None, fingerprint)]
    if changed:
        raise FolderError(
            f"This run began with another {' and another '.join(changed)}.",
            where=str(folder),
            hint="Put the old back to go on. Where nothing was changed, an earlier version of bertkit read it otherwise: "
            "choose another --output, or start anew here with --overwrite.",
        )
