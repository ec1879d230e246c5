"""From spans of a store to masked, packed tensors: the batches of pre-training, and a collator for others' loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertkit.batches.masking import MaskingSettings, Masks
from bertkit.batches.text import Bools, Ints, VocabularyFacts, Wordpieces, ragged
from bertkit.batches.whole import Words
from bertkit.errors import DataError
from bertkit.packed import PackedSequences
from bertkit.randomness import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingBatch:
    """Masked sequences and what is to be guessed. No unmasked copy of the ids is kept.

    Attributes:
        packed: S sequences, T tokens, masked.
        masked_positions: ``[M]`` int64 into T, rising; at least one in each sequence.
        masked_labels: ``[M]`` int64, what stood there.
        next_sentence_labels: ``[S]`` int64, 0 = B is next, 1 = it is not (of order prediction: A is); None without pairs.
        pair_part: What the pairs' part of the loss is called: ``nsp``, or ``sop``.
    """

    packed: PackedSequences
    masked_positions: Tensor
    masked_labels: Tensor
    next_sentence_labels: Tensor | None
    pair_part: str = "nsp"

    @property
    def tokens(self) -> int:
        """T, special tokens included."""
        return self.packed.tokens

    def counts(self) -> dict[str, int]:
        """What the parts of the loss are divided by: masked tokens, and pairs where there are any."""
        counts = {"mlm": self.masked_labels.shape[0]}
        if self.next_sentence_labels is not None:
            counts[self.pair_part] = self.next_sentence_labels.shape[0]
        return counts

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> PretrainingBatch:
        """The same batch on ``device``."""
        labels = self.next_sentence_labels
        return PretrainingBatch(
            packed=self.packed.to(device, non_blocking=non_blocking),
            masked_positions=self.masked_positions.to(device, non_blocking=non_blocking),
            masked_labels=self.masked_labels.to(device, non_blocking=non_blocking),
            next_sentence_labels=None if labels is None else labels.to(device, non_blocking=non_blocking),
            pair_part=self.pair_part,
        )

    def to_padded(self, pad_id: int = 0) -> dict[str, Tensor]:
        """What ``transformers.BertForPreTraining`` takes: ``[S, L]`` tensors, ``labels`` -100 where nothing is guessed."""
        flat = torch.full_like(self.packed.input_ids, -100)
        flat[self.masked_positions] = self.masked_labels
        padded = {**self.packed.to_padded(pad_id), "labels": self.packed.pad(flat, -100)}
        if self.next_sentence_labels is not None:
            padded["next_sentence_label"] = self.next_sentence_labels
        return padded


def lay_out(tokens: Ints, lengths: tuple[Ints, Ints], facts: VocabularyFacts) -> tuple[Ints, Ints, Ints]:
    """Places of text tokens and segments in sequences ``[CLS] A [SEP] B [SEP]`` (``[CLS] A [SEP]`` where B is empty).

    Args:
        tokens: The texts' ids, end to end in the order A, B, A, B …
        lengths: ``[S]`` tokens of A and of B.
        facts: Which ids are special.

    Returns:
        ``ids [T]`` with everything in place, ``segments [T]``, ``plain``: where the text's tokens stand.
    """
    a_length, b_length = lengths
    totals = a_length + b_length + 2 + (b_length > 0)
    rows = np.zeros(len(totals) + 1, dtype=np.int64)
    np.cumsum(totals, out=rows[1:])
    starts = np.stack([rows[:-1] + 1, rows[:-1] + 2 + a_length], axis=1).ravel()
    plain, _ = ragged(starts, np.stack([a_length, b_length], axis=1).ravel())
    ids = np.full(rows[-1], facts.sep_id, dtype=np.int64)
    ids[rows[:-1]] = facts.cls_id
    ids[plain] = tokens
    behind = np.where(b_length > 0, b_length + 1, 0)
    segments, _ = ragged(rows[1:] - behind, behind)
    types = np.zeros(rows[-1], dtype=np.int64)
    types[segments] = 1
    return ids, types, plain


class Assembler:
    """Turns spans of text into masked batches.

    Args:
        facts: Special ids and random replacements.
        masking: What is masked, and how.
        segments: 1 for a model with one token type only: B's segment is 0 then.
        pair_part: What the pairs' part of the loss is called.
    """

    def __init__(self, facts: VocabularyFacts, masking: MaskingSettings, *, segments: int = 2, pair_part: str = "nsp") -> None:
        self.facts, self.masking, self.segments, self.pair_part = facts, masking, segments, pair_part

    @property
    def needs_words(self) -> bool:
        """Do the masks depend on where words begin, not on the number of tokens alone?"""
        return self.masking.kind != "token"

    def masks(self, a_length: Ints, b_length: Ints, rng: np.random.Generator, begins: Bools | None = None) -> Masks:
        """The masks of one global batch.

        Args:
            a_length: ``[S]`` tokens of each A.
            b_length: ``[S]`` tokens of each B.
            rng: The batch's own stream.
            begins: Does a word begin at each token of the texts (A, B, A, B … end to end)? Wanted where they are needed.
        """
        words = None if begins is None else Words.of(begins, np.stack([a_length, b_length], axis=1).ravel())
        return Masks(a_length + b_length, self.masking, self.facts, rng, words)

    def batch(
        self, tokens: Ints, lengths: tuple[Ints, Ints], labels: NDArray[np.integer] | None, masks: Masks, first: int
    ) -> PretrainingBatch:
        """Sequences ``first`` … of the global batch, from their text's tokens (A, B, A, B … end to end)."""
        ids, types, plain = lay_out(tokens, lengths, self.facts)
        totals = lengths[0] + lengths[1] + 2 + (lengths[1] > 0)
        places, originals = masks.apply(ids, plain, first, first + len(totals))
        if self.segments < 2:
            types[:] = 0
        return PretrainingBatch(
            packed=PackedSequences.from_lengths(torch.from_numpy(ids), torch.from_numpy(types), torch.from_numpy(totals)),
            masked_positions=torch.from_numpy(places),
            masked_labels=torch.from_numpy(originals),
            next_sentence_labels=None if labels is None else torch.from_numpy(labels.astype(np.int64)),
            pair_part=self.pair_part,
        )


