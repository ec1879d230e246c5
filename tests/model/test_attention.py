"""Attention, layout and dropout by their definitions: no kernel may see across sequences, none may make a NaN."""

from __future__ import annotations

import itertools

import pytest
import torch

from bertkit.errors import InputError
from bertkit.model.attention import Layout, _rectangle, attend, attend_fused, layout_of
from bertkit.model.config import EncoderConfig
from bertkit.model.encoder import Encoder
from bertkit.model.layers import add_dropped, dropout, keep_mask
from bertkit.notices import collecting
from bertkit.packed import PackedSequences

CONFIG = EncoderConfig(
    vocab_size=70, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, max_position_embeddings=60
)


def pack(*lengths: int) -> PackedSequences:
    total = sum(lengths)
    return PackedSequences.from_lengths(torch.arange(total) % 64 + 5, torch.arange(total) % 2, torch.tensor(lengths))


@pytest.mark.parametrize("padded", [False, True], ids=["grouped", "padded"])  # the CPU's way and, with torch's kernel, CUDA's
@pytest.mark.parametrize("lengths", [(7,), (5, 5, 5), (1, 33, 16, 17, 2, 33), (16, 15, 1)])
def test_attend_is_the_formula_over_the_block_diagonal(lengths: tuple[int, ...], padded: bool) -> None:
    packed = pack(*lengths)
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(packed.tokens, 3, 8, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3))
    scores = torch.einsum("ihd,jhd->hij", q, k) / 8**0.5
    weights = scores.masked_fill(~packed.dense_mask(), -torch.inf).softmax(-1)
    expected = torch.einsum("hij,jhd->ihd", weights, v)
    found = attend(q, k, v, packed, layout=_rectangle(packed) if padded else None)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    slope = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    for own, other in zip(
        torch.autograd.grad(found, (q, k, v), slope), torch.autograd.grad(expected, (q, k, v), slope), strict=True
    ):
        torch.testing.assert_close(own, other, rtol=1e-12, atol=1e-12)


def test_sequences_of_like_length_are_computed_together() -> None:
    layout = layout_of(pack(33, 16, 1, 17, 40), 2)
    assert isinstance(layout, Layout)
    assert [(g.count, g.length, g.mask is None) for g in layout.groups] == [(2, 16, False), (1, 17, True), (2, 40, False)]
    assert torch.equal(layout.spread[layout.back], torch.arange(107 * 2))
    assert torch.equal(layout.gather[layout.scatter], torch.arange(107 * 3 * 2))


def test_a_sequence_does_not_depend_on_its_company() -> None:
    encoder = Encoder.of(CONFIG, seed=1).double().eval()
    lengths = (7, 31, 2, 16)
    together = encoder(pack(*lengths)).per_sequence()
    whole = pack(*lengths)
    for start, end, states in zip(whole.boundaries[:-1], whole.boundaries[1:], together, strict=True):
        alone = PackedSequences.from_lengths(
            whole.input_ids[start:end], whole.token_type_ids[start:end], (end - start).long().view(1)
        )
        torch.testing.assert_close(encoder(alone).states, states, rtol=1e-12, atol=1e-12)


def test_the_last_layer_finished_where_asked_is_the_same() -> None:
    encoder = Encoder.of(CONFIG, seed=1).double().eval()
    packed = pack(7, 31, 2)
    whole = encoder(packed)
    lazy = encoder.begin(packed)
    torch.testing.assert_close(lazy.first(), whole.states[[0, 7, 38]])
    torch.testing.assert_close(lazy.at(torch.tensor([3, 39])), whole.at(torch.tensor([3, 39])))
    torch.testing.assert_close(lazy.states, whole.states)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_of_nothing_but_padding_is_finite_and_alone(dtype: torch.dtype) -> None:
    encoder = Encoder.of(CONFIG, seed=1).eval()
    ids = torch.arange(24).view(4, 6) + 5
    mask = torch.tensor([[1] * 6, [0] * 6, [1, 1, 1, 0, 0, 0], [1] * 6])
    with torch.no_grad(), torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        found = encoder(ids, mask).to_padded()
        without = encoder(ids[[0, 2, 3]], mask[[0, 2, 3]]).to_padded()
    assert torch.isfinite(found).all()
    limit = 1e-5 if dtype == torch.float32 else 0.05
    assert (found[[0, 2, 3]] - without).abs().max() <= limit * without.abs().max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_near_and_its_gradients_are_finite(dtype: torch.dtype) -> None:
    encoder = Encoder.of(CONFIG, seed=1).train()
    packed = pack(5, 17)
    with torch.autocast("cpu", dtype):
        states = encoder(packed).states
    assert states.dtype == torch.float32
    states.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in encoder.parameters() if p.grad is not None)


def test_saving_memory_changes_nothing() -> None:
    made = []
    for save_memory in (False, True):
        encoder = Encoder.of(CONFIG, seed=1, save_memory=save_memory).train()
        torch.manual_seed(5)
        hidden = encoder.begin(pack(5, 17))
        (hidden.first().square().sum() + hidden.at(torch.tensor([8])).sum()).backward()
        made.append([p.grad for p in encoder.parameters()])
    for own, other in itertools.chain(zip(*made, strict=True)):
        torch.testing.assert_close(own, other)


