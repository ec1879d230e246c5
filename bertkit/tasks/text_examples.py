"""Texts and pairs as sequences: ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``, cut to the length, longest text first.

Shapes: n tokens of one example, S sequences, T tokens of a batch, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bertkit.errors import DataError, SettingsError
from bertkit.labelled.rows import TextRow
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.tasks.kinds import Coverage, Encoded, Example, Labels, pack

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece

Target = int | float | np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class TextExample(Example):
    """A text or a pair. ``label`` is an output's number, a regression's value, ``[K]`` float32 of 0 and 1, or None."""

    label: Target | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationBatch:
    """What the classification head reads.

    Attributes:
        packed: S sequences.
        labels: ``[S]`` int64 (one label), ``[S]`` float32 (regression) or ``[S, K]`` float32 (several); None without gold.
    """

    packed: PackedSequences
    labels: Tensor | None

    @property
    def tokens(self) -> int:
        """T."""
        return self.packed.tokens

    def counts(self) -> dict[str, int]:
        """Targets of the loss: S, or S × K where each text has several decisions."""
        return {"classification": 0 if self.labels is None else self.labels.numel()}

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> ClassificationBatch:
        """The same batch on ``device``."""
        labels = None if self.labels is None else self.labels.to(device, non_blocking=non_blocking)
        return ClassificationBatch(packed=self.packed.to(device, non_blocking=non_blocking), labels=labels)


def shares_of(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of a pair stay in ``room``: the longer text gives until both are equal, then both give in turn.

    Equal to taking one token at a time from the longer, as the tokenizers library's ``longest_first``; of an odd room the
    longer keeps the one more (of equal texts the second).

    >>> shares_of(10, 3, 9), shares_of(10, 10, 9), shares_of(10, 9, 9)
    ((6, 3), (4, 5), (5, 4))
    """
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (room - short, short) if first > second else (short, room - short)


def encode_texts(
    rows: Sequence[TextRow], wordpiece: WordPiece, labels: Labels, *, max_length: int, segments: int, for_training: bool
) -> Encoded:
    """One example a row, in order. With ``segments`` 1 all tokens are of segment 0, which is said once for pairs.

    Raises:
        DataError: A label that the head does not have or, in training, none at all (exit 3), with the row's place.
        SettingsError: ``max_length`` has no room for a token of each text (exit 2).
    """
    pairs = any(row.pair is not None for row in rows)
    if max_length < 3 + 2 * pairs:
        raise SettingsError(f"max_length {max_length} has no room for a token of each text.", where="max_length")
    if pairs and segments == 1:
        say("one-segment", "The model has one segment (type_vocab_size 1): both texts of a pair are of segment 0.")
    first = wordpiece.encode([row.text for row in rows])
    second = wordpiece.encode([row.pair or "" for row in rows]) if pairs else [None] * len(rows)
    coverage = Coverage(rows=len(rows), examples=len(rows))
    examples = []
    for number, (row, a, b) in enumerate(zip(rows, first, second, strict=True)):
        ids, types, lost = _lay_out(a, None if row.pair is None else b, wordpiece, max_length, segments)
        coverage.cut_rows += lost > 0
        coverage.cut_tokens += lost
        coverage.emptied += _emptied(row.text, a) or (row.pair is not None and _emptied(row.pair, b))
        examples.append(TextExample(row=number, ids=ids, types=types, label=_target(row, labels, for_training)))
    return Encoded(examples, coverage)


def _emptied(text: str, ids: np.ndarray | None) -> bool:
    """Whether the tokenizer leaves nothing of a text that has something."""
    return bool(text.strip()) and (ids is None or not len(ids))


def _lay_out(
    first: np.ndarray, second: np.ndarray | None, wordpiece: WordPiece, max_length: int, segments: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Ids and segments ``[n]`` int32, and the count of tokens cut."""
    start, end = np.array([wordpiece.cls_id], np.int32), np.array([wordpiece.sep_id], np.int32)
    if second is None:
        ids = np.concatenate([start, first[: max_length - 2], end])
        return ids, np.zeros(len(ids), np.int32), len(first) + 2 - len(ids)
    a, b = shares_of(len(first), len(second), max_length - 3)
    ids = np.concatenate([start, first[:a], end, second[:b], end])
    types = np.zeros(len(ids), np.int32)
    if segments > 1:
        types[a + 2 :] = 1
    return ids, types, len(first) + len(second) + 3 - len(ids)


def _target(row: TextRow, labels: Labels, for_training: bool) -> Target | None:
    """The row's label for the head; checked in evaluation too, so that no gold is scored which no output can give."""
    if row.label is None:
        if for_training:
            raise DataError("A training row has no label.", where=str(row.place))
        return None
    if labels.problem == "regression":
        return float(row.label) if not isinstance(row.label, tuple) else _unknown(row, labels)
    if labels.problem == "multi_label_classification":
        several = np.zeros(labels.outputs, np.float32)
        for name in row.label if isinstance(row.label, tuple) else (str(row.label),):
            several[_number(name, row, labels)] = 1.0
        return several
    return _number(str(row.label), row, labels)


def _number(name: str, row: TextRow, labels: Labels) -> int:
    number = labels.number(name)
    return _unknown(row, labels) if number is None else number


def _unknown(row: TextRow, labels: Labels) -> int:
    known = ", ".join(labels.names[:20]) + (", …" if labels.outputs > 20 else "")
    raise DataError(
        f"The label {row.label!r} is none of {known}.",
        where=str(row.place),
        hint="Mend the row, or train on data that has this label.",
    )


def collate_texts(examples: Sequence[TextExample]) -> ClassificationBatch:
    """Packs examples, in the order given; labels only where every one has its own."""
    given = [example.label for example in examples]
    labels: Tensor | None = None
    if all(label is not None for label in given):
        kind = torch.int64 if isinstance(given[0], int) else torch.float32
        labels = torch.from_numpy(np.stack([np.asarray(label) for label in given])).to(kind)
    return ClassificationBatch(packed=pack(examples), labels=labels)
