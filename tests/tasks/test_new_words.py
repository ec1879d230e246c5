"""A model that knows more words gives the scores of before, and its new rows are means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bertkit.errors import UsageError
from bertkit.model.config import EncoderConfig
from bertkit.packed import PackedSequences
from bertkit.tasks.models import TaskModel, build_model
from bertkit.tasks.new_words import with_new_words

V, MORE = 70, 130  # 70 rows are padded to 128, 130 to 192
IDS = (3, 70, 129, 71)
PIECES = [np.array(pieces, dtype=np.int32) for pieces in ([7, 8], [3], [9, 10, 11], [9, 9, 12])]


def made(head: str, **changes: Any) -> TaskModel:
    config = EncoderConfig.of_size("tiny", vocab_size=V).changed(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, **changes
    )
    model = build_model(head, config, seed=3)
    with torch.no_grad():
        model.head.mlm.bias[:V] = torch.randn(V, generator=torch.Generator().manual_seed(1))  # type: ignore[union-attr]
    return model.eval()


@pytest.mark.parametrize("head", ["pretraining", "masked_lm"])
@pytest.mark.parametrize("tied", [True, False])
def test_old_scores_stay_and_new_rows_are_means(head: str, tied: bool) -> None:
    model = made(head, tie_word_embeddings=tied)
    more = with_new_words(model, IDS, PIECES, vocab_size=MORE).eval()
    assert more.config.vocab_size == MORE
    before, after = model.weights(), more.weights()
    assert before.keys() == after.keys()
    grown = {name for name in after if after[name].shape != before[name].shape}
    bias = {"cls.predictions.bias"}
    assert grown == {"bert.embeddings.word_embeddings.weight"} | bias | (
        set() if tied else {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    )
    old = [i for i in range(V) if i not in IDS]
    for name in before:
        if name not in grown:
            assert before[name].equal(after[name])
            continue
        assert before[name][old].equal(after[name][old])
        for place, pieces in zip(IDS, PIECES, strict=True):
            torch.testing.assert_close(after[name][place], sum(before[name][int(p)] for p in pieces) / len(pieces))
    tokens = torch.tensor([2, *range(5, 60), 4])
    packed = PackedSequences.from_lengths(tokens, torch.zeros_like(tokens), torch.tensor([len(tokens)]))
    with torch.no_grad():
        mine, theirs = model.outputs(packed), more.outputs(packed)
        torch.testing.assert_close(mine[:, old], theirs[:, old], rtol=1e-5, atol=1e-5)
        for place, pieces in zip(IDS, PIECES, strict=True):  # the score of a word is the mean of its pieces' scores
            torch.testing.assert_close(theirs[:, place], mine[:, pieces].mean(dim=1), rtol=1e-5, atol=1e-5)
        if head == "pretraining":
            pair = [m.head.next_sentence(m.hidden(packed)) for m in (model, more)]  # type: ignore[operator, union-attr]
            torch.testing.assert_close(*pair)


def test_a_smaller_vocabulary_is_refused() -> None:
    with pytest.raises(UsageError):
        with_new_words(made("masked_lm"), (), [], vocab_size=V - 1)
