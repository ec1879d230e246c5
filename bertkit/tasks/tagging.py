"""The tagging kind: CoNLL files and files like them, from sentences of words to one tag a word, and the entities' scores.

In come :class:`TaggedRow` and a head's K logits a token, out go tags (IOB2, whatever scheme the file has) and the figures that
conlleval counts. ``tagging_examples`` makes the windows, ``labelled.tags`` reads the schemes, ``metrics.entities`` counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bertkit.errors import DataError
from bertkit.labelled.rows import Place, RowReport, TaggedRow
from bertkit.labelled.tags import CONVERTED, recognise, to_iob2
from bertkit.metrics.bootstrap import Resampled
from bertkit.metrics.classification import accuracy, f1_macro
from bertkit.metrics.entities import entity_scores, resampled_entities
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.tasks.detail import Detail
from bertkit.tasks.examples import Encoded, pack
from bertkit.tasks.kinds import KindSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.prediction import Prediction, Scores
from bertkit.tasks.tagging_detail import tagging_detail
from bertkit.tasks.tagging_examples import TaggingExample, TaggingSettings, encode_sentences
from bertkit.tasks.tagging_files import (
    entity_records,
    from_records,
    line_row,
    read_given,
    read_tagged,
    stream_tagged,
    write_tagged,
)
from bertkit.tasks.tagging_labels import PLAIN_FIGURES, gold_tags, judged, scheme_of, tag_labels

if TYPE_CHECKING:
    from bertkit.corpus.wordpiece import WordPiece
    from bertkit.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggingBatch:
    """Windows for the tagging head.

    Attributes:
        packed: S windows of T tokens in all.
        label_positions: ``[M]`` int64, places in T of the first pieces of the words tagged in these windows.
        labels: ``[M]`` int64, outputs of the head; None without gold.
    """

    packed: PackedSequences
    label_positions: Tensor
    labels: Tensor | None

    @property
    def tokens(self) -> int:
        """T."""
        return self.packed.tokens

    def counts(self) -> dict[str, int]:
        """M targets of the one loss part, ``tagging``; 0 without gold."""
        return {"tagging": 0 if self.labels is None else len(self.labels)}

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> TaggingBatch:
        """The same batch on ``device``."""
        return TaggingBatch(
            packed=self.packed.to(device, non_blocking=non_blocking),
            label_positions=self.label_positions.to(device, non_blocking=non_blocking),
            labels=None if self.labels is None else self.labels.to(device, non_blocking=non_blocking),
        )


class Tagging:
    """One tag a word; fulfils :class:`bertkit.tasks.kinds.Kind`."""

    name: ClassVar[str] = "tagging"
    head: ClassVar[str] = "tagging"
    settings: ClassVar[type[KindSettings]] = TaggingSettings

    def read(self, path: Path, task: Task, *, strict: bool = False) -> tuple[list[TaggedRow], RowReport]:
        """Sentences of one file of CoNLL columns or of records; see :func:`bertkit.tasks.tagging_files.read_tagged`."""
        return read_tagged(path, task)

    def stream(self, path: Path, task: Task, report: RowReport, *, strict: bool = False) -> Iterator[TaggedRow]:
        """The same one by one, running text too; see :func:`bertkit.tasks.tagging_files.stream_tagged`."""
        return stream_tagged(path, task, report)

    def from_records(self, records: Iterable[Mapping[str, Any]], task: Task, *, source: str) -> tuple[list[TaggedRow], RowReport]:
        """Sentences of hub data: the columns that the task names, or ``tokens`` and ``ner_tags`` (names)."""
        return from_records(((Place(source, n, "record"), record) for n, record in enumerate(records, 1)), task, source=source)

    def from_line(self, number: int, line: str, task: Task) -> TaggedRow:
        """The words of a text that was piped in, as BERT's basic splitting has them."""
        return line_row(number, line, task)

    def has_gold(self, rows: Sequence[TaggedRow]) -> bool:
        """Whether any sentence has tags."""
        return any(row.tags is not None for row in rows)

    def texts(self, row: TaggedRow) -> str:
        """The words, a space between."""
        return " ".join(row.words)

    def labels(self, rows: Sequence[TaggedRow], task: Task, model_labels: Sequence[str] | None, *, for_training: bool) -> Labels:
        """The tags by output; see :func:`bertkit.tasks.tagging_labels.tag_labels`."""
        return tag_labels(rows, task, model_labels, for_training=for_training)

    def labels_unscored(self, rows: Sequence[TaggedRow], task: Task, model_labels: Sequence[str] | None) -> Labels:
        """The same for rows that nobody scores: the last column of a test file may be no tag at all."""
        return tag_labels(rows, task, model_labels, for_training=False, scored=False)

    def encode(
        self,
        rows: Sequence[TaggedRow],
        wordpiece: WordPiece,
        labels: Labels,
        settings: Any,
        *,
        segments: int = 2,
        for_training: bool = False,
    ) -> Encoded:
        """Windows in row order; see :func:`bertkit.tasks.tagging_examples.encode_sentences`."""
        return encode_sentences(rows, wordpiece, labels, settings, segments=segments, for_training=for_training)

    def collate(self, examples: Sequence[TaggingExample]) -> TaggingBatch:
        """One batch, in the order given; with labels where every example has them."""
        packed = pack(examples)
        starts = packed.boundaries[:-1].tolist()
        places = np.concatenate([example.positions + start for example, start in zip(examples, starts, strict=True)])
        labels = [example.labels for example in examples if example.labels is not None]
        gold = np.concatenate(labels) if len(labels) == len(examples) else None
        return TaggingBatch(
            packed=packed,
            label_positions=torch.from_numpy(places.astype(np.int64)),
            labels=None if gold is None else torch.from_numpy(gold.astype(np.int64)),
        )

    def decode(
        self,
        outputs: Sequence[np.ndarray],
        examples: Sequence[TaggingExample],
        rows: Sequence[TaggedRow],
        labels: Labels,
        settings: Any,
    ) -> list[Prediction]:
        """One tag a word: the best label at its first piece, ``O`` for deleted words. ``outputs[i]`` is ``[n, K]``.

        The score of a row is the probability of its least sure tag; None where every word is deleted.

        Raises:
            DataError: A logit is not a number; the row is named.
        """
        tags = [["O"] * len(row.words) for row in rows]
        sure: list[float | None] = [None] * len(rows)
        for example, output in zip(examples, outputs, strict=True):
            logits = np.asarray(output, dtype=np.float64)[example.positions]  # [w, K]
            if not np.isfinite(logits).all():
                raise _no_number(rows[example.row])
            if not len(logits):
                continue
            best = logits.argmax(axis=1)
            top = logits.max(axis=1, keepdims=True)
            least = float((1 / np.exp(logits - top).sum(axis=1)).min())
            known = sure[example.row]
            sure[example.row] = least if known is None else min(known, least)
            for word, label in zip(example.words.tolist(), best.tolist(), strict=True):
                tags[example.row][word] = labels.names[label]
        scheme = recognise([labels.names])[0]
        if scheme in CONVERTED - {"IOB1"}:  # a head of someone's; IOB1 and IOB2 have the same names
            tags = [to_iob2(said) for said in tags]
        golds = gold_tags(rows)
        return [
            Prediction(id=row.id, value=said, score=score, gold=gold, more=_facts(row, said, named=scheme != "plain"))
            for row, said, score, gold in zip(rows, tags, sure, golds, strict=True)
        ]

    def score(
        self, predictions: Sequence[Prediction], rows: Sequence[TaggedRow], task: Task, labels: Labels, *, seed: int = 0
    ) -> Scores:
        """conlleval's figures (fractions), ``f1_strict`` and ``accuracy`` beside them, and each type's as ``LOC_f1`` and so on.

        Of tags that name no entities accuracy and macro F1 over the words.

        Raises:
            DataError: No row has gold (exit 3).
        """
        kept = [(gold, list(said.value)) for gold, said in zip(gold_tags(rows), predictions, strict=True) if gold is not None]
        if not kept:
            raise DataError("There is nothing to score: no sentence has gold tags.", where=rows[0].place.file if rows else None)
        golds, founds = [gold for gold, _ in kept], [said for _, said in kept]
        if scheme_of(rows) == "plain":
            values, primary = _plain_figures(golds, founds), PLAIN_FIGURES[0]
        else:
            values, primary = _entity_figures(golds, founds, predictions, rows), task.primary
        if values[primary] is None:
            say("undefined", f"{primary} is undefined: neither the gold tags nor the predicted ones have an entity.")
        interval = None if values[primary] is None else resampled_entities(golds, founds, primary).interval(seed=seed)
        return Scores(values=values, primary=primary, examples=len(kept), interval=interval)

    def judged(self, task: Task, rows: Sequence[TaggedRow]) -> Task:
        """Accuracy decides of tags that name no entities; see :func:`bertkit.tasks.tagging_labels.judged`."""
        return judged(task, rows)

    def resampled(self, predictions: Sequence[Prediction], rows: Sequence[TaggedRow], task: Task, labels: Labels) -> Resampled:
        """The primary figure as a function of how often each sentence with gold is drawn."""
        kept = [(gold, said.value) for gold, said in zip(gold_tags(rows), predictions, strict=True) if gold is not None]
        return resampled_entities([gold for gold, _ in kept], [said for _, said in kept], task.primary)

    def detail(self, predictions: Sequence[Prediction], rows: Sequence[TaggedRow], labels: Labels) -> Detail:
        """Each type's counts, and the sentences with a wrong tag; see :func:`bertkit.tasks.tagging_detail.tagging_detail`."""
        return tagging_detail(predictions, rows, gold_tags(rows), plain=scheme_of(rows) == "plain")

    def golds(self, rows: Sequence[TaggedRow], labels: Labels) -> list[Any]:
        """The tags as IOB2."""
        return list(gold_tags(rows))

    def official_files(self, task: Task, part: str) -> tuple[str, ...]:
        """One file, whichever part it is."""
        return (task.official.get(part, "predictions.txt"),)

    def write_official(
        self, folder: Path, predictions: Iterable[Prediction], rows: Sequence[TaggedRow], task: Task, part: str
    ) -> list[Path]:
        """conlleval's columns, or CLUENER's lines; see :func:`bertkit.tasks.tagging_files.write_tagged`."""
        (name,) = self.official_files(task, part)
        write_tagged(folder / name, predictions, rows)
        return [folder / name]

    def read_official(self, path: Path, rows: Sequence[TaggedRow], task: Task, labels: Labels) -> list[Prediction]:
        """Predictions of any system, one a row; see :func:`bertkit.tasks.tagging_files.read_given`."""
        return read_given(path, rows, task)


