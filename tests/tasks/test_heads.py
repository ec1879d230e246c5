"""Heads by hand: sums and counts, the chunked cross-entropy against the plain one, losses that no class of transformers has."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bertkit.model.config import EncoderConfig
from bertkit.packed import PackedSequences
from bertkit.tasks.losses import LossParts
from bertkit.tasks.models import build_model
from bertkit.tasks.pretraining import masked_lm_loss, unigram_bias

CONFIG = EncoderConfig(
    vocab_size=70,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=40,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def pack(*lengths: int) -> PackedSequences:
    total = sum(lengths)
    return PackedSequences.from_lengths(torch.arange(total) % 64 + 5, torch.zeros(total, dtype=torch.long), torch.tensor(lengths))


def problem(dtype: torch.dtype) -> tuple[list[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    states, words, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((23, 16), (128, 16), (128,))
    )
    words[70:] = 0
    bias[70:] = 5.0  # whatever stands behind the vocabulary must not count
    labels = torch.randint(0, 70, (23,), generator=generator)
    return [x.to(dtype).requires_grad_() for x in (states * 3, words, bias)], labels


@pytest.mark.parametrize("chunk", [1, 128 * 5, 128 * 1000])
def test_chunked_cross_entropy_and_its_gradients_are_exact(chunk: int) -> None:
    (states, words, bias), labels = problem(torch.float64)
    part = masked_lm_loss(states, words, bias, labels, 70, chunk=chunk)
    logits = F.linear(states, words, bias)[:, :70]
    expected = F.cross_entropy(logits, labels, reduction="sum")
    assert part.total.item() == pytest.approx(expected.item(), rel=1e-13)
    assert part.count == 23
    assert part.correct is not None
    assert part.correct.item() == (logits.argmax(1) == labels).sum().item()
    found = torch.autograd.grad(part.total / 7, (states, words, bias))
    wanted = torch.autograd.grad(expected / 7, (states, words, bias))
    for own, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-12, atol=1e-13)


def test_chunked_cross_entropy_is_safe_for_impossible_words_and_in_bf16() -> None:
    (states, words, bias), labels = problem(torch.float32)
    with torch.no_grad():
        bias[labels[0]] = -1000.0
    far = masked_lm_loss(states, words, bias, labels, 70)
    expected = F.cross_entropy(F.linear(states, words, bias)[:, :70], labels, reduction="sum")
    assert far.total.item() == pytest.approx(expected.item(), rel=1e-6)
    with torch.autocast("cpu", torch.bfloat16):
        low = masked_lm_loss(states, words, bias, labels, 70)
    assert low.total.dtype == torch.float32
    assert low.total.item() == pytest.approx(expected.item(), rel=1e-2)
    for own, other in zip(
        torch.autograd.grad(low.total, (states, words, bias)), torch.autograd.grad(expected, (states, words, bias)), strict=True
    ):
        assert own.dtype == torch.float32
        assert (own - other).abs().max() <= 0.05 * other.abs().max()


def test_a_second_backward_is_refused_rather_than_wrong() -> None:
    (states, words, bias), labels = problem(torch.float64)
    total = masked_lm_loss(states, words, bias, labels, 70).total
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        total.backward()


def test_evaluation_gives_the_loss_that_training_gives() -> None:
    (states, words, bias), labels = problem(torch.float64)
    trained = masked_lm_loss(states, words, bias, labels, 70)
    with torch.no_grad():
        plain = masked_lm_loss(states, words, bias, labels, 70)
    assert plain.total.item() == pytest.approx(trained.total.item(), rel=1e-13)


def test_a_batch_without_targets_has_zero_loss_and_zero_gradients() -> None:
    model = build_model("pretraining", CONFIG)
    empty = torch.empty(0, dtype=torch.long)
    batch = SimpleNamespace(packed=pack(5, 3), masked_positions=empty, masked_labels=empty, next_sentence_labels=None)
    part = model(batch)["mlm"]
    assert part.count == 0
    assert part.total.item() == 0.0
    part.total.backward()
    assert all(not p.grad.any() for p in model.parameters() if p.grad is not None)
    assert model.encoder.words.weight.grad is not None


@pytest.mark.parametrize("pairs", ["nsp", "sop"])
def test_sums_over_micro_batches_are_the_sum_over_the_batch(pairs: str) -> None:
    model = build_model("pretraining", CONFIG).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) * 0.1
    positions, labels = torch.tensor([1, 6, 7, 9]), torch.tensor([10, 20, 30, 40])
    coins = torch.tensor([0, 1])
    packed = pack(5, 6)

    def losses(packed: PackedSequences, positions: torch.Tensor, labels: torch.Tensor, coins: torch.Tensor) -> LossParts:
        parts: LossParts = model(
            SimpleNamespace(
                packed=packed,
                masked_positions=positions,
                masked_labels=labels,
                next_sentence_labels=coins,
                pair_part=pairs,
            )
        )
        return parts

    whole = losses(packed, positions, labels, coins)
    first = PackedSequences.from_lengths(packed.input_ids[:5], packed.token_type_ids[:5], torch.tensor([5]))
    second = PackedSequences.from_lengths(packed.input_ids[5:], packed.token_type_ids[5:], torch.tensor([6]))
    halves = [
        losses(first, positions[:1], labels[:1], coins[:1]),
        losses(second, positions[1:] - 5, labels[1:], coins[1:]),
    ]
    assert set(whole) == {"mlm", pairs}
    for name, count in (("mlm", 4), (pairs, 2)):
        assert whole[name].count == sum(half[name].count for half in halves) == count
        assert whole[name].total.item() == pytest.approx(sum(half[name].total.item() for half in halves), rel=1e-12)


def test_regression_is_squared_error_and_multi_label_is_binary_cross_entropy() -> None:
    packed = pack(5, 3)
    number = build_model("classification", CONFIG.changed(labels=("score",))).double()
    values = number.outputs(packed)
    part = number(SimpleNamespace(packed=packed, labels=torch.tensor([2.0, 4.5])))["classification"]
    assert part.count == 2
    assert part.correct is None
    assert part.total.item() == pytest.approx((values[0, 0].item() - 2) ** 2 + (values[1, 0].item() - 4.5) ** 2)
    several = build_model(
        "classification", CONFIG.changed(labels=("a", "b", "c"), problem_type="multi_label_classification")
    ).double()
    truth = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    logits = several.outputs(packed)
    part = several(SimpleNamespace(packed=packed, labels=truth))["classification"]
    by_hand = sum(
        math.log1p(math.exp(-z if y else z)) for z, y in zip(logits.flatten().tolist(), truth.flatten().tolist(), strict=True)
    )
    assert part.count == 6
    assert part.total.item() == pytest.approx(by_hand)


def test_choices_may_differ_in_number() -> None:
    model = build_model("choice", CONFIG).double()
    with torch.no_grad():
        model.head.classifier.weight *= 50
    packed = pack(3, 4, 5, 2, 6)
    scores = model.outputs(packed).flatten().tolist()
    part = model(SimpleNamespace(packed=packed, choices=(2, 3), labels=torch.tensor([1, 0])))["choice"]
    by_hand = -scores[1] + math.log(sum(map(math.exp, scores[:2]))) - scores[2] + math.log(sum(map(math.exp, scores[2:])))
    assert part.count == 2
    assert part.total.item() == pytest.approx(by_hand)


def test_a_span_loss_looks_at_the_sequences_own_tokens_alone() -> None:
    model = build_model("span", CONFIG).double()
    packed = pack(3, 7)
    logits = model.outputs(packed)
    part = model(SimpleNamespace(packed=packed, starts=torch.tensor([1, 0]), ends=torch.tensor([2, 6])))["span"]
    total = 0.0
    for begin, end, start, stop in ((0, 3, 1, 2), (3, 10, 0, 6)):
        own = logits[begin:end]
        total += (own[:, 0].logsumexp(0) - own[start, 0] + own[:, 1].logsumexp(0) - own[stop, 1]).item() / 2
    assert part.total.item() == pytest.approx(total)


@pytest.mark.parametrize("head", ["classification", "tagging", "span", "choice"])
def test_scores_that_are_compared_are_fp32_under_autocast(head: str) -> None:
    """Rounded to bf16, which has 128 numbers between 1 and 2, many of these would be equal."""
    model = build_model(head, CONFIG.changed(labels=("a", "b") if head in ("classification", "tagging") else None), seed=1).eval()
    last = next(part for name, part in model.head.named_modules() if name in ("classifier", "span"))
    assert isinstance(last, torch.nn.Linear)
    torch.nn.init.ones_(last.bias)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        scores = model.outputs(pack(*[3] * 150))
    assert scores.dtype == torch.float32
    assert len(scores[:, 0].unique()) > len(scores[:, 0].bfloat16().unique())
    with torch.no_grad():  # a whole model in bf16 stays one
        assert model.to(torch.bfloat16).outputs(pack(3, 4)).dtype == torch.bfloat16


def test_the_output_bias_starts_at_the_unigram() -> None:
    frequencies = np.zeros(70, dtype=np.int64)
    frequencies[[10, 20]] = 929, 1
    bias = unigram_bias(frequencies)
    assert bias[10].item() == pytest.approx(math.log(0.930), rel=1e-6)
    assert bias.exp().sum().item() == pytest.approx(1.0, rel=1e-6)
    model = build_model("masked_lm", CONFIG).eval()
    model.head.mlm.start_bias(bias)
    batch = SimpleNamespace(packed=pack(9), masked_positions=torch.tensor([2]), masked_labels=torch.tensor([10]))
    with torch.no_grad():
        assert model(batch)["mlm"].total.item() == pytest.approx(-math.log(0.930), abs=0.3)


def test_the_body_of_a_new_model_does_not_depend_on_its_head() -> None:
    one, other = build_model("span", CONFIG, seed=3), build_model("pretraining", CONFIG, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(one.encoder.parameters(), other.encoder.parameters(), strict=True))
