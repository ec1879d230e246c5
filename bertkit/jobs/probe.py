"""What the evaluations of a pretrained model share: the model on its device, the outputs of all its batches, what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from bertkit.batches.labelled import batches_by_tokens
from bertkit.batches.source import Batch
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console, to_json
from bertkit.jobs.models import tokenizer_of
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.places import write_text
from bertkit.jobs.pretrained import PretrainingHeads, evals_place, pretrained_folder
from bertkit.jobs.start import Machine
from bertkit.settings.probes import ProbeSettings
from bertkit.tasks.models import TaskModel, load_model
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.predictions import write_predictions
from bertkit.tasks.probes import PROBES
from bertkit.training.evaluation import collect_outputs

B = TypeVar("B", bound=Batch)
T = TypeVar("T")
TOKENS = 4096
"""Tokens of a forward pass, on any device and in any number of processes: where sums are made in another order they come out
otherwise in the seventh digit, so the same command gives the same digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A pretrained model that is evaluated.

    Attributes:
        folder: Where it lies.
        wordpiece: Its vocabulary.
        model: On its device.
        machine: Where it runs.
        settings: The command's.
    """

    folder: Path
    wordpiece: WordPiece
    model: TaskModel
    machine: Machine
    settings: ProbeSettings

    def outputs(
        self,
        lengths: Sequence[int],
        parts: Iterable[range],
        collate: Callable[[Sequence[int]], B],
        outputs: Callable[[nn.Module, B], Sequence[T]],
        console: Console,
        what: str,
    ) -> list[T]:
        """One output an example in their order, with progress; on the first process, an empty list on the others.

        Args:
            lengths: Tokens of each example.
            parts: Numbers of examples, all of them; no batch has examples of two parts. Each part is sorted by length.
            collate: Makes the batch of some examples.
            outputs: The outputs of a batch.
            console: For progress.
            what: Is being done, two or three words.

        Raises:
            Stopped: A signal came in (exit 130 or 143).
        """
        batch = self.settings.batch
        size = batch.size or len(lengths)
        plan: list[list[int]] = []
        for part in parts:
            own = lengths[part.start : part.stop]
            for numbers in batches_by_tokens(own, batch.micro_tokens or TOKENS, window=max(2, len(own))):
                moved = [part.start + number for number in numbers]
                plan += [moved[start : start + size] for start in range(0, len(moved), size)]
        with console.stop.deferred(), console.progress(what, len(lengths)) as update:
            found = collect_outputs(
                self.model,
                plan,
                collate,
                outputs,
                self.machine.accelerator,
                self.machine.peers,
                stop=lambda: console.stop.number,
                progress=update,
            )
        if found is None:
            raise console.stop.error()
        return found

    def finish(
        self,
        console: Console,
        name: str,
        figures: Mapping[str, Any],
        *,
        facts: Mapping[str, Any],
        predictions: Sequence[Prediction] | None = None,
    ) -> Outcome:
        """Leaves ``evals/NAME/`` and prints the figures."""
        where = evals_place(self.folder, name, scored=self.folder.name, output=self.settings.output)
        where.mkdir(parents=True, exist_ok=True)
        task = name.partition("-")[0]
        files = ["metrics.json"]
        if predictions is not None:
            write_predictions(where / "predictions.jsonl", predictions)
            files.append("predictions.jsonl")
        about = {"task": task, "model": str(self.folder), "primary": PROBES[task].primary, **facts, "files": files}
        write_text(where / "metrics.json", to_json({**figures, **about}, indent=2) + "\n")
        console.metrics(figures)
        console.say(f"Written to {where}")
        return Outcome(output=where, metrics=figures, extra={"model": str(self.folder)})


def open_probed(settings: ProbeSettings, machine: Machine, task: str, *, pairs: bool) -> Probed:
    """The model that is named, or the newest pretraining, with its masked-LM head; with ``pairs`` the one for pairs too, if it
    has one.

    Raises:
        MissingError: There is none (exit 4).
        ModelError: It has no masked-LM head (exit 3).
    """
    hint = f"`bertkit pretrain --corpus FILE` makes one; or name a model: `{PROBES[task].command} --model MODEL`."
    folder = machine.peers.main_only(lambda: pretrained_folder(settings.model, hint=hint))
    wordpiece = tokenizer_of(folder, cased=settings.cased)
    both = pairs and PretrainingHeads.of(folder).pairs
    model, _ = load_model(folder, "pretraining" if both else "masked_lm", must_have_head=True)
    return Probed(folder=folder, wordpiece=wordpiece, model=model.to(machine.device), machine=machine, settings=settings)
