"""Batches of pre-training out of a token store: the plan of an epoch, cut, shared out, masked and packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertkit.batches.census import take_census
from bertkit.batches.collator import Assembler, PretrainingBatch
from bertkit.batches.examples import ExampleSettings, Progress, draw_examples, require_documents
from bertkit.batches.masking import MaskingSettings
from bertkit.batches.plan import EpochPlan, joined, keep_plan, open_plan, plan_key, say_facts
from bertkit.batches.source import cut_by_tokens
from bertkit.batches.text import Bools, Ints, Store, VocabularyFacts, Wordpieces, ragged
from bertkit.notices import say
from bertkit.randomness import stream

VISIBLE = 0.01
"""The share of Chinese characters from which on it is said how they are masked."""

_STRIPES, _STRIPE = 64, 4096  # stripes that are looked at, and tokens of each


class PretrainingSource:
    """Masked batches of a store (:class:`bertkit.batches.source.BatchSource`).

    Args:
        store: The text, as ids.
        wordpiece: Its vocabulary, or what is kept of one.
        examples: Objective and lengths.
        masking: What is masked, and how.
        seed: Everything that is drawn comes from it.
        batch_size: Sequences per optimizer step over all processes; the last one of an epoch may have fewer.
        micro_tokens: Tokens per forward pass at most; None: a step is one pass.
        plans: Folder where the plans of epochs are kept, beside the store; None: they stay in memory.
        purpose: ``"validation"`` draws from streams of its own and gives the same examples and masks every epoch.
        limit: Sequences of an epoch at most (validation).
        segments: The model's ``type_vocab_size``; 1 puts all tokens in segment 0.
        without: Documents that are in no example and give no wrong B (sorted indices): those held out.

    Raises:
        DataError: Pairs are asked for and there are too few documents of two words.
    """

    def __init__(
        self,
        store: Store,
        wordpiece: Wordpieces | VocabularyFacts,
        examples: ExampleSettings,
        masking: MaskingSettings,
        *,
        seed: int,
        batch_size: int,
        micro_tokens: int | None = None,
        plans: Path | None = None,
        purpose: str = "training",
        limit: int | None = None,
        segments: int = 2,
        without: Ints | None = None,
    ) -> None:
        self.store = store
        self.facts = wordpiece if isinstance(wordpiece, VocabularyFacts) else VocabularyFacts.of(wordpiece)
        self.examples, self.masking = examples, masking
        self.seed, self.batch_size, self.micro_tokens = seed, batch_size, micro_tokens
        self.plans, self.purpose, self.limit, self.without = plans, purpose, limit, without
        self.assembler = Assembler(self.facts, masking, segments=segments, pair_part=examples.pair_part)
        self.key = plan_key(store, self.facts, examples, seed=seed, purpose=purpose, without=without)
        self._plan: tuple[int, EpochPlan] | None = None
        self._said = False
        require_documents(store, self.facts, examples, without)
        if purpose == "training" and self.assembler.needs_words:
            self._say_characters()

    def _say_characters(self) -> None:
        share = chinese_share(self.store, self.facts)
        if share >= VISIBLE and self.store.word_begins(np.zeros(0, np.int64)) is None:
            say(
                "chinese-by-character",
                f"{share:.0%} of the tokens are Chinese characters, and no words are known for them: Chinese is masked by "
                "character. --words FILE (or jieba, rjieba) tells its words.",
            )

    def steps(self, epoch: int) -> int:
        """Optimizer steps of this epoch."""
        return -(-self._size(self.plan(epoch)) // self.batch_size)

    def step(self, epoch: int, index: int, rank: int = 0, world: int = 1) -> list[PretrainingBatch]:
        """The micro-batches of process ``rank`` of ``world``: a contiguous share of the batch, as even as may be."""
        if self.purpose == "validation":
            epoch = 0
        plan = self.plan(epoch)
        rows = plan.batch(index, self.batch_size)[: max(0, self._size(plan) - index * self.batch_size)]
        if not len(rows):
            raise IndexError(f"epoch {epoch} has {self.steps(epoch)} batches, no batch {index}")
        a, b = rows["a_length"].astype(np.int64), rows["b_length"].astype(np.int64)
        begins = self._begins(rows) if self.assembler.needs_words else None
        masks = self.assembler.masks(a, b, stream(self.seed, f"{self.purpose}/masking", epoch, index), begins)
        first, last = len(rows) * rank // world, len(rows) * (rank + 1) // world
        totals = (a + b + 2 + (b > 0))[first:last]
        batches = []
        for part in cut_by_tokens(totals, self.micro_tokens):
            some = rows[first:last][part]
            lengths = (a[first:last][part], b[first:last][part])
            labels = some["label"] if self.examples.pairs else None
            batches.append(self.assembler.batch(self._tokens(some), lengths, labels, masks, first + part.start))
        return batches

    def plan(self, epoch: int, progress: Progress | None = None) -> EpochPlan:
        """The examples of an epoch: from memory, from the folder of plans, or drawn now (and kept)."""
        if self.purpose == "validation":
            epoch = 0
        if self._plan is None or self._plan[0] != epoch:
            plan = open_plan(self.plans, self.key, epoch) if self.plans else None
            if plan is None:
                plan = self._kept(self.plans, epoch, progress) if self.plans else joined(self._draw(epoch, progress))
            self._plan = (epoch, plan)
            self._say(plan)
        return self._plan[1]

    def _draw(self, epoch: int, progress: Progress | None) -> Iterator[NDArray[np.void]]:
        return draw_examples(
            self.store,
            self.facts,
            self.examples,
            seed=self.seed,
            epoch=epoch,
            purpose=self.purpose,
            without=self.without,
            progress=progress,
        )

    def _kept(self, folder: Path, epoch: int, progress: Progress | None) -> EpochPlan:
        try:
            keep_plan(self._draw(epoch, progress), folder, self.key, epoch)
        except OSError as error:  # a full disk or a folder of others': the plan in memory is as good
            say(
                "plan-not-kept",
                f"The order of epoch {epoch} is kept in memory only: {folder} cannot be written ({error.strerror}).",
            )
        return open_plan(folder, self.key, epoch) or joined(self._draw(epoch, progress))

    def tokens_of(self, row: NDArray[np.void]) -> tuple[Ints, Ints]:
        """The ids of A and of B of one example of a plan."""
        tokens = self._tokens(row.reshape(1))
        return tokens[: int(row["a_length"])], tokens[int(row["a_length"]) :]

    def _tokens(self, rows: NDArray[np.void]) -> Ints:
        return np.asarray(self.store.ids[_places(rows)], dtype=np.int64)

    def _begins(self, rows: NDArray[np.void]) -> Bools:
        """Does a word begin at each token of the texts (A, B, A, B … end to end)?"""
        kept = self.store.word_begins(_places(rows))
        return ~self.facts.continues[self._tokens(rows)] if kept is None else kept

    def _size(self, plan: EpochPlan) -> int:
        return len(plan) if self.limit is None else min(len(plan), self.limit)

    def _say(self, plan: EpochPlan) -> None:
        if self._said or not self.examples.pairs or self.purpose == "validation":
            return
        self._said = True
        counts = self.store.counts  # where the build counted no such documents there is nothing to look for
        if counts.get("one_sentence_documents") == 0 and counts.get("pairable_documents") == counts.get("documents", 0):
            return
        census = take_census(self.store, self.facts.continues, self.without)
        fact = say_facts(plan, census) if self.examples.objective == "mlm+nsp" else None
        if fact:
            say("one-sentence-documents", fact)
        left_out = census.documents - census.pairable
        if left_out:
            say("one-word-documents", f"{left_out} documents of one word take no part in learning from pairs.")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__, _said=True)
        if self.plans is not None:  # a worker maps the file itself, as it does the store's
            state["_plan"] = None
        return state


def chinese_share(store: Store, facts: VocabularyFacts) -> float:
    """The share of a store's tokens that are single Chinese characters, estimated on a quarter of a million of them at most."""
    tokens = len(store.ids)
    if facts.chinese is None or not tokens:
        return 0.0
    starts = np.unique(np.linspace(0, max(0, tokens - _STRIPE), num=_STRIPES, dtype=np.int64))
    return float(np.mean([facts.chinese[store.ids[start : start + _STRIPE]].mean() for start in starts.tolist()]))


