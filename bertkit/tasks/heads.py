"""The heads: hidden states in, loss parts (training) or scores (evaluation) out. Each is BERT's own, by Devlin et al. 2019.

A head of one's own subclasses :class:`Head`, looks at :class:`~bertkit.model.hidden.Hidden` only through its methods, and
is entered into ``bertkit.tasks.models.HEADS``.

Shapes: S sequences, T tokens, H the width, K labels, M masked positions, W labelled words, G groups of candidates.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertkit.model.activations import activation
from bertkit.model.hidden import Hidden
from bertkit.model.layers import Linear, dropout
from bertkit.tasks.losses import LossPart, LossParts
from bertkit.tasks.pretraining import cross_entropy, masked_lm_loss, vocabulary_logits, wide


class Head(nn.Module):
    """What every head offers.

    Attributes:
        architecture: The transformers class that reads the saved model.
        on_tokens: Are the outputs one row a token (``[T, K]``) rather than one a sequence (``[S, K]``)?
    """

    architecture: ClassVar[str]
    on_tokens: ClassVar[bool] = False

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """The batch's loss parts, each a sum and a count."""
        raise NotImplementedError

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """Scores; ``positions`` ``[P]`` are the tokens wanted, where the outputs are by token (None: all)."""
        raise NotImplementedError


class Scoring(Linear):
    """The last product of a head, whose outputs are compared with one another: in its weights' own numbers, under autocast too.

    bf16 keeps eight bits of a score: one question in ten had two best candidates, and the first was taken.
    """

    def forward(self, states: Tensor) -> Tensor:
        """``[N, H]`` to ``[N, K]``."""
        with torch.autocast(states.device.type, enabled=False):
            return super().forward(states.to(self.weight.dtype))


class Pooler(nn.Module):
    """tanh of a matrix over the first token's state: what the next-sentence and text classifiers look at."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.dense = Linear(width, width)

    def forward(self, hidden: Hidden) -> Tensor:
        """``[S, H]``."""
        return torch.tanh(self.dense(hidden.first()))


class Bare(Head):
    """No head: the states themselves, and the pooler where the checkpoint has one (``BertModel``)."""

    architecture = "BertModel"
    on_tokens = True

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.pooler = Pooler(width=width)

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """``[T, H]`` (or ``[P, H]``)."""
        return hidden.states if positions is None else hidden.at(positions)


class Decoder(nn.Module):
    """A matrix, activation and LayerNorm, then the product with the word embeddings and a bias of its own.

    Args:
        width: H.
        size: V.
        rows: V', the rows of the embedding matrix.
        act: Name of the activation.
        epsilon: LayerNorm's.
        tied: Use the word embeddings; otherwise a matrix of its own.
    """

    def __init__(self, *, width: int, size: int, rows: int, act: str, epsilon: float, tied: bool = True) -> None:
        super().__init__()
        self.size = size
        self.act = activation(act)
        self.dense = Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.bias = nn.Parameter(torch.empty(rows))
        self.matrix = None if tied else nn.Parameter(torch.empty(rows, width))

    @torch.no_grad()
    def settle_new_weights(self) -> None:
        """Zeroes the rows behind the vocabulary."""
        if self.matrix is not None:
            self.matrix[self.size :] = 0.0

    @torch.no_grad()
    def start_bias(self, values: Tensor) -> None:
        """Starts the output bias at ``values`` ``[V]`` (see :func:`~bertkit.tasks.pretraining.unigram_bias`)."""
        self.bias[: self.size] = values

    def transform(self, states: Tensor) -> Tensor:
        """``[M, H]`` to ``[M, H]``."""
        return self.norm(self.act(self.dense(states)))  # type: ignore[no-any-return]

    def words(self, hidden: Hidden) -> Tensor:
        """``[V', H]``: the matrix that it multiplies with."""
        return hidden.words if self.matrix is None else self.matrix

    def loss(self, hidden: Hidden, positions: Tensor, labels: Tensor) -> LossPart:
        """The masked-LM part."""
        states = self.transform(hidden.at(positions))
        return masked_lm_loss(states, self.words(hidden), self.bias, labels, self.size)

    def forward(self, hidden: Hidden, positions: Tensor | None) -> Tensor:
        """``[M, V]`` logits at the positions."""
        states = hidden.states if positions is None else hidden.at(positions)
        return vocabulary_logits(self.transform(states), self.words(hidden), self.bias, self.size)


class MaskedLM(Head):
    """Predicts the chosen tokens. Batch: ``masked_positions`` ``[M]`` and ``masked_labels`` ``[M]`` int64."""

    architecture = "BertForMaskedLM"
    on_tokens = True

    def __init__(self, *, decoder: Decoder) -> None:
        super().__init__()
        self.mlm = decoder

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """``mlm``."""
        return {"mlm": self.mlm.loss(hidden, batch.masked_positions, batch.masked_labels)}

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """``[P, V]`` logits; ``[T, V]`` without ``positions``."""
        return self.mlm(hidden, positions)  # type: ignore[no-any-return]


class Pretraining(MaskedLM):
    """Masked LM and the next sentence, or the order of two. Batch: also ``next_sentence_labels`` ``[S]`` int64, or None.

    0: B is next; 1: it is not. ``pair_part`` names their part of the loss: ``nsp`` or ``sop``.
    """

    architecture = "BertForPreTraining"

    def __init__(self, *, decoder: Decoder, width: int) -> None:
        super().__init__(decoder=decoder)
        self.pooler = Pooler(width=width)
        self.nsp = Linear(width, 2)

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """``mlm``, and ``nsp`` or ``sop`` where the batch has labels of pairs."""
        parts = super().losses(hidden, batch)
        if batch.next_sentence_labels is not None:
            parts[batch.pair_part] = cross_entropy(self.next_sentence(hidden), batch.next_sentence_labels)
        return parts

    def next_sentence(self, hidden: Hidden) -> Tensor:
        """``[S, 2]`` logits: is next, is not."""
        return self.nsp(self.pooler(hidden))  # type: ignore[no-any-return]


class Classification(Head):
    """One label a text, several, or a number. Batch: ``labels``, and ``weights`` ``[S]`` of one label a text, or None.

    ``problem`` says which: ``single_label_classification`` (labels ``[S]`` int64), ``multi_label_classification``
    (``[S, K]`` fp32 of 0 and 1), ``regression`` (``[S]`` or ``[S, K]`` fp32; mean squared error).
    """

    architecture = "BertForSequenceClassification"

    def __init__(self, *, width: int, labels: int, problem: str, dropout: float) -> None:
        super().__init__()
        self.problem, self.dropout = problem, dropout
        self.pooler = Pooler(width=width)
        self.classifier = Scoring(width, labels)

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """``[S, K]`` logits (regression: values)."""
        return self.classifier(dropout(self.pooler(hidden), self.dropout, self.training))  # type: ignore[no-any-return]

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """``classification``; a count of texts for one label, of texts × K otherwise, as the means of transformers are taken."""
        logits, labels = wide(self.outputs(hidden)), batch.labels
        if self.problem == "single_label_classification":
            return {"classification": cross_entropy(logits, labels, batch.weights)}
        if self.problem == "regression":
            total = F.mse_loss(logits.view(labels.shape), labels.to(logits.dtype), reduction="sum")
            return {"classification": LossPart(total, labels.numel())}
        total = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="sum")
        right = ((logits.detach() > 0) == (labels > 0.5)).sum()
        return {"classification": LossPart(total, labels.numel(), right)}


