"""Contexts with candidates as sequences: ``[CLS] context [SEP] question candidate [SEP]`` for each candidate of a question.

An example is a whole question, its candidates' sequences one behind another: so whatever cuts batches keeps them together.
Source: run_swag.py of transformers, but for what is cut where a sequence is too long: there the longer side, here the context.

Shapes: n tokens of an example, C candidates of it, G questions of a batch, S candidates of a batch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bertkit.errors import DataError, SettingsError
from bertkit.labelled.rows import ChoiceRow
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.examples import Encoded, Example, count_unknown, pack

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece

SPECIALS = 3
"""``[CLS]``, and a ``[SEP]`` behind the context and behind the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceExample(Example):
    """A question with all of its candidates.

    Attributes:
        tokens: Of each candidate's sequence, C numbers; ``ids`` and ``types`` have the sequences one behind another.
        label: The right one's place, or None.
    """

    tokens: tuple[int, ...]
    label: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The tokens of each candidate's sequence."""
        return self.tokens

    def firsts(self) -> list[int]:
        """For each candidate the place of the first that is the same sequence of ids to a model; mostly its own."""
        seen: dict[bytes, int] = {}
        cuts = pairwise(accumulate(self.tokens, initial=0))
        return [seen.setdefault(self.ids[a:b].tobytes(), place) for place, (a, b) in enumerate(cuts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceBatch:
    """What the choice head reads.

    Attributes:
        packed: S sequences, a question's candidates one behind another.
        choices: How many candidates each of the G questions has.
        labels: ``[G]`` int64, the right ones' places; None without gold.
    """

    packed: PackedSequences
    choices: tuple[int, ...]
    labels: Tensor | None

    @property
    def tokens(self) -> int:
        """Of all sequences."""
        return self.packed.tokens

    def counts(self) -> dict[str, int]:
        """G targets of the one loss part, ``choice``; 0 without gold."""
        return {"choice": 0 if self.labels is None else len(self.choices)}

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> ChoiceBatch:
        """The same batch on ``device``."""
        return ChoiceBatch(
            packed=self.packed.to(device, non_blocking=non_blocking),
            choices=self.choices,
            labels=None if self.labels is None else self.labels.to(device, non_blocking=non_blocking),
        )


def collate_choices(examples: Sequence[ChoiceExample]) -> ChoiceBatch:
    """Packs questions, in the order given; labels only where every one has its own."""
    labels = [example.label for example in examples if example.label is not None]
    return ChoiceBatch(
        packed=pack(examples),
        choices=tuple(len(example.tokens) for example in examples),
        labels=torch.tensor(labels, dtype=torch.int64) if len(labels) == len(examples) else None,
    )


def encode_choices(
    rows: Sequence[ChoiceRow], wordpiece: WordPiece, *, max_length: int, segments: int, for_training: bool
) -> Encoded:
    """An example a row, in order. With ``segments`` 1 all tokens are of segment 0, which is said.

    Raises:
        DataError: In training, a row has no label (exit 3), with its place.
        SettingsError: ``max_length`` has no room for a token of each text (exit 2).
    """
    if max_length < SPECIALS + 2:
        raise SettingsError(f"max_length {max_length} has no room for a token of each text.", where="max_length")
    if segments == 1:
        say("one-segment", "The model has one segment (type_vocab_size 1): context and candidates are of segment 0.")
    contexts = wordpiece.encode([row.context for row in rows])
    questions = wordpiece.encode([row.question for row in rows])
    candidates = iter(wordpiece.encode(list(chain.from_iterable(row.candidates for row in rows))))
    coverage, losses = Coverage(rows=len(rows)), _Losses()
    examples = []
    for number, (row, context, question) in enumerate(zip(rows, contexts, questions, strict=True)):
        if for_training and row.label is None:
            raise DataError("A training row has no label.", where=str(row.place))
        own = [next(candidates) for _ in row.candidates]
        laid = [_lay_out(context, question, each, wordpiece, losses, max_length, segments) for each in own]
        lost = losses.taken()
        coverage.cut_rows += lost > 0
        coverage.cut_tokens += lost
        texts = ((row.context, context), (row.question, question), *zip(row.candidates, own, strict=True))
        coverage.emptied += any(text.strip() and not len(ids) for text, ids in texts)
        examples.append(
            ChoiceExample(
                row=number,
                ids=np.concatenate([ids for ids, _ in laid]),
                types=np.concatenate([types for _, types in laid]),
                tokens=tuple(len(ids) for ids, _ in laid),
                label=row.label,
            )
        )
    coverage.examples = sum(len(example.tokens) for example in examples)
    count_unknown(examples, wordpiece.unk_id, coverage)
    coverage.notes += losses.lines()
    if not for_training:
        _tell_reach(examples, coverage)
    return Encoded(examples, coverage)


class _Losses:
    """Counts what the length takes: of the question at hand, and by the side that gives."""

    def __init__(self) -> None:
        self._here = 0
        self._candidates = 0
        self._any = False

    def add(self, before: int, candidate: int) -> None:
        """Tokens that one sequence lost before its candidate, and of the candidate itself."""
        self._here += before + candidate
        self._candidates += candidate > 0

    def taken(self) -> int:
        """Tokens lost since the last call."""
        here, self._here = self._here, 0
        self._any |= here > 0
        return here

    def lines(self) -> Iterator[str]:
        """Which side gave."""
        if self._any:
            yield "The end of the context gives way first, so that candidates stay whole."
        if self._candidates:
            yield f"{self._candidates} candidates are longer than a sequence by themselves and lost their ends."


def _lay_out(
    context: np.ndarray,
    question: np.ndarray,
    candidate: np.ndarray,
    wordpiece: WordPiece,
    losses: _Losses,
    max_length: int,
    segments: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Ids and segments of one candidate's sequence; of what is too long the context loses its end, then the question, then it."""
    room = max_length - SPECIALS
    whole = len(context) + len(question), len(candidate)
    candidate = candidate[:room]
    question = question[: room - len(candidate)]
    context = context[: room - len(candidate) - len(question)]
    losses.add(whole[0] - len(context) - len(question), whole[1] - len(candidate))
    start, end = [wordpiece.cls_id], [wordpiece.sep_id]
    ids = np.concatenate([start, context, end, question, candidate, end]).astype(np.int32)
    types = np.zeros(len(ids), np.int32)
    types[len(context) + 2 :] = min(1, segments - 1)
    return ids, types


def _tell_reach(examples: Sequence[ChoiceExample], coverage: Coverage) -> None:
    """Counts the golds that no model can give, and the ceiling of accuracy.

    Of candidates that are one sequence to a model the first is answered; of questions that are equal to it, with other golds,
    the commonest gold can be right.
    """
    golds: dict[bytes, list[int]] = defaultdict(list)
    for example in examples:
        if example.label is not None:
            named = example.firsts()[example.label] == example.label
            golds[example.ids.tobytes()].append(example.label if named else -1)
    total = sum(map(len, golds.values()))
    best = sum(max(Counter(place for place in each if place >= 0).values(), default=0) for each in golds.values())
    coverage.unreachable = total - best
    if coverage.unreachable:
        coverage.ceilings = {"accuracy": best / total}
        coverage.notes.append("Those candidates or questions look to the model like others that stand before them.")
