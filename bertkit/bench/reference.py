"""transformers' own classes on bertkit's batches: the other side of every comparison.

For fine-tuning in come a model folder and a kind's batches, out come losses, a trained model and the head's outputs by example;
for pretraining a source of batches and a configuration, out come steps. The loops are written apart from
:mod:`bertkit.training`, as plainly as a person who has transformers and torch would write them.

Shapes: S sequences, T tokens of a batch, L its longest sequence, K labels, n tokens of one example.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMultipleChoice,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from transformers.utils import logging

from bertkit.batches.pretraining import PretrainingSource
from bertkit.bench.alternate import Round
from bertkit.bench.process import as_usual
from bertkit.errors import UsageError
from bertkit.model.config import EncoderConfig
from bertkit.training.optimizer import OptimizerSettings
from bertkit.training.precision import Became
from bertkit.training.timing import Timing

CLASSES: dict[str, Any] = {
    "classification": BertForSequenceClassification,
    "tagging": BertForTokenClassification,
    "span": BertForQuestionAnswering,
    "choice": BertForMultipleChoice,
}
"""transformers' class for each of bertkit's heads."""

_TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_LEFT_OUT = -100  # transformers' label of tokens that count for nothing


def quiet() -> None:
    """Keeps transformers' own progress bars and warnings of new heads to itself."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def write_start(model: Path, folder: Path, head: str, names: Sequence[str], *, seed: int) -> None:
    """Writes the model folder that both sides start from: the body of ``model`` under a new head, without any dropout.

    Args:
        model: A BERT folder with its tokenizer's files.
        folder: Is made; files of an earlier call are written over.
        head: One of :data:`CLASSES`.
        names: The labels in the order of the outputs; empty for spans.
        seed: Of the head's weights.
    """
    config = BertConfig.from_pretrained(
        model,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout=0.0,
        **({"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}} if names else {}),
    )
    torch.manual_seed(seed)
    made = CLASSES[head].from_pretrained(model, config=config, dtype=torch.float32)
    made.save_pretrained(folder)
    for name in _TOKENIZER_FILES:
        if (model / name).exists():
            shutil.copyfile(model / name, folder / name)


def begun(folder: Path, head: str, config: dict[str, Any]) -> nn.Module:
    """transformers' model of a head over the weights of ``folder``, in fp32; a head that does not fit is new."""
    made: nn.Module = CLASSES[head].from_pretrained(
        folder, config=BertConfig(**config), dtype=torch.float32, ignore_mismatched_sizes=True
    )
    return made


def load(folder: Path, head: str) -> nn.Module:
    """The transformers model of a folder, in fp32."""
    loaded: nn.Module = CLASSES[head].from_pretrained(folder, dtype=torch.float32)
    return loaded


def padded(batch: Any) -> dict[str, Tensor]:
    """A kind's batch as transformers takes it, each ``[S, L]``: padded behind to the longest, with its labels.

    ``labels`` are ``[S]`` (texts) or ``[S, L]`` with -100 off the words' first pieces (tags); ``start_positions`` and
    ``end_positions`` are ``[S]`` (spans). Candidates of G questions are ``[G, C, L]`` with ``labels`` ``[G]``.

    Raises:
        UsageError: The questions have not all as many candidates (exit 2), which transformers cannot take.
    """
    packed = batch.packed
    inputs: dict[str, Tensor] = packed.to_padded()
    if hasattr(batch, "starts"):
        return inputs | {"start_positions": batch.starts, "end_positions": batch.ends}
    if hasattr(batch, "choices"):
        if len(set(batch.choices)) > 1:
            raise UsageError(
                f"transformers takes questions with equally many candidates alone, and these have {min(batch.choices)} to "
                f"{max(batch.choices)}."
            )
        asked = {name: value.view(len(batch.choices), -1, value.shape[1]) for name, value in inputs.items()}
        return asked if batch.labels is None else asked | {"labels": batch.labels}
    if hasattr(batch, "label_positions"):
        laid = torch.full((packed.tokens,), _LEFT_OUT, dtype=torch.int64)
        laid[batch.label_positions] = batch.labels
        return inputs | {"labels": packed.pad(laid, _LEFT_OUT)}
    return inputs | {"labels": batch.labels}


def losses(model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The loss to differentiate, and transformers' own; both ``[]``.

    They are one but for spans. There transformers lets the padding behind a sequence take part in the softmax, so that a
    loss depends on its neighbours' lengths; here, as in bertkit, a sequence's own tokens alone do.
    """
    found = model(**inputs)
    if "start_positions" not in inputs:
        return found.loss, found.loss
    behind = inputs["attention_mask"] == 0
    starts = F.cross_entropy(found.start_logits.masked_fill(behind, -torch.inf), inputs["start_positions"])
    ends = F.cross_entropy(found.end_logits.masked_fill(behind, -torch.inf), inputs["end_positions"])
    return (starts + ends) / 2, found.loss


def linear_rate(step: int, steps: int, warmup: float) -> float:
    """The share of the peak rate at ``step`` (from 1) of ``steps``: up for a share of them, then down to 0 after the last."""
    rise = max(1, int(warmup * steps + 0.5))
    return step / rise if step <= rise else (steps + 1 - step) / (steps + 1 - rise)


def train(
    model: nn.Module, batches: Iterable[Any], *, steps: int, settings: OptimizerSettings, warmup: float
) -> Iterator[tuple[int, float, float, int]]:
    """Trains in place with torch's AdamW, one pass a batch; yields step (from 1), loss, transformers' own loss, tokens.

    Matrices decay, biases and LayerNorm do not; gradients are clipped to the norm of ``settings``.
    """
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=True,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: linear_rate(done + 1, steps, warmup))
    model.train()
    for step, batch in enumerate(batches, 1):
        loss, own = losses(model, padded(batch))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        yield step, loss.item(), own.item(), batch.tokens


@torch.inference_mode()
def outputs(
    model: nn.Module, examples: Sequence[Any], collate: Callable[[Sequence[Any]], Any], *, batch_size: int = 64
) -> list[np.ndarray]:
    """The head's logits by example, as :meth:`bertkit.tasks.kinds.Kind.decode` takes them: ``[K]``, or ``[n, K]`` by token.

    Examples of like length are computed together.
    """
    model.eval()
    found: list[np.ndarray] = [np.empty(0)] * len(examples)
    order = sorted(range(len(examples)), key=lambda number: -examples[number].length)
    for low in range(0, len(order), batch_size):
        numbers = order[low : low + batch_size]
        said = model(**_inputs(collate([examples[number] for number in numbers])))
        spans = "start_logits" in said
        values = torch.stack([said.start_logits, said.end_logits], dim=-1) if spans else said.logits
        for number, value in zip(numbers, values.numpy(), strict=True):
            found[number] = value if value.ndim == 1 else value[: examples[number].length]
    return found


def _inputs(batch: Any) -> dict[str, Tensor]:
    """A batch without its labels, which an evaluation need not have."""
    if hasattr(batch, "choices"):
        return {name: value for name, value in padded(batch).items() if name != "labels"}
    inputs: dict[str, Tensor] = batch.packed.to_padded()
    return inputs


class Pretraining:
    """Steps of ``BertForPreTraining`` on one device, the other side of ``bertkit bench pretrain``.

    The batch is padded to its longest sequence and has logits at every position; AdamW is as transformers' Trainer builds it
    (fused, no decay of biases and LayerNorms), clipping at 1. Only real tokens count.

    Args:
        source: Whose batches of one pass a step are taken in order.
        config: Of the model.
        device: Where it computes.
        precision: Its numbers: fp32, or autocast to bf16 or fp16.
        rate: AdamW's.
        seed: Of the weights and of dropout.
    """

    name = "transformers"

    def __init__(
        self,
        source: PretrainingSource,
        config: EncoderConfig,
        device: torch.device,
        precision: Became,
        *,
        rate: float = 1e-4,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        self.timing = Timing(device)
        self._source, self._device, self._precision = source, device, precision
        self._pad = config.pad_token_id or 0
        self._model = BertForPreTraining(BertConfig(**config.to_json(architecture="BertForPreTraining"))).to(device).train()
        decayed = [p for name, p in self._model.named_parameters() if p.dim() >= 2]
        others = [p for name, p in self._model.named_parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(groups, lr=rate, fused=True)
        self._at = (0, 0)

    def run(self, seconds: float) -> Round:
        """Steps for so long."""
        as_usual()
        self.timing.take()
        tokens, texts, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds or not tokens:
            packed = self._step().packed
            tokens += packed.tokens
            texts += packed.sequences
        self.timing.wait()
        return Round(units=tokens, seconds=time.perf_counter() - began, parts=self.timing.take(), texts=texts)

    def _step(self) -> Any:
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
        return batch

    def _next(self) -> Any:
        epoch, index = self._at
        if index >= self._source.steps(epoch):
            epoch, index = epoch + 1, 0
        self._at = (epoch, index + 1)
        return self._source.step(epoch, index)[0]  # one pass: its source has no budget of tokens

    def close(self) -> None:
        """Nothing to end."""
