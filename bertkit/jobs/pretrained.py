"""A model as it was pretrained: which one is meant, which heads of its pretraining it has, and what it was trained for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.errors import DataError
from bertkit.jobs.folder import newest_pretraining
from bertkit.jobs.models import model_folder
from bertkit.jobs.places import STATE, read_state
from bertkit.model.hf import tensor_names

_MLM, _NSP, _POOLER = "cls.predictions.transform.dense.weight", "cls.seq_relationship.weight", "bert.pooler.dense.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingHeads:
    """The heads that a model's file has."""

    words: bool
    pairs: bool

    @staticmethod
    def of(folder: Path) -> PretrainingHeads:
        """Of the model in ``folder``.

        Raises:
            ModelError: There are no weights, or they cannot be read (exit 3).
        """
        names = tensor_names(folder)
        return PretrainingHeads(words=_MLM in names, pairs=_NSP in names and _POOLER in names)


def pretrained_folder(name: str | None, *, hint: str) -> Path:
    """The model that is named, or the newest finished pretraining, which is said.

    Raises:
        MissingError: There is no such model, or none is named and there is no such run; ``hint`` is said then (exit 4).
    """
    return newest_pretraining(hint) if name is None else model_folder(name)


def pretrained_with(folder: Path) -> dict[str, Any]:
    """The resolved settings of the pretraining in ``folder`` by dotted key; none where it is no run."""
    try:
        state = read_state(folder) or {}
    except DataError:  # a model all the same
        return {}
    return dict(state.get("resolved") or {}) if state.get("command_name") == "pretrain" else {}


def evals_place(model: Path | None, name: str, *, scored: str, output: str | None) -> Path:
    """``evals/NAME`` in the run, or below ``runs/`` where the model is no run of bertkit's.

    Args:
        model: Its folder; None where a file of predictions is scored.
        name: Of the evaluation: ``sst2-validation``.
        scored: What the folder below ``runs/`` begins with.
        output: The folder that a person named, or None.
    """
    if output is not None:
        return Path(output) / name
    if model is not None and (model / STATE).exists():
        return model / "evals" / name
    return Path("runs") / "evals" / f"{scored}-{name}"
