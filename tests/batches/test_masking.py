"""Which tokens are chosen, how often, and what stands in their place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from bertkit.batches.collator import PretrainingCollator
from bertkit.batches.examples import ExampleSettings
from bertkit.batches.masking import MaskingSettings, quotas
from bertkit.batches.pretraining import PretrainingSource

DRAWS = 3_000


def masked(vocabulary, sentences, draws, **settings):
    """Batches of the collator over the same sentences, packed."""
    collator = PretrainingCollator(vocabulary, MaskingSettings(**settings), seed=7)
    return [collator.packed([{"a": sentence} for sentence in sentences]) for _ in range(draws)]


def test_only_real_tokens_are_masked(vocabulary):
    sentences = [list(range(10, 70)), list(range(80, 85))]
    for batch in masked(vocabulary, sentences, DRAWS):
        owner = batch.packed.sequence_ids()[batch.masked_positions]
        assert torch.bincount(owner, minlength=2).tolist() == [9, 1]
        clean = [2, *sentences[0], 3, 2, *sentences[1], 3]
        originals = torch.tensor(clean)[batch.masked_positions]
        assert torch.equal(originals, batch.masked_labels)
        assert (originals >= 5).all(), "a special token was chosen"
        others = torch.ones(len(clean), dtype=torch.bool)
        others[batch.masked_positions] = False
        assert torch.equal(batch.packed.input_ids[others], torch.tensor(clean)[others]), "an unchosen token changed"


def test_padding_carries_no_label(vocabulary):
    padded = PretrainingCollator(vocabulary)([{"a": list(range(10, 70))}, {"a": [80, 81, 82, 83, 84]}])
    assert (padded["labels"] >= 0).sum(1).tolist() == [9, 1]
    assert (padded["labels"][padded["attention_mask"] == 0] == -100).all()
    assert (padded["labels"][:, 0] == -100).all()
    assert padded["attention_mask"].sum(1).tolist() == [62, 7]


@pytest.mark.parametrize("unused", [None, 5])
def test_what_stands_in_the_place_of_the_chosen(make_vocabulary, unused):
    vocabulary = make_vocabulary(37, unused=unused)
    sentence = np.random.default_rng(0).integers(6, 37, 60).tolist()
    batches = masked(vocabulary, [sentence], DRAWS)
    seen = torch.cat([batch.packed.input_ids[batch.masked_positions] for batch in batches])
    label = torch.cat([batch.masked_labels for batch in batches])
    assert len(label) == 9 * DRAWS
    is_mask, same = seen == 4, seen == label
    random = ~is_mask & ~same
    drawable = 32 if unused is None else 31
    # A random draw hits the original once in 32 (the word is drawable): it then looks kept.
    expected = {"mask": 0.8, "random": 0.1 * (1 - 1 / drawable), "kept": 0.1 + 0.1 / drawable}
    shown = {"mask": is_mask, "random": random, "kept": same}
    for name, share in expected.items():
        sigma = (share * (1 - share) / len(label)) ** 0.5
        assert abs(shown[name].float().mean() - share) < 3 * sigma, name
    values = set(seen[random].tolist())
    assert values == set(vocabulary.replaceable.tolist())


def test_every_token_is_chosen_as_often_as_any_other(vocabulary):
    counts = torch.zeros(62)
    for batch in masked(vocabulary, [list(range(10, 70))], DRAWS):
        counts[batch.masked_positions] += 1
    sigma = (DRAWS * 0.15 * 0.85) ** 0.5
    assert ((counts[1:61] - 0.15 * DRAWS).abs() < 4.5 * sigma).all()  # 60 places: 4.5 sigma is one false alarm in 2 400


def test_the_count_over_a_corpus_is_the_formula(vocabulary):
    counts = np.random.default_rng(1).integers(1, 126, 20_000)
    got = quotas(counts, 0.15, np.random.default_rng(2))
    wanted = np.maximum(1, 0.15 * counts)
    fraction = np.where(counts < 7, 0, 0.15 * counts % 1)
    sigma = np.sqrt((fraction * (1 - fraction)).sum())
    assert abs(got.sum() - wanted.sum()) < 3 * sigma
    assert (got >= 1).all()
    assert ((got == np.floor(0.15 * counts)) | (got == np.floor(0.15 * counts) + 1) | (counts < 7)).all()
    assert (quotas(np.array([1, 2, 6]), 0.15, np.random.default_rng(0)) == 1).all()
    assert (quotas(np.array([1, 2, 60]), 1.0, np.random.default_rng(0)) == [1, 2, 60]).all()


def test_shares_are_settings(vocabulary):
    batches = masked(vocabulary, [list(range(10, 70))], 50, mask_share=0.0, random_share=0.0)
    assert all(torch.equal(batch.packed.input_ids[batch.masked_positions], batch.masked_labels) for batch in batches)
    batches = masked(vocabulary, [list(range(10, 70))], 50, mask_share=1.0, random_share=0.0, probability=0.5)
    assert all((batch.packed.input_ids[batch.masked_positions] == 4).sum() == 30 for batch in batches)
    with pytest.raises(ValidationError, match="together above 1"):
        MaskingSettings(mask_share=0.9, random_share=0.2)


def test_the_mask_count_of_real_batches_is_the_formula(prose, vocabulary):
    source = PretrainingSource(prose(150), vocabulary, ExampleSettings(), MaskingSettings(), seed=5, batch_size=64)
    got, wanted, variance = 0, 0.0, 0.0
    for index in range(source.steps(0)):
        (batch,) = source.step(0, index)
        n = batch.packed.boundaries.diff().double() - 3
        fraction = torch.where(n < 7, 0.0, 0.15 * n % 1)
        got += batch.counts()["mlm"]
        wanted += float(torch.clamp(0.15 * n, min=1).sum())
        variance += float((fraction * (1 - fraction)).sum())
    assert abs(got - wanted) < 3 * variance**0.5


def test_a_batch_keeps_no_unmasked_copy(vocabulary, prose):
    source = PretrainingSource(
        prose(30), vocabulary, ExampleSettings(), MaskingSettings(mask_share=1.0, random_share=0.0), seed=5, batch_size=32
    )
    (batch,) = source.step(0, 0)
    assert (batch.packed.input_ids[batch.masked_positions] == vocabulary.mask_id).all()
    reachable = [getattr(batch.packed, name) for name in ("input_ids", "token_type_ids", "position_ids", "boundaries")]
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in reachable}
    assert len(storages) == 4
    assert sorted(storages.values()) == sorted(tensor.numel() * tensor.element_size() for tensor in reachable)
    assert batch.__slots__ == ("packed", "masked_positions", "masked_labels", "next_sentence_labels", "pair_part")


def test_masks_are_fresh_each_epoch_and_each_call(prose, vocabulary):
    source = PretrainingSource(
        prose(30), vocabulary, ExampleSettings(objective="mlm"), MaskingSettings(), seed=5, batch_size=10_000
    )
    (first,), (second,) = source.step(0, 0), source.step(1, 0)
    assert first.tokens == second.tokens
    one, two = masked(vocabulary, [list(range(10, 70))], 2)
    assert one.masked_positions.tolist() != two.masked_positions.tolist()
