"""A step of pretraining by bertkit's own loop, and the same sequences through transformers' ``BertForPreTraining``.

Only real tokens count on both sides. The other side is what a person would write: the batch padded to its longest
sequence, logits at every position, AdamW as transformers' Trainer builds it (fused, no decay of biases and LayerNorms),
clipping at 1.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

import torch

from bertkit.batches.loader import iterate
from bertkit.batches.pretraining import PretrainingSource
from bertkit.bench.alternate import Round
from bertkit.jobs.start import Machine
from bertkit.model.config import EncoderConfig
from bertkit.tasks.models import build_model
from bertkit.training.budget import Budget, Clock
from bertkit.training.loop import Loop, prepare
from bertkit.training.optimizer import OptimizerSettings, make_optimizer
from bertkit.training.precision import Became
from bertkit.training.report import StepReport, TrainState
from bertkit.training.schedule import Schedule
from bertkit.training.timing import Timing

RATE = 1e-4
_FOREVER = 10**9  # steps


class Ours:
    """bertkit: the loop that ``bertkit pretrain`` runs, batches prepared ahead."""

    name = "bertkit"

    def __init__(self, source: PretrainingSource, config: EncoderConfig, machine: Machine, *, seed: int = 0) -> None:
        self.timing = Timing(machine.device)
        model = prepare(build_model("pretraining", config, seed=seed), machine.accelerator, machine.peers)
        self._feed: Generator[Any, None, None] = iterate(source)
        loop = Loop(
            model=model,
            optimizer=make_optimizer(model, OptimizerSettings(learning_rate=RATE)),
            accelerator=machine.accelerator,
            peers=machine.peers,
            schedule=Schedule(peak=RATE, steps=_FOREVER),
            budget=Budget(steps=_FOREVER),
            state=TrainState(),
            clock=Clock(),
            timing=self.timing,
        )
        self._steps: Iterator[StepReport] = loop.steps(self._feed)

    def run(self, seconds: float) -> Round:
        """Steps for so long."""
        self.timing.take()
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not tokens:
            tokens += next(self._steps).tokens
        self.timing.wait()
        return Round(units=tokens, seconds=time.perf_counter() - began, parts=self.timing.take())

    def close(self) -> None:
        """Ends the loader."""
        self._feed.close()


class Theirs:
    """transformers, on one device."""

    name = "transformers"

    def __init__(
        self, source: PretrainingSource, config: EncoderConfig, device: torch.device, precision: Became, *, seed: int = 0
    ) -> None:
        from transformers import BertConfig, BertForPreTraining

        torch.manual_seed(seed)
        self.timing = Timing(device)
        self._source, self._device, self._precision = source, device, precision
        self._pad = config.pad_token_id or 0
        self._model = BertForPreTraining(BertConfig(**config.to_json(architecture="BertForPreTraining"))).to(device).train()
        decayed = [p for name, p in self._model.named_parameters() if p.dim() >= 2]
        others = [p for name, p in self._model.named_parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(groups, lr=RATE, fused=True)
        self._at = (0, 0)

    def run(self, seconds: float) -> Round:
        """Steps for so long."""
        self.timing.take()
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not tokens:
            tokens += self._step()
        self.timing.wait()
        return Round(units=tokens, seconds=time.perf_counter() - began, parts=self.timing.take())

    def _step(self) -> int:
        with self.timing.part("data"):
            batch = self._next()
            inputs = {name: value.to(self._device) for name, value in batch.to_padded(self._pad).items()}
        low = self._precision != "fp32"
        kind = torch.float16 if self._precision == "fp16" else torch.bfloat16
        with self.timing.part("forward"), torch.autocast(self._device.type, dtype=kind, enabled=low):
            loss = self._model(**inputs).loss
        with self.timing.part("backward"):
            loss.backward()
        with self.timing.part("optimizer"):
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad()
        return int(batch.tokens)

    def _next(self) -> Any:
        epoch, index = self._at
        if index >= self._source.steps(epoch):
            epoch, index = epoch + 1, 0
        self._at = (epoch, index + 1)
        return self._source.step(epoch, index)[0]  # one pass: its source has no budget of tokens

    def close(self) -> None:
        """Nothing to end."""
