"""The encoder: BERT's embeddings and post-LayerNorm layers over packed tokens, and what heads see of it.

In come ids, out come hidden states; labels, losses and files are others' business (Devlin et al. 2019; google-research/bert).

Shapes: T tokens, S sequences, L the longest of them, H the width, h heads, P chosen positions, V the vocabulary's size
(V' where it is rounded up to a multiple of 64, which matrix units like); R rows that products are made over, T or a little
more (see :mod:`bertkit.model.rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertkit.errors import InputError
from bertkit.model.activations import Activation, activation
from bertkit.model.attention import Layout, Padded, attend_fused, attention_weights, layout_of
from bertkit.model.config import EncoderConfig
from bertkit.model.hidden import Hidden
from bertkit.model.layers import Embedding, Linear, add_dropped, draw_weights, dropout, kept
from bertkit.model.rows import lengthened, rows_for, shortened
from bertkit.notices import say
from bertkit.packed import PackedSequences

VOCABULARY_STEP = 64


def padded_vocabulary(size: int) -> int:
    """V rounded up to a multiple of 64; the rows added are zero and stay so."""
    return -(-size // VOCABULARY_STEP) * VOCABULARY_STEP


@cache
def _compiled(act: Activation) -> Callable[..., Tensor]:
    """:meth:`Layer.finish` of an activation as a function of tensors alone, compiled."""

    def finish(
        context: Tensor,
        states: Tensor,
        mixed: Tensor | None,
        lowered: Tensor | None,
        epsilon: float,
        mix: Tensor,
        mix_bias: Tensor,
        mix_norm: Tensor,
        mix_norm_bias: Tensor,
        up: Tensor,
        up_bias: Tensor,
        down: Tensor,
        down_bias: Tensor,
        norm: Tensor,
        norm_bias: Tensor,
    ) -> Tensor:
        def settled(base: Tensor, x: Tensor, keep: Tensor | None, weight: Tensor, bias: Tensor) -> Tensor:
            return F.layer_norm(base + (x if keep is None else x * keep), weight.shape, weight, bias, epsilon)

        states = settled(states, F.linear(context, mix, mix_bias), mixed, mix_norm, mix_norm_bias)
        return settled(states, F.linear(act(F.linear(states, up, up_bias)), down, down_bias), lowered, norm, norm_bias)

    return torch.compile(finish, dynamic=True)


class Layer(nn.Module):
    """One layer: attention, then two matrices; each with dropout, the sum with its input, and LayerNorm after it."""

    def __init__(
        self, *, width: int, heads: int, inner: int, act: str, dropout: float, attention_dropout: float, epsilon: float
    ) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.act = activation(act)
        self._compiled: Callable[..., Tensor] | None = None
        self.qkv = Linear(width, 3 * width, stacked=3 * heads)  # each head's queries, keys, values in one product
        self.mix = Linear(width, width)
        self.mix_norm = nn.LayerNorm(width, eps=epsilon)
        self.up = Linear(width, inner)
        self.down = Linear(inner, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)

    def fused(self, states: Tensor) -> Tensor:
        """Queries, keys and values, ``[R, 3, h, d]``."""
        return self.qkv(states).view(states.shape[0], 3, self.heads, -1)  # type: ignore[no-any-return]

    def context(self, states: Tensor, packed: PackedSequences, layout: Layout | Padded | None) -> Tensor:
        """``[R, H]``: what each token gathers from its sequence."""
        share = self.attention_dropout if self.training else 0.0
        return attend_fused(self.fused(states), packed, dropout=share, layout=layout).reshape(states.shape)

    def compile_finish(self) -> None:
        """Has :meth:`finish` compiled, once for all layers of one activation and any count of tokens."""
        self._compiled = _compiled(self.act)

    def finish(self, context: Tensor, states: Tensor) -> Tensor:
        """The rest of the layer, which knows no sequence: any selection of tokens may go through it."""
        if self._compiled is not None and self.training:
            # Drawn outside, in the order of the plain way: a compiler would draw otherwise.
            mixed, lowered = (kept(states, self.dropout) for _ in range(2))
            mix, norm, up, down = self.mix, self.mix_norm, self.up, self.down
            first = (mix.weight, mix.bias, norm.weight, norm.bias)
            second = (up.weight, up.bias, down.weight, down.bias, self.norm.weight, self.norm.bias)
            return self._compiled(context, states, mixed, lowered, norm.eps, *first, *second)
        states = self.mix_norm(add_dropped(states, self.mix(context), self.dropout, self.training))
        inner = self.act(self.up(states))
        return self.norm(add_dropped(states, self.down(inner), self.dropout, self.training))  # type: ignore[no-any-return]

    def forward(self, states: Tensor, packed: PackedSequences, layout: Layout | Padded | None) -> Tensor:
        """``[R, H]`` to ``[R, H]``."""
        return self.finish(self.context(states, packed, layout), states)


class Encoder(nn.Module):
    """BERT without a head. :meth:`of` builds it from a configuration.

    Args:
        vocab_size: V.
        width: H.
        depth: How many layers.
        heads: Attention heads; H is a multiple of it.
        inner: Width of the inner layer.
        act: Name of the activation.
        dropout: Share dropped of embeddings and of each part's output.
        attention_dropout: Share dropped of the attention weights.
        positions: The longest sequence.
        types: Count of segment types; with one, every token is of segment 0.
        epsilon: LayerNorm's.
        pad_id: Whose embedding gets no gradient as an input, or None.
        save_memory: Recompute each layer in the backward pass (gradient checkpointing).
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        width: int,
        depth: int,
        heads: int,
        inner: int,
        act: str = "gelu",
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        positions: int = 512,
        types: int = 2,
        epsilon: float = 1e-12,
        pad_id: int | None = 0,
        save_memory: bool = False,
    ) -> None:
        super().__init__()
        self.vocab_size, self.width, self.heads, self.pad_id = vocab_size, width, heads, pad_id
        self.dropout, self.save_memory = dropout, save_memory
        self.words = Embedding(padded_vocabulary(vocab_size), width)
        self.positions = Embedding(positions, width)
        self.types = Embedding(types, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.layers = nn.ModuleList(
            Layer(
                width=width,
                heads=heads,
                inner=inner,
                act=act,
                dropout=dropout,
                attention_dropout=attention_dropout,
                epsilon=epsilon,
            )
            for _ in range(depth)
        )
        self._one_segment_checked = types > 1

    @staticmethod
    def of(config: EncoderConfig, *, seed: int | None = None, save_memory: bool = False) -> Encoder:
        """The encoder of a configuration; its weights are drawn from ``seed``, or left unset for a file to fill."""
        made = Encoder(
            vocab_size=config.vocab_size,
            width=config.hidden_size,
            depth=config.num_hidden_layers,
            heads=config.num_attention_heads,
            inner=config.intermediate_size,
            act=config.hidden_act,
            dropout=config.hidden_dropout_prob,
            attention_dropout=config.attention_probs_dropout_prob,
            positions=config.max_position_embeddings,
            types=config.type_vocab_size,
            epsilon=config.layer_norm_eps,
            pad_id=config.pad_token_id,
            save_memory=save_memory,
        )
        if seed is not None:
            draw_weights(made, seed=seed, deviation=config.initializer_range, prefix="encoder")
        return made

    @torch.no_grad()
    def settle_new_weights(self) -> None:
        """Zeroes the rows behind the vocabulary and the padding token's."""
        self.words.weight[self.vocab_size :] = 0.0
        if self.pad_id is not None:
            self.words.weight[self.pad_id] = 0.0

    def embed(self, packed: PackedSequences) -> Tensor:
        """``[R, H]``: the sum of word, position and segment embeddings, normed, with dropout.

        Raises:
            InputError: A sequence is longer than the positions; both numbers are named.
        """
        if packed.longest > self.positions.num_embeddings:
            raise InputError(
                f"A text has {packed.longest} tokens, but the model has {self.positions.num_embeddings} positions.",
                hint=f"Cut the text, or use windows of at most {self.positions.num_embeddings} tokens.",
            )
        rows = rows_for(packed.tokens, packed.input_ids.device)
        words = F.embedding(lengthened(packed.input_ids, rows), self.words.weight, padding_idx=self.pad_id)
        summed = words + self._segments(packed, rows) + self.positions(lengthened(packed.position_ids, rows))
        return dropout(self.norm(summed), self.dropout, self.training)

    def _segments(self, packed: PackedSequences, rows: int) -> Tensor:
        if self.types.num_embeddings > 1:
            return self.types(lengthened(packed.token_type_ids, rows))  # type: ignore[no-any-return]
        if not self._one_segment_checked:
            # Waits for the device once, in the first batch; on the CPU until there is something to say.
            second = bool(packed.token_type_ids.any())
            self._one_segment_checked = second or packed.input_ids.device.type != "cpu"
            if second:
                say("one-segment", "The model has one segment type (type_vocab_size 1): both texts of a pair get segment 0.")
        return self.types.weight

    def begin(self, packed: PackedSequences) -> Hidden:
        """The states, with the last layer left for :class:`Hidden` to finish where a head asks."""
        layout = layout_of(packed, self.heads)
        states = self.embed(packed)
        for layer in self.layers[:-1]:
            states = self._run_part(layer, states, packed, layout)
        last = self.layers[-1]
        assert isinstance(last, Layer)
        context = self._run_part(last.context, states, packed, layout)

        def finish(positions: Tensor | None) -> Tensor:
            if positions is None:
                return shortened(self._run_part(last.finish, context, states), packed.tokens)
            count = positions.shape[0]
            here = lengthened(positions, rows_for(count, positions.device))
            finished = self._run_part(last.finish, context.index_select(0, here), states.index_select(0, here))
            return shortened(finished, count)

        return Hidden(packed=packed, words=self.words.weight, vocab_size=self.vocab_size, _finish=finish)

    def _run_part(self, part: Callable[..., Tensor], *inputs: object) -> Tensor:
        if self.save_memory and self.training and torch.is_grad_enabled():
            return checkpoint(part, *inputs, use_reentrant=False)  # type: ignore[no-any-return]
        return part(*inputs)

    def forward(
        self,
        packed: PackedSequences | Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        attentions: bool = False,
        layers: bool = False,
    ) -> Hidden:
        """Runs every layer.

        Args:
            packed: A packed batch, or ``input_ids`` ``[S, L]`` padded as a tokenizer gives them.
            attention_mask: ``[S, L]``, 0 for padding; only with ``input_ids``.
            token_type_ids: ``[S, L]``; only with ``input_ids``.
            attentions: Give each layer's attention weights too (computed the plain way, slowly).
            layers: Give the states before and after each layer too.

        Raises:
            InputError: A sequence is longer than the positions.
        """
        if isinstance(packed, Tensor):
            if packed.shape[1] > self.positions.num_embeddings:
                raise InputError(
                    f"The batch has {packed.shape[1]} columns, but the model has {self.positions.num_embeddings} positions."
                )
            packed = PackedSequences.from_padded(packed, attention_mask, token_type_ids)
        layout = layout_of(packed, self.heads)
        tokens = packed.tokens
        states = self.embed(packed)
        passed, weights = [shortened(states, tokens)], []
        for layer in self.layers:
            assert isinstance(layer, Layer)
            if attentions:
                weights.append(attention_weights(shortened(layer.fused(states), tokens), packed))
            states = self._run_part(layer, states, packed, layout)
            passed.append(shortened(states, tokens))
        return Hidden(
            packed=packed,
            words=self.words.weight,
            vocab_size=self.vocab_size,
            attentions=tuple(weights),
            layers=tuple(passed) if layers else (),
            _states=passed[-1],
        )