class Tagging(Head):
    """A tag a word. Batch: ``label_positions`` ``[W]`` int64, words' first pieces in the batch; ``labels`` ``[W]`` int64."""

    architecture = "BertForTokenClassification"
    on_tokens = True

    def __init__(self, *, width: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.classifier = Scoring(width, labels)

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """``[T, K]`` (or ``[P, K]``) logits."""
        states = hidden.states if positions is None else hidden.at(positions)
        return self.classifier(dropout(states, self.dropout, self.training))  # type: ignore[no-any-return]

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """``tagging``."""
        return {"tagging": cross_entropy(self.outputs(hidden, batch.label_positions), batch.labels)}


class Span(Head):
    """Start and end of an answer. Batch: ``starts`` and ``ends`` ``[S]`` int64, counted within each sequence (0: no answer)."""

    architecture = "BertForQuestionAnswering"
    on_tokens = True

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.span = Scoring(width, 2)

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """``[T, 2]`` logits: start, end."""
        return self.span(hidden.states if positions is None else hidden.at(positions))  # type: ignore[no-any-return]

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """``span``: the mean of both cross-entropies over a sequence's own tokens; right where both are."""
        laid = hidden.packed.pad(wide(self.outputs(hidden)), -torch.inf)  # [S, L, 2]
        starts, ends = laid.unbind(-1)
        total = F.cross_entropy(starts, batch.starts, reduction="sum") + F.cross_entropy(ends, batch.ends, reduction="sum")
        right = (starts.detach().argmax(-1) == batch.starts) & (ends.detach().argmax(-1) == batch.ends)
        return {"span": LossPart(total / 2, batch.starts.shape[0], right.sum())}


class Choice(Head):
    """One score a candidate, softmax over the candidates of a question.

    Batch: sequences are candidates, a question's one behind another; ``choices`` (a tuple of G counts on the host) says how
    many each question has, ``labels`` ``[G]`` int64 which is right.
    """

    architecture = "BertForMultipleChoice"

    def __init__(self, *, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.pooler = Pooler(width=width)
        self.classifier = Scoring(width, 1)

    def outputs(self, hidden: Hidden, positions: Tensor | None = None) -> Tensor:
        """``[S, 1]``: the candidates' scores."""
        return self.classifier(dropout(self.pooler(hidden), self.dropout, self.training))  # type: ignore[no-any-return]

    def losses(self, hidden: Hidden, batch: Any) -> LossParts:
        """``choice``, its count the questions."""
        scores = torch.split(wide(self.outputs(hidden)).squeeze(1), list(batch.choices))
        laid = nn.utils.rnn.pad_sequence(list(scores), batch_first=True, padding_value=-torch.inf)  # [G, most]
        return {"choice": cross_entropy(laid, batch.labels)}