def test_too_long_a_text_names_both_numbers() -> None:
    encoder = Encoder.of(CONFIG, seed=1)
    with pytest.raises(InputError, match=r"61.*60"):
        encoder(pack(61))
    with pytest.raises(InputError, match=r"61.*60"):
        encoder(torch.ones(1, 61, dtype=torch.long))


def test_one_segment_type_reads_every_text_as_segment_0_and_says_so_once() -> None:
    encoder = Encoder.of(CONFIG.changed(type_vocab_size=1), seed=1).eval()
    packed = pack(5, 17)
    plain = PackedSequences.from_lengths(packed.input_ids, torch.zeros_like(packed.input_ids), torch.tensor([5, 17]))
    with collecting() as said:
        expected = encoder(plain).states
        assert not said
        found = [encoder(packed).states for _ in range(2)]
    assert [notice.kind for notice in said] == ["one-segment"]
    assert torch.equal(found[0], expected)


def test_new_weights_are_as_bert_starts_and_keyed_by_the_seed() -> None:
    config = EncoderConfig.of_size("tiny", vocab_size=1000)
    one, again, other = (Encoder.of(config, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    assert not torch.equal(one.positions.weight, other.positions.weight)
    weight = one.layers[0].up.weight  # 65 536 values: the standard error of their deviation is 0.02 / sqrt(2 * 65536)
    assert abs(float(weight.detach().std()) - 0.02) < 3 * 0.02 / (2 * weight.numel()) ** 0.5
    assert not one.words.weight[0].any()
    assert not one.words.weight[1000:].any()
    assert not one.layers[0].up.bias.any()
    assert bool((one.norm.weight == 1).all())


def test_building_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    Encoder.of(CONFIG, seed=1)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("share", [0.1, 0.5, 0.0001])
def test_dropout_drops_its_share_independently_and_keeps_the_mean(share: float) -> None:
    torch.manual_seed(7)
    shape = torch.Size((1001, 403))
    keep, scale = keep_mask(shape, share, torch.float32)
    count = shape.numel()
    sigma = (share * (1 - share) / count) ** 0.5
    assert set(keep.unique().tolist()) <= {0.0, 1.0}
    assert abs(float(keep.mean()) - (1 - share)) < 3 * sigma + 1 / 65536
    lost = 1 - keep
    for shift in (1, 2, 3, 4):  # neighbours come from one 64-bit number: their joint share must be the square
        joint = float((lost[:, shift:] * lost[:, :-shift]).mean())
        assert abs(joint - share**2) < 5 * share / count**0.5 + 2 * share / 65536
    assert scale * float(round((1 - round(share * 65536) / 65536) * 65536)) == pytest.approx(65536)


@pytest.mark.parametrize("share", [0.99999, 1 - 2**-53])
def test_dropout_of_nearly_all_drops_nearly_all(share: float) -> None:
    torch.manual_seed(7)
    keep, scale = keep_mask(torch.Size((1000, 1000)), share, torch.float32)
    assert float(keep.sum()) <= 1e6 / 65536 + 5 * (1e6 / 65536) ** 0.5
    assert scale == 65536


def test_attention_with_dropout_has_the_slope_of_what_it_computes() -> None:
    packed = pack(3, 5, 17)
    generator = torch.Generator().manual_seed(3)
    fused = torch.randn(25, 3, 2, 4, generator=generator, dtype=torch.float64).requires_grad_()

    def drawn_alike(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(11)
        return attend_fused(x, packed, dropout=0.4)

    assert not torch.allclose(drawn_alike(fused), attend_fused(fused, packed))
    assert torch.autograd.gradcheck(drawn_alike, (fused,), fast_mode=True)


def test_attention_with_dropout_keeps_the_mean() -> None:
    packed = pack(3, 5)
    fused = torch.randn(8, 3, 2, 4, generator=torch.Generator().manual_seed(3))
    torch.manual_seed(11)
    drawn = torch.stack([attend_fused(fused, packed, dropout=0.3) for _ in range(800)])
    error = drawn.std(0) / 800**0.5
    assert bool(((drawn.mean(0) - attend_fused(fused, packed)).abs() < 5 * error + 1e-6).all())


def test_adding_what_dropout_leaves_is_the_sum() -> None:
    base, x = (torch.randn(64, 64, requires_grad=True) for _ in range(2))
    torch.manual_seed(11)
    found = add_dropped(base, x, 0.3, True)
    torch.manual_seed(11)
    expected = base + dropout(x, 0.3, True)
    torch.testing.assert_close(found, expected)
    slope = torch.randn(64, 64)
    for own, other in zip(
        torch.autograd.grad(found, (base, x), slope), torch.autograd.grad(expected, (base, x), slope), strict=True
    ):
        torch.testing.assert_close(own, other)


def test_the_padding_token_as_an_input_gets_no_gradient() -> None:
    ids = torch.tensor([5, 0, 6])
    for pad_id in (0, None):
        encoder = Encoder.of(CONFIG.changed(pad_token_id=pad_id), seed=1)
        encoder(PackedSequences.from_lengths(ids, torch.zeros_like(ids), torch.tensor([3]))).states[0, 0].backward()
        assert encoder.words.weight.grad is not None
        assert bool(encoder.words.weight.grad[0].any()) == (pad_id is None)


def test_dropout_gradient_is_its_mask() -> None:
    x = torch.randn(64, 64, requires_grad=True)
    out = dropout(x, 0.3, True)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(out.detach(), x.detach() * x.grad)
    assert dropout(x, 0.3, False) is x
