"""A pretrained model and one masked sequence in, its guesses out: probabilities of words, and of B following A."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from bertkit.batches.text import Ints
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.jobs.models import check_vocabulary, config_of, model_folder, tokenizer_of
from bertkit.jobs.pretrained import PretrainingHeads, pretrained_with
from bertkit.packed import PackedSequences
from bertkit.tasks.models import TaskModel, load_model

PairKind = Literal["is_next", "in_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """For one place: the likeliest words with their probabilities, best first, and -log P of the true one (nats)."""

    likeliest: tuple[tuple[str, float], ...]
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """What a model says of one sequence.

    Attributes:
        words: One for each place that was asked for; None where the model has no masked-LM head.
        has_pair_head: It has one for pairs.
        pair: P(IsNext), or P(in order); None with one text, or without that head.
        pair_kind: What the head for pairs was trained for.
    """

    words: tuple[Guess, ...] | None
    has_pair_head: bool
    pair: float | None
    pair_kind: PairKind

    @property
    def loss(self) -> float | None:
        """The mean of -log P over the places."""
        return None if not self.words else sum(guess.loss for guess in self.words) / len(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's folder with what the reading of a text needs to know of it."""

    folder: Path
    wordpiece: WordPiece
    positions: int
    segments: int

    def guess(self, ids: Ints, segments: Ints, places: Ints, labels: Ints, *, top: int) -> Guesses:
        """Runs the model once.

        Args:
            ids: ``[T]`` as masked.
            segments: ``[T]``.
            places: ``[M]`` into them.
            labels: ``[M]`` ids that stood there.
            top: Likeliest words for each place.
        """
        heads = PretrainingHeads.of(self.folder)
        has_words, has_pair = heads.words, heads.pairs
        kind: PairKind = "in_order" if pretrained_with(self.folder).get("examples.objective") == "mlm+sop" else "is_next"
        if not has_words:
            return Guesses(words=None, has_pair_head=has_pair, pair=None, pair_kind=kind)
        model = load_model(self.folder, "pretraining" if has_pair else "masked_lm", must_have_head=True)[0].eval()
        packed = PackedSequences.from_lengths(torch.from_numpy(ids), torch.from_numpy(segments), torch.tensor([len(ids)]))
        with torch.no_grad():
            hidden = model.hidden(packed)
            logits = model.head.outputs(hidden, torch.from_numpy(places)).double().log_softmax(-1)  # [M, V]
            two = (ids == self.wordpiece.sep_id).sum() > 1
            pair = float(_next_sentence(model, hidden)) if has_pair and two else None
        words = tuple(self._guess(row, int(label), top) for row, label in zip(logits, labels, strict=True))
        return Guesses(words=words, has_pair_head=has_pair, pair=pair, pair_kind=kind)

    def _guess(self, row: torch.Tensor, label: int, top: int) -> Guess:
        known = row[: self.wordpiece.size]  # rows behind the vocabulary's last line have no word
        best = known.topk(min(top, len(known)))
        ranked = zip(best.values.exp().tolist(), best.indices.tolist(), strict=True)
        return Guess(likeliest=tuple((self.wordpiece.vocabulary[i], share) for share, i in ranked), loss=-float(row[label]))


def open_model(name: str, *, tokenizer: str | None, cased: bool | None) -> Model:
    """The model of that name, with its own vocabulary or the one that is named.

    Raises:
        MissingError: There is no such model or vocabulary (exit 4).
        ModelError: A folder that is no BERT, or a vocabulary that is not the model's (exit 3).
    """
    folder = model_folder(name)
    config = config_of(folder)
    if tokenizer is None:
        wordpiece = tokenizer_of(folder, cased=cased)
    else:
        wordpiece = load_wordpiece(Path(tokenizer), cased=cased)
        check_vocabulary(wordpiece, config, tokenizer)
    return Model(folder=folder, wordpiece=wordpiece, positions=config.max_position_embeddings, segments=config.type_vocab_size)


def _next_sentence(model: TaskModel, hidden: object) -> torch.Tensor:
    """P(label 0), that B is next (or in order)."""
    logits: torch.Tensor = model.head.next_sentence(hidden)  # type: ignore[operator]
    return logits.double().softmax(-1)[0, 0]