class PretrainingCollator:
    """A ``data_collator`` for others' loops (``transformers.Trainer``): masks afresh at each call.

    Args:
        wordpiece: The vocabulary.
        masking: What is masked, and how.
        seed: Of the masks; call ``n`` of a collator draws the ``n``-th masks of that seed.
        segments: 1 for a model with ``type_vocab_size`` 1.

    Called with a list of examples, ``{"a": ids}`` or ``{"a": ids, "b": ids, "next_sentence_label": 0 or 1}`` (of
    :class:`bertkit.batches.pretraining.PretrainingExamples`, or your own), it gives padded ``[S, L]`` tensors: ``input_ids``,
    ``attention_mask``, ``token_type_ids``, ``labels`` (-100 where nothing is guessed), ``next_sentence_label [S]``.
    An example's ``"begins"`` says of each id of A and then of B whether a word begins there, for whole words and spans;
    without it ``##`` pieces go on with a word.
    """

    def __init__(
        self, wordpiece: Wordpieces, masking: MaskingSettings | None = None, *, seed: int = 0, segments: int = 2
    ) -> None:
        self.facts = VocabularyFacts.of(wordpiece)
        self.assembler = Assembler(self.facts, masking or MaskingSettings(), segments=segments)
        self.seed = seed
        self.calls = 0

    def __call__(self, examples: list[dict[str, object]]) -> dict[str, Tensor]:
        """Masks and pads one batch."""
        return self.packed(examples).to_padded(self.facts.pad_id)

    def packed(self, examples: list[dict[str, object]]) -> PretrainingBatch:
        """The same batch without padding."""
        texts = [np.asarray(example.get(part, ()), dtype=np.int64) for example in examples for part in ("a", "b")]
        sizes = np.array([len(text) for text in texts], dtype=np.int64)
        rng = stream(self.seed, "collator/masks", self.calls)
        self.calls += 1
        begins = self._begins(examples, texts) if self.assembler.needs_words else None
        masks = self.assembler.masks(sizes[::2], sizes[1::2], rng, begins)
        labels = None
        if all("next_sentence_label" in example for example in examples):
            labels = np.array([example["next_sentence_label"] for example in examples], dtype=np.int64)
        return self.assembler.batch(np.concatenate(texts), (sizes[::2], sizes[1::2]), labels, masks, 0)

    def _begins(self, examples: list[dict[str, object]], texts: list[Ints]) -> Bools:
        """Where words begin: as each example says, else by its pieces."""
        found = []
        for number, example in enumerate(examples):
            ids = np.concatenate(texts[2 * number : 2 * number + 2])
            begins = ~self.facts.continues[ids] if example.get("begins") is None else np.asarray(example["begins"], dtype=bool)
            if begins.shape != ids.shape:
                raise DataError(
                    f"`begins` has {begins.size} entries, but A and B have {len(ids)} ids.",
                    where=f"example {number} of the batch",
                )
            found.append(begins)
        return np.concatenate(found)
