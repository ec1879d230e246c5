"""Texts and pairs as sequences: ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``, cut to the length, longest text first, or
laid in windows that overlap.

Shapes: n tokens of one example, S sequences, T tokens of a batch, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bertkit.batches.windows import windows
from bertkit.errors import DataError, SettingsError
from bertkit.labelled.rows import TextRow
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.examples import Encoded, Example, count_unknown, pack
from bertkit.tasks.labels import Labels

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece

Target = int | float | np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class TextExample(Example):
    """A text or a pair, or a window of one.

    Attributes:
        label: An output's number, a regression's value, ``[K]`` float32 of 0 and 1, or None.
        weight: What its loss counts.
    """

    label: Target | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationBatch:
    """What the classification head reads.

    Attributes:
        packed: S sequences.
        labels: ``[S]`` int64 (one label), ``[S]`` float32 (regression) or ``[S, K]`` float32 (several); None without gold.
        weights: ``[S]`` float32, what each sequence's loss counts; None: all the same.
    """

    packed: PackedSequences
    labels: Tensor | None
    weights: Tensor | None = None

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
        weights = None if self.weights is None else self.weights.to(device, non_blocking=non_blocking)
        return ClassificationBatch(packed=self.packed.to(device, non_blocking=non_blocking), labels=labels, weights=weights)


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
    rows: Sequence[TextRow],
    wordpiece: WordPiece,
    labels: Labels,
    *,
    max_length: int,
    segments: int,
    for_training: bool,
    windowed: bool = False,
    overlap: int | None = None,
) -> Encoded:
    """The rows' examples, in order: one a row or, ``windowed``, one a window. With ``segments`` 1 all tokens are of segment 0,
    which is said once for pairs.

    Args:
        rows: Texts and pairs.
        wordpiece: The tokenizer.
        labels: By the head's outputs.
        max_length: Tokens of a sequence at most.
        segments: The model's segment types.
        for_training: Every row must have a label.
        windowed: What is longer is laid in windows with the row's label each, instead of being cut.
        overlap: Tokens that neighbouring windows share; None: a quarter of their room.

    Raises:
        DataError: A label that the head does not have or, in training, none at all (exit 3), with the row's place.
        SettingsError: ``max_length`` has no room for a token of each text (exit 2).
        UsageError: The overlap leaves windows no way forward (exit 2).
    """
    pairs = any(row.pair is not None for row in rows)
    if max_length < 3 + 2 * pairs:
        raise SettingsError(f"max_length {max_length} has no room for a token of each text.", where="max_length")
    if pairs and segments == 1:
        say("one-segment", "The model has one segment (type_vocab_size 1): both texts of a pair are of segment 0.")
    first = wordpiece.encode([row.text for row in rows])
    second = wordpiece.encode([row.pair or "" for row in rows]) if pairs else [None] * len(rows)
    coverage, long = Coverage(rows=len(rows)), 0
    examples = []
    for number, (row, a, b) in enumerate(zip(rows, first, second, strict=True)):
        b = None if row.pair is None else b
        room = max_length - (2 if b is None else 3)
        cuts = _windows(len(a), None if b is None else len(b), room, overlap) if windowed else _cut(a, b, room)
        lost = len(a) + (0 if b is None else len(b)) - _covered(cuts)
        coverage.cut_rows += lost > 0
        coverage.cut_tokens += lost
        coverage.emptied += _emptied(row.text, a) or (row.pair is not None and _emptied(row.pair, b))
        long += len(cuts) > 1
        label = _target(row, labels, for_training)
        for of_first, of_second in cuts:
            ids, types = _lay_out(a[of_first], None if b is None else b[of_second], wordpiece, segments)
            examples.append(TextExample(row=number, ids=ids, types=types, label=label))
    coverage.examples = len(examples)
    count_unknown(examples, wordpiece.unk_id, coverage)
    if long:
        coverage.notes.append(
            f"{long} of {len(rows)} texts are longer than {max_length} tokens: they are read in windows, "
            f"{len(examples):,} sequences in all, and each text is answered once."
        )
    return Encoded(examples, coverage)


def _emptied(text: str, ids: np.ndarray | None) -> bool:
    """Whether the tokenizer leaves nothing of a text that has something."""
    return bool(text.strip()) and (ids is None or not len(ids))


_Cut = tuple[slice, slice]
"""The tokens of the first and of the second text that stand in one sequence."""


def _cut(first: np.ndarray, second: np.ndarray | None, room: int) -> list[_Cut]:
    """One sequence of what fits."""
    a, b = (min(len(first), room), 0) if second is None else shares_of(len(first), len(second), room)
    return [(slice(0, a), slice(0, b))]


def _windows(first: int, second: int | None, room: int, overlap: int | None) -> list[_Cut]:
    """Windows over the longer text, the shorter one whole in each of them (up to half of the room)."""
    if first + (second or 0) <= room:
        return [(slice(0, first), slice(0, second or 0))]
    short = 0 if second is None else min(first, second, room // 2)
    left = room - short
    cuts = windows(max(first, second or 0), left, left // 4 if overlap is None else overlap)
    longer = [slice(start, start + size) for start, size in cuts]
    same = slice(0, short)
    return [(each, same) for each in longer] if first >= (second or 0) else [(same, each) for each in longer]


def _covered(cuts: Sequence[_Cut]) -> int:
    """Tokens that stand in a sequence at least."""
    return sum(max(each[text].stop for each in cuts) for text in (0, 1))


def _lay_out(first: np.ndarray, second: np.ndarray | None, wordpiece: WordPiece, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and segments ``[n]`` int32."""
    start, end = np.array([wordpiece.cls_id], np.int32), np.array([wordpiece.sep_id], np.int32)
    if second is None:
        ids = np.concatenate([start, first, end])
        return ids, np.zeros(len(ids), np.int32)
    ids = np.concatenate([start, first, end, second, end])
    types = np.zeros(len(ids), np.int32)
    if segments > 1:
        types[len(first) + 2 :] = 1
    return ids, types


def _target(row: TextRow, labels: Labels, for_training: bool) -> Target | None:
    """The row's label for the head; checked in evaluation too, so that no gold is scored which no output can give."""
    if row.label is None:
        if for_training:
            raise DataError("A training row has no label.", where=str(row.place))
        return None
    if labels.problem == "regression":
        return float(row.label) if not isinstance(row.label, tuple) else _unknown(row.label, row, labels)
    if labels.problem == "multi_label_classification":
        several = np.zeros(labels.outputs, np.float32)
        for name in row.label if isinstance(row.label, tuple) else (str(row.label),):
            several[_number(name, row, labels)] = 1.0
        return several
    return _number(str(row.label), row, labels)


def _number(name: str, row: TextRow, labels: Labels) -> int:
    number = labels.number(name)
    return _unknown(name, row, labels) if number is None else number


def _unknown(name: object, row: TextRow, labels: Labels) -> int:
    known = ", ".join(labels.names[:20]) + (", …" if labels.outputs > 20 else "")
    raise DataError(
        f"The label {name!r} is none of {known}.",
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
    weights: Tensor | None = None
    if any(example.weight != 1.0 for example in examples):
        weights = torch.tensor([example.weight for example in examples], dtype=torch.float32)
    return ClassificationBatch(packed=pack(examples), labels=labels, weights=weights)