def _places(rows: NDArray[np.void]) -> Ints:
    """Where the tokens of A, B, A, B … stand in the store."""
    starts = np.stack([rows["a"], rows["b"]], axis=1).ravel()
    lengths = np.stack([rows["a_length"], rows["b_length"]], axis=1).ravel().astype(np.int64)
    return ragged(starts, lengths)[0]


class PretrainingExamples:
    """One epoch's examples as a map-style dataset, for others' loops (``Trainer(train_dataset=…)``).

    Each item is ``{"a": ids, "b": ids, "next_sentence_label": 0 or 1}`` (``{"a": ids}`` without pairs), unmasked:
    :class:`PretrainingCollator` masks. Where the store keeps where words begin, ``"begins"`` tells it of each id of A and
    then of B. ``epoch`` draws other pairs.
    """

    def __init__(
        self, store: Store, wordpiece: Wordpieces, examples: ExampleSettings | None = None, *, seed: int = 0, epoch: int = 0
    ) -> None:
        settings = examples or ExampleSettings()
        self.source = PretrainingSource(store, wordpiece, settings, MaskingSettings(), seed=seed, batch_size=1)
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.source.plan(self.epoch))

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.source.plan(self.epoch).examples[index]
        row = np.asarray(row)
        a, b = self.source.tokens_of(row)
        example: dict[str, Any] = {"a": a}
        if row["label"] >= 0:
            example |= {"b": b, "next_sentence_label": int(row["label"])}
        begins = self.source.store.word_begins(_places(row.reshape(1)))
        return example if begins is None else {**example, "begins": begins}
