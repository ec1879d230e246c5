"""Rows of texts to predictions, tokenizing included: by ``bertkit predict``, by transformers' pipeline, by onnxruntime.

Every side gets the same rows in each round, as text, and gives a label and its probability for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.bench.alternate import Round
from bertkit.bench.figures import OURS
from bertkit.bench.process import OwnWays, as_usual
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.scoring import EncodedPart, Scorer
from bertkit.labelled.rows import RowReport, TextRow
from bertkit.tasks.data import TaskPart
from bertkit.tasks.prediction import Prediction
from bertkit.training.timing import Timing

_WARM = 64  # rows of the first run, which does not count


class Slices:
    """Rows in equal slices, one a round, from the beginning again where they end; with the tokens of each."""

    def __init__(self, rows: Sequence[TextRow], size: int, tokens: Sequence[int]) -> None:
        self._rows, self._tokens = list(rows), list(tokens)
        self._size = min(size, len(self._rows))

    @property
    def size(self) -> int:
        """Rows of a round."""
        return self._size

    def slice(self, number: int) -> tuple[list[TextRow], int]:
        """The rows of a round, and their tokens; round -1 is a few, to warm up."""
        size = min(_WARM, self._size) if number < 0 else self._size
        start = max(0, number) * self._size % len(self._rows)
        places = [(start + place) % len(self._rows) for place in range(size)]
        return [self._rows[place] for place in places], sum(self._tokens[place] for place in places)


class Predicting:
    """One way of predicting; each call of :meth:`run` takes the next slice, whole, however long it takes.

    Args:
        name: Of the side.
        slices: The rows.
        predict: Their labels.
        ways: What the process is set to meanwhile.
    """

    def __init__(
        self,
        name: str,
        slices: Slices,
        predict: Callable[[list[TextRow], Timing], list[str]],
        *,
        ways: Callable[[], None] = as_usual,
    ) -> None:
        self.name, self._slices, self._predict, self._ways = name, slices, predict, ways
        self._timing, self._next = Timing(), -1
        self.labels: list[str] = []

    def run(self, seconds: float) -> Round:
        """The next slice."""
        self._ways()
        rows, tokens = self._slices.slice(self._next)
        self._next += 1
        self._timing.take()
        began = time.perf_counter()
        self.labels = self._predict(rows, self._timing)
        spent = time.perf_counter() - began
        return Round(units=tokens, seconds=spent, parts=self._timing.take(), texts=len(rows))


def ours(scorer: Scorer, wordpiece: WordPiece, slices: Slices) -> Predicting:
    """A window of ``bertkit predict``."""

    def predict(rows: list[TextRow], timing: Timing) -> list[str]:
        with timing.part("tokenize"):
            segments = scorer.model.config.type_vocab_size
            encoded = scorer.kind.encode(rows, wordpiece, scorer.labels, scorer.settings, segments=segments)
        part = TaskPart(name="rows", rows=rows, report=RowReport(), source="")
        with timing.part("model"):
            said: list[Prediction] = scorer.predictions(EncodedPart(part=part, encoded=encoded)) or []
        return [str(one.value) for one in said]

    return Predicting(OURS, slices, predict, ways=OwnWays(scorer.machine.device).take)


def pipeline(folder: Path, slices: Slices, names: Sequence[str], *, max_length: int, batch_size: int, device: Any) -> Predicting:
    """transformers' ``pipeline("text-classification")`` in fp32, rows in the order of the file."""
    from transformers import pipeline as make

    from bertkit.bench import reference

    reference.quiet()
    made: Any = make("text-classification", model=str(folder), device=device, dtype=torch.float32, batch_size=batch_size)
    known = {made.model.config.id2label[number]: name for number, name in enumerate(names)}

    def predict(rows: list[TextRow], timing: Timing) -> list[str]:
        texts: list[Any] = [row.text if row.pair is None else {"text": row.text, "text_pair": row.pair} for row in rows]
        return [known[one["label"]] for one in made(texts, truncation=True, max_length=max_length)]

    return Predicting("transformers", slices, predict)


def onnxruntime(
    folder: Path, slices: Slices, names: Sequence[str], *, max_length: int, batch_size: int, threads: int
) -> Predicting:
    """onnxruntime's fp32 session of transformers' model, on batches sorted by length, each padded to its longest."""
    import transformers

    from bertkit.bench.onnx import session

    run = session(folder, threads=threads)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def predict(rows: list[TextRow], timing: Timing) -> list[str]:
        texts, pairs = [row.text for row in rows], [row.pair for row in rows]
        with timing.part("tokenize"):
            encoded = tokenizer(texts, *([pairs] if pairs[0] is not None else []), truncation=True, max_length=max_length)
        labels = [""] * len(rows)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        left = iter(sorted(range(len(rows)), key=lambda number: -lengths[number]))
        while batch := list(islice(left, batch_size)):
            with timing.part("data"):
                inputs = {name: _padded([encoded[name][number] for number in batch]) for name in run.inputs}
            with timing.part("model"):
                logits = run(inputs)
            shares = np.exp(logits - logits.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            for number, best in zip(batch, shares.argmax(-1), strict=True):
                labels[number] = names[int(best)]
        return labels

    return Predicting("onnxruntime", slices, predict)


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """``[S, L]`` int64, zeros behind each row; the first row is the longest."""
    laid = np.zeros((len(rows), len(rows[0])), dtype=np.int64)
    for place, row in enumerate(rows):
        laid[place, : len(row)] = row
    return laid
