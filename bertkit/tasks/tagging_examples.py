"""Tagged sentences → windows of tokens with their words' tags: ``[CLS] part of the sentence [SEP]``.

In come rows and a tokenizer, out go examples and the count of what the settings put out of reach. A word's tag sits on its
first piece, in the one window where that piece has most context, so that each word is trained on and tagged once.

Shapes: n tokens of an example, w words tagged in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from bertkit.batches.windows import check_windows, trusted_windows, windows
from bertkit.errors import DataError
from bertkit.labelled.rows import TaggedRow
from bertkit.labelled.tags import entities
from bertkit.notices import say
from bertkit.tasks.coverage import Coverage
from bertkit.tasks.examples import Encoded, Example
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.tagging_labels import gold_tags, scheme_of, types_of, unknown_tag

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece

SPECIALS = 2
"""``[CLS]`` and ``[SEP]``."""
_LISTED = 12


class TaggingSettings(KindSettings):
    """How sentences are cut into windows."""

    stride: int | None = Field(
        None, description="Tokens that neighbouring windows of a long sentence share (the overlap); unset: a quarter of the room."
    )

    @property
    def room(self) -> int:
        """Tokens of the sentence in one window."""
        return self.max_length - SPECIALS

    @property
    def overlap(self) -> int:
        """The stride in tokens."""
        return self.room // 4 if self.stride is None else self.stride


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingExample(Example):
    """One window of one sentence.

    Attributes:
        positions: ``[w]`` int32, places in ``ids`` of the first pieces of the words that are tagged here.
        words: ``[w]`` int32, which words of the row they are.
        labels: ``[w]`` int32, outputs of the head; None where the example is not for training.
    """

    positions: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32] | None = None


def encode_sentences(
    rows: Sequence[TaggedRow],
    wordpiece: WordPiece,
    labels: Labels,
    settings: TaggingSettings,
    *,
    segments: int = 2,
    for_training: bool = False,
) -> Encoded:
    """Every row's windows, in row order; training leaves out windows that have no word of their own.

    Entities of a type that the head does not have are told: no output can give them, so they are missed.

    Raises:
        UsageError: The stride leaves tokens in no window, or there is no room (exit 2).
        DataError: A tag that the head does not have, in training or where tags name no entities; in training also a row
            without tags (exit 3).
    """
    if settings.stride is not None or settings.room < 1:
        check_windows(settings.room, settings.overlap, max_length=settings.max_length)
    plain = scheme_of(rows) == "plain"
    golds = gold_tags(rows)
    numbers = {name.casefold(): number for number, name in enumerate(labels.names)}
    numbers |= {name: number for number, name in enumerate(labels.names)}  # its own spelling comes before another's case
    pieces = iter(wordpiece.encode_words([word for row in rows for word in row.words]))
    coverage, examples, lost = Coverage(rows=len(rows)), [], _Lost(wordpiece.unk_id, labels.names)
    for index, (row, gold) in enumerate(zip(rows, golds, strict=True)):
        own = [next(pieces) for _ in row.words]
        targets = _numbers(row, gold, numbers, labels) if for_training or (plain and gold is not None) else None
        made = _windows(index, own, targets if for_training else None, wordpiece, settings)
        examples += [example for example in made if len(example.words)] if for_training else made
        lost.add(own, gold)
    coverage.examples = len(examples)
    lost.tell(coverage, rows, plain=plain)
    return Encoded(examples, coverage)


def _numbers(row: TaggedRow, gold: Sequence[str] | None, numbers: dict[str, int], labels: Labels) -> npt.NDArray[np.int32]:
    if gold is None:
        raise DataError("The sentence has no tags to train on.", where=str(row.place))
    found = [numbers.get(tag, numbers.get(tag.casefold(), -1)) for tag in gold]
    if -1 in found:
        place = found.index(-1)
        raise unknown_tag(gold[place], row.words[place], row.place, labels.names)
    return np.array(found, dtype=np.int32)


def _windows(
    row: int, pieces: Sequence[Any], targets: npt.NDArray[np.int32] | None, wordpiece: WordPiece, settings: TaggingSettings
) -> list[TaggingExample]:
    sizes = np.array([len(each) for each in pieces], dtype=np.int64)
    firsts = np.cumsum(sizes) - sizes
    kept = np.flatnonzero(sizes)  # words that the tokenizer does not delete
    ids = np.concatenate(pieces) if len(kept) else np.zeros(0, dtype=np.int32)
    cuts = windows(len(ids), settings.room, settings.overlap)
    # Nearly every sentence is one window, whose owner needs no reckoning.
    owner = trusted_windows(cuts, len(ids))[firsts[kept]] if len(cuts) > 1 else np.zeros(len(kept), dtype=np.int64)
    made = []
    for number, (start, size) in enumerate(cuts):
        words = kept[owner == number]
        whole = np.concatenate([[wordpiece.cls_id], ids[start : start + size], [wordpiece.sep_id]]).astype(np.int32)
        made.append(
            TaggingExample(
                row=row,
                ids=whole,
                types=np.zeros(len(whole), dtype=np.int32),
                positions=(firsts[words] - start + 1).astype(np.int32),
                words=words.astype(np.int32),
                labels=None if targets is None else targets[words],
            )
        )
    return made


class _Lost:
    """Counts what no output can give: gold on words that the tokenizer deletes, and entities of types that no label has."""

    def __init__(self, unknown: int, names: Sequence[str]) -> None:
        self._unknown = unknown
        self._types = types_of(names)
        self.words = self.deleted = self.unknown = self.golds = 0
        self.entities = self.missed = self.tags = 0
        self.strange: Counter[str] = Counter()

    def add(self, pieces: Sequence[Any], gold: Sequence[str] | None) -> None:
        deleted = {place for place, each in enumerate(pieces) if not len(each)}
        self.words += len(pieces)
        self.deleted += len(deleted)
        self.unknown += sum(len(each) == 1 and each[0] == self._unknown for each in pieces)
        if gold is None:
            return
        found = entities(gold)
        self.golds += len(gold)
        self.entities += len(found)
        self.tags += sum(gold[place] != "O" for place in deleted)
        self.strange.update(entity.type for entity in found if entity.type not in self._types)
        self.missed += sum(
            entity.type not in self._types or not deleted.isdisjoint(range(entity.start, entity.end)) for entity in found
        )

    def tell(self, coverage: Coverage, rows: Sequence[TaggedRow], *, plain: bool) -> None:
        coverage.words, coverage.deleted_words, coverage.unknown_words = self.words, self.deleted, self.unknown
        coverage.unreachable = self.tags if plain else self.missed
        if plain and self.tags:
            coverage.ceilings = {"accuracy": 1 - self.tags / self.golds}
        elif self.missed and not plain:
            # Leaving the lost entities out altogether costs no precision: F1 is 2c / (gold + found) with c = found.
            right = self.entities - self.missed
            coverage.ceilings = {"f1": 2 * right / (self.entities + right), "recall": right / self.entities}
        if self.strange and not plain:
            said = [f"{name or 'nameless'} ({count:,})" for name, count in self.strange.most_common(_LISTED)]
            more = f" and {len(self.strange) - _LISTED} more types" if len(self.strange) > _LISTED else ""
            say(
                "unknown-types",
                f"{rows[0].place.file or 'The data'}: entities of types that the model has no label for, as its training had "
                f"none, count as missed: {', '.join(said)}{more}.",
            )
