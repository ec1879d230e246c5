"""Products in bf16 on a CPU are made over a few rows more, which change nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bertkit.model import attention, encoder
from bertkit.model.encoder import Encoder
from bertkit.model.layers import draw_weights
from bertkit.model.rows import rows_for
from bertkit.packed import PackedSequences

CPU = torch.device("cpu")
LENGTHS = torch.tensor([34, 16, 1, 17, 40, 128, 77, 128])
TOKENS, ROWS = 441, 448


def test_counts_come_again_where_shapes_cost() -> None:
    assert [rows_for(count, CPU) for count in (1, TOKENS, 3301)] == [1, TOKENS, 3301]  # in fp32 nothing is compiled
    with torch.autocast("cpu", torch.bfloat16):
        assert [rows_for(count, CPU) for count in (0, 1, 8, 9, TOKENS, 3301, 4096)] == [0, 8, 8, 16, ROWS, 3328, 4096]
        found = {rows_for(count, CPU) for count in range(2048, 4096)}
        assert len(found) == 33
        assert all(count <= rows_for(count, CPU) <= count * 1.04 for count in range(256, 5000))
        assert rows_for(TOKENS, torch.device("cuda")) == TOKENS


def computed(model: Encoder, packed: PackedSequences) -> dict[str, Tensor]:
    """What heads see and every gradient, in bf16."""
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.begin(packed)
        chosen, first = hidden.at(torch.arange(0, TOKENS, 7)), hidden.first()
        begun, whole = model.begin(packed).states, model(packed, attentions=True, layers=True)
        (chosen.float().square().sum() + first.float().abs().sum() + whole.states.float().sin().sum()).backward()
    seen = {"chosen": chosen, "first": first, "states": whole.states, "begun": begun}
    seen |= {f"layer {number}": states for number, states in enumerate(whole.layers)}
    seen |= {f"attention {number}": weights for number, weights in enumerate(whole.attentions)}
    return {name: each.detach().float() for name, each in seen.items()} | {
        name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None
    }


def test_the_rows_behind_the_tokens_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Encoder(vocab_size=100, width=64, depth=3, heads=2, inner=128, dropout=0.0, attention_dropout=0.0, pad_id=None)
    draw_weights(model, seed=1, deviation=0.1)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1, 100, (TOKENS,), generator=generator)
    packed = PackedSequences.from_lengths(ids, torch.randint(0, 2, (TOKENS,), generator=generator), LENGTHS)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.embed(packed).shape == (ROWS, 64)
    found = computed(model, packed)
    monkeypatch.setattr(encoder, "rows_for", lambda count, device: count)
    monkeypatch.setattr(attention, "shapes_cost", lambda device: False)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.embed(packed).shape == (TOKENS, 64)
    expected = computed(model, packed)
    assert found.keys() == expected.keys()
    assert found["words.weight"][0].count_nonzero() == 0  # the rows behind are of word 0, which no text here has
    for name, each in expected.items():
        assert found[name].shape == each.shape, name
        assert torch.allclose(found[name], each, rtol=0, atol=2**-6 * float(each.abs().max())), name
