"""How far a device's attention lies from the formula in fp64, forward and backward, and what a row of padding does to others."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from bertkit.model.attention import attend_fused, lies_end_to_end
from bertkit.model.config import EncoderConfig
from bertkit.model.encoder import Encoder
from bertkit.packed import PackedSequences

LENGTHS = (7, 128, 1, 33, 512, 16, 100)  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Largest differences, as shares of the largest value of the reference.

    Attributes:
        kernel: ``variable-length`` (torch's, on CUDA) or ``plain``.
        forward: Of the result.
        backward: Of the gradients of queries, keys and values.
    """

    kernel: str
    forward: float
    backward: float

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.forward, self.backward)

    def as_dict(self) -> dict[str, object]:
        """By name."""
        return asdict(self)


def share_apart(found: Tensor, expected: Tensor) -> float:
    """The largest difference as a share of the largest expected value; infinite where something is not finite."""
    found = found.detach().to("cpu", torch.float64)
    if not bool(found.isfinite().all()):
        return float("inf")
    expected = expected.detach().to("cpu", torch.float64)
    return float((found - expected).abs().max() / expected.abs().max())


def attention_apart(device: torch.device, kind: torch.dtype, *, heads: int = 12, width: int = 64) -> Apart:
    """Attention of sequences of many lengths, forward and backward, beside fp64 on the CPU's plain path."""
    generator = torch.Generator().manual_seed(0)
    packed = made_sequences(LENGTHS, generator=generator)
    fused = torch.randn(packed.tokens, 3, heads, width, generator=generator).to(kind)
    slope = torch.randn(packed.tokens, heads, width, generator=generator).to(kind)
    made = []
    for place, dtype in ((torch.device("cpu"), torch.float64), (device, kind)):
        own = fused.to(place, dtype).requires_grad_()
        out = attend_fused(own, packed.to(place))
        made.append((out, *torch.autograd.grad(out, own, slope.to(place, dtype))))
    (expected, into), (found, own_into) = made
    here = lies_end_to_end(fused.to(device), 0.0)
    return Apart(
        kernel="variable-length" if here else "plain", forward=share_apart(found, expected), backward=share_apart(own_into, into)
    )


def empty_row_apart(device: torch.device, kind: torch.dtype) -> float:
    """How far the other rows of a padded batch move when one of nothing but padding comes among them; infinite with a NaN."""
    config = EncoderConfig.of_size("tiny", vocab_size=128)
    encoder = Encoder.of(config, seed=0).to(device).eval()
    ids = torch.arange(4 * 40, device=device).view(4, 40) % 120 + 5
    mask = (torch.arange(40, device=device) < torch.tensor([[40], [0], [13], [1]], device=device)).long()
    others = [0, 2, 3]
    with torch.no_grad(), torch.autocast(device.type, kind, enabled=kind != torch.float32):
        whole = encoder(ids, mask).to_padded()
        alone = encoder(ids[others], mask[others]).to_padded()
    return share_apart(whole[others], alone) if bool(whole.isfinite().all()) else float("inf")


def made_sequences(lengths: tuple[int, ...], *, generator: torch.Generator, words: int = 128) -> PackedSequences:
    """Sequences of these lengths, of words drawn evenly."""
    ids = torch.randint(5, words, (sum(lengths),), generator=generator)
    types = torch.tensor(list(itertools.chain.from_iterable([0] * (n // 2) + [1] * (n - n // 2) for n in lengths)))
    return PackedSequences.from_lengths(ids, types, torch.tensor(lengths))
