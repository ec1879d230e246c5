"""A step of fine-tuning by bertkit's own loop, and the same rows through transformers' class of the head.

Both start from one folder and see the same batches in the same order. The other side is what a person would write: the batch
padded to ``max_length`` (as run_glue does) or to its longest sequence, AdamW as transformers' Trainer builds it (fused, no
decay of biases and LayerNorms), clipping at 1. Only real tokens count on both sides.
"""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.batches.labelled import LabelledSource
from bertkit.bench import reference
from bertkit.bench.alternate import Round
from bertkit.bench.process import as_usual
from bertkit.bench.stepping import Stepping, texts_of
from bertkit.jobs.start import Machine
from bertkit.tasks.models import TaskModel
from bertkit.training.precision import Became
from bertkit.training.timing import Timing

RATE = 2e-5


class Tuning(Stepping):
    """bertkit: the loop that ``bertkit finetune`` runs."""

    def __init__(self, source: LabelledSource[Any], model: TaskModel, machine: Machine) -> None:
        super().__init__(source, model, machine, RATE)


class TheirTuning:
    """transformers, on one device.

    Args:
        source: Whose steps are one pass each.
        model: transformers' own.
        columns: Pad to so many tokens; None: to the longest of the batch.
        device: Where.
        precision: Of the products.
    """

    def __init__(
        self, source: LabelledSource[Any], model: nn.Module, columns: int | None, device: torch.device, precision: Became
    ) -> None:
        self.name = "transformers, longest" if columns is None else f"transformers, {columns}"
        self.timing = Timing(device)
        self._source, self._columns, self._device, self._precision = source, columns, device, precision
        self._model = model.to(device).train()
        decayed = [p for p in self._model.parameters() if p.dim() >= 2]
        others = [p for p in self._model.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(groups, lr=RATE, fused=True)
        self._at = (0, 0)

    def run(self, seconds: float) -> Round:
        """Steps for so long."""
        as_usual()
        self.timing.take()
        tokens, texts, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not texts:
            batch = self._step()
            tokens += int(batch.tokens)
            texts += texts_of(batch)
        self.timing.wait()
        spent = time.perf_counter() - began
        return Round(units=tokens, seconds=spent, parts=self.timing.take(), texts=texts)

    def _step(self) -> Any:
        with self.timing.part("data"):
            batch = self._next()
            inputs = {name: value.to(self._device) for name, value in padded_to(batch, self._columns).items()}
        low = self._precision != "fp32"
        kind = torch.float16 if self._precision == "fp16" else torch.bfloat16
        with self.timing.part("forward"), torch.autocast(self._device.type, dtype=kind, enabled=low):
            loss = self._model(**inputs).loss
        with self.timing.part("backward"):
            loss.backward()
        with self.timing.part("optimizer"):
            nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad()
        return batch

    def _next(self) -> Any:
        epoch, index = self._at
        if index >= self._source.steps(epoch):
            epoch, index = epoch + 1, 0
        self._at = (epoch, index + 1)
        return self._source.step(epoch, index)[0]

    def close(self) -> None:
        """Nothing to end."""


def padded_to(batch: Any, columns: int | None) -> dict[str, Tensor]:
    """A kind's batch as transformers takes it (:func:`bertkit.bench.reference.padded`), each sequence over ``columns``."""
    inputs = reference.padded(batch)
    if columns is None:
        return inputs
    length = inputs["input_ids"].shape[-1]
    fill = {"labels": -100}
    return {
        name: F.pad(value, (0, columns - length), value=fill.get(name, 0))
        if value.ndim > 1 and value.shape[-1] == length and not value.is_floating_point()  # labels [S, K] are no tokens
        else value
        for name, value in inputs.items()
    }
