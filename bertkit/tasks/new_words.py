"""A model with more words: rows for them in the embeddings and in the masked-LM output, all else as it was.

Shapes: V entries before, V' after, H the width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertkit.corpus.pieces import Ids
from bertkit.errors import UsageError
from bertkit.model.hf import load_into
from bertkit.model.names import BIAS, DECODER, DECODER_BIAS, WORDS
from bertkit.tasks.models import TaskModel, build_model


def with_new_words(
    model: TaskModel, ids: Sequence[int], pieces: Sequence[Ids], *, vocab_size: int, save_memory: bool = False
) -> TaskModel:
    """The same model with V' entries, in which each new word starts as the mean of the pieces that it was cut into.

    That holds for its embedding, for its row of a decoder of its own (``tie_word_embeddings: false``) and for its output
    bias. The score of a new word is then the mean of its pieces' scores: from the first step it is as likely as they are
    where they belong, and never likelier than its likeliest piece. An ``[unusedN]``'s own bias would not do: training has
    driven it so far down that the word would not be guessed for long. Scores of all other entries are what they were.

    Args:
        model: As it was loaded.
        ids: The row of each word, below V'.
        pieces: What each word was cut into, at least one id each, all below V.
        vocab_size: V', at least V; rows that nobody names are zero.
        save_memory: Gradient checkpointing.

    Raises:
        UsageError: A new size below the old one.
    """
    if vocab_size < model.config.vocab_size:
        raise UsageError(f"A vocabulary of {model.config.vocab_size:,} entries cannot become one of {vocab_size:,}.")
    tensors = {
        name: _grown(tensor, ids, pieces, vocab_size) if name in (WORDS, DECODER, BIAS, DECODER_BIAS) else tensor
        for name, tensor in model.weights().items()
    }
    made = build_model(model.head_name, model.config.changed(vocab_size=vocab_size), save_memory=save_memory)
    load_into(made, tensors, vocab_size=vocab_size, where="the model with new words")
    return made


def _grown(rows: Tensor, ids: Sequence[int], pieces: Sequence[Ids], size: int) -> Tensor:
    """``[V, …]`` to ``[V', …]``."""
    more = rows.new_zeros(size, *rows.shape[1:])
    more[: len(rows)] = rows
    for place, of in zip(ids, pieces, strict=True):
        more[place] = rows[torch.from_numpy(of).long()].mean(dim=0)
    return more