def _plain_figures(golds: Sequence[Sequence[str]], founds: Sequence[Sequence[str]]) -> dict[str, float | None]:
    gold, found = list(chain.from_iterable(golds)), list(chain.from_iterable(founds))
    return {"accuracy": accuracy(gold, found), "f1_macro": f1_macro(gold, found)}


def _entity_figures(
    golds: Sequence[Sequence[str]], founds: Sequence[Sequence[str]], predictions: Sequence[Prediction], rows: Sequence[TaggedRow]
) -> dict[str, float | None]:
    scores = entity_scores(golds, founds)
    values = scores.metrics()
    raw = [(row.tags, said.more["as_given"]) for row, said in zip(rows, predictions, strict=True) if "as_given" in said.more]
    if len(raw) == len(rows):  # both sides are in the file's own scheme: conlleval compares the tags as they stand
        pairs = [pair for gold, said in raw if gold is not None for pair in zip(gold, said, strict=True)]
        values["accuracy"] = sum(gold == said for gold, said in pairs) / len(pairs)
    for name, counts in scores.types.items():
        if name:
            values |= {f"{name}_precision": counts.precision, f"{name}_recall": counts.recall, f"{name}_f1": counts.f1}
    return values


def _facts(row: TaggedRow, tags: Sequence[str], *, named: bool) -> dict[str, Any]:
    """The words and, where the tags name entities, each entity; of a raw text also the characters of each."""
    facts: dict[str, Any] = {"words": list(row.words)}
    if row.text is not None:
        facts |= {"text": row.text, "offsets": [list(each) for each in row.offsets]}
    return facts | ({"entities": entity_records(row, tags)} if named else {})


def _no_number(row: TaggedRow) -> DataError:
    return DataError(
        f"The model's outputs for sentence {row.id} are not numbers.",
        where=str(row.place) or f"sentence {row.id}",
        hint="The weights are damaged or their training diverged; use an earlier checkpoint.",
    )
