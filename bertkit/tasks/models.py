"""Whole models: an encoder with a head, built new, loaded from a folder, and saved as transformers reads it.

The registry of heads is here: built-ins are listed, others register. Everything that trains goes through
:meth:`TaskModel.forward`, so that one wrapper (DDP) sees it all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from bertkit.errors import ModelError, UsageError, nearest
from bertkit.model.config import EncoderConfig
from bertkit.model.encoder import Encoder, padded_vocabulary
from bertkit.model.hf import LoadReport, export_weights, from_hf, load_into, read_config, read_weights, to_hf, write_model
from bertkit.model.hidden import Hidden
from bertkit.model.layers import draw_weights
from bertkit.notices import say
from bertkit.packed import PackedSequences
from bertkit.tasks.heads import Bare, Choice, Classification, Decoder, Head, MaskedLM, Pretraining, Span, Tagging
from bertkit.tasks.losses import LossParts

HeadMaker = Callable[[EncoderConfig], Head]


def _decoder(config: EncoderConfig) -> Decoder:
    return Decoder(
        width=config.hidden_size,
        size=config.vocab_size,
        rows=padded_vocabulary(config.vocab_size),
        act=config.hidden_act,
        epsilon=config.layer_norm_eps,
        tied=config.tie_word_embeddings,
    )


def label_count(config: EncoderConfig) -> int:
    """K: the labels that the configuration names; 2 where it names none, as in transformers."""
    return 2 if config.labels is None else len(config.labels)


def _classification(config: EncoderConfig) -> Head:
    count = label_count(config)
    problem = config.problem_type or ("regression" if count == 1 else "single_label_classification")
    return Classification(width=config.hidden_size, labels=count, problem=problem, dropout=config.head_dropout)


HEADS: dict[str, HeadMaker] = {
    "encoder": lambda config: Bare(width=config.hidden_size),
    "pretraining": lambda config: Pretraining(decoder=_decoder(config), width=config.hidden_size),
    "masked_lm": lambda config: MaskedLM(decoder=_decoder(config)),
    "classification": _classification,
    "tagging": lambda config: Tagging(width=config.hidden_size, labels=label_count(config), dropout=config.head_dropout),
    "span": lambda config: Span(width=config.hidden_size),
    "choice": lambda config: Choice(width=config.hidden_size, dropout=config.head_dropout),
}
_LABELLED = ("classification", "tagging")


def register_head(name: str, make: HeadMaker) -> None:
    """Adds a head of one's own.

    Raises:
        UsageError: The name is taken.
    """
    if name in HEADS:
        raise UsageError(f"There is a head {name!r} already.")
    HEADS[name] = make


def _maker(name: str) -> HeadMaker:
    if name not in HEADS:
        raise UsageError(f"There is no head {name!r}.{nearest(name, HEADS)}", hint=f"Heads are {', '.join(HEADS)}.")
    return HEADS[name]


class TaskModel(nn.Module):
    """An encoder with a head.

    Attributes:
        encoder: The body.
        head: The head.
        config: What both were made from.
        head_name: The head's name in :data:`HEADS`.
    """

    def __init__(self, encoder: Encoder, head: Head, *, config: EncoderConfig, head_name: str) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head
        self.config, self.head_name = config, head_name

    def forward(self, batch: Any) -> LossParts:
        """The loss parts of a batch, which has ``packed`` and what its head reads."""
        return self.head.losses(self.encoder.begin(batch.packed), batch)

    def outputs(self, packed: PackedSequences, positions: Tensor | None = None) -> Tensor:
        """The head's scores: ``[S, K]``, or by token ``[T, K]`` (``[P, K]`` at ``positions``) where :attr:`on_tokens`."""
        return self.head.outputs(self.encoder.begin(packed), positions)

    def hidden(self, packed: PackedSequences) -> Hidden:
        """The last hidden states, for what a head does not offer."""
        return self.encoder.begin(packed)

    @property
    def on_tokens(self) -> bool:
        """Are the outputs by token?"""
        return self.head.on_tokens

    def weights(self) -> dict[str, Tensor]:
        """Every tensor under the file's names and shapes."""
        return export_weights(self, vocab_size=self.config.vocab_size, bare=self.head.architecture == "BertModel")

    def moments_to_file(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Tensors by this model's parameter names (Adam's moments), under the file's names and shapes."""
        return to_hf(tensors, vocab_size=self.config.vocab_size)

    def moments_from_file(self, tensors: dict[str, Tensor], names: list[str]) -> dict[str, Tensor]:
        """The way back, for the parameters named.

        Raises:
            KeyError: A tensor of one of them is missing.
        """
        return from_hf(tensors, names, vocab_size=self.config.vocab_size)

    def config_json(self) -> dict[str, Any]:
        """The config.json of this model; labels only where the head has them (a span head's size is read off them)."""
        config = self.config if self.head_name in _LABELLED else self.config.changed(labels=None, problem_type=None)
        return config.to_json(architecture=self.head.architecture)

    def save(self, folder: Path) -> None:
        """Writes config.json and model.safetensors into an existing folder."""
        write_model(self.weights(), folder, self.config_json())


def build_model(head: str, config: EncoderConfig, *, seed: int = 0, save_memory: bool = False) -> TaskModel:
    """A new model, its weights drawn from ``seed``; the body's do not depend on the head.

    Raises:
        UsageError: No such head.
    """
    make = _maker(head)
    made = TaskModel(Encoder.of(config, seed=seed, save_memory=save_memory), make(config), config=config, head_name=head)
    draw_weights(made.head, seed=seed, deviation=config.initializer_range, prefix="head")
    return made


def load_model(
    folder: Path,
    head: str,
    *,
    labels: Sequence[str] | None = None,
    problem_type: str | None = None,
    new_head: bool = False,
    must_have_head: bool = False,
    seed: int = 0,
    save_memory: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> tuple[TaskModel, LoadReport]:
    """A model from a Hugging Face folder or a run.

    Args:
        folder: With config.json and weights.
        head: One of :data:`HEADS`; a head that the file does not have, or has in another size, is new, and said.
        labels: The labels' names of a labelled head; None takes the folder's own.
        problem_type: As config.json has it; None takes the folder's own.
        new_head: Start a new head even where one would fit (its labels mean something else).
        must_have_head: For evaluation and prediction: an untrained head is an error.
        seed: Of what is new.
        save_memory: Gradient checkpointing.
        changes: Fields of the configuration to change, such as its dropout; none that shapes a tensor.

    Raises:
        MissingError: No such folder.
        ModelError: No BERT, a damaged file, a body tensor missing; the head missing where it must be there.
        UsageError: No such head.
    """
    make = _maker(head)
    config = EncoderConfig.read(read_config(folder), str(folder / "config.json")).changed(**(changes or {}))
    if labels is not None:
        config = config.changed(labels=tuple(labels), problem_type=problem_type or config.problem_type)
    elif problem_type is not None:
        config = config.changed(problem_type=problem_type)
    model = TaskModel(Encoder.of(config, save_memory=save_memory), make(config), config=config, head_name=head)
    draw_weights(model.head, seed=seed, deviation=config.initializer_range, prefix="head")
    report = load_into(model, read_weights(folder), vocab_size=config.vocab_size, new_head=new_head, where=str(folder))
    _tell(report, head, folder, must_have_head=must_have_head)
    return model, report


def _tell(report: LoadReport, head: str, folder: Path, *, must_have_head: bool) -> None:
    for note in report.notes:
        say("decoder", note)
    if body := [name for name in report.unexpected if name.startswith("bert.encoder.")]:
        say(
            "unused-weights",
            f"{len(body)} tensors of {folder} have no place in a model of its config.json: {', '.join(body[:3])}, ….",
        )
    if report.trained or head == "encoder":
        return
    what = ", ".join(report.missing or report.new)
    if must_have_head:
        raise ModelError(
            f"The model has no trained {head} head of this size: {what} did not come from the file.",
            where=str(folder),
            hint="Choose a pretrained model that has one: fine-tuned ones have lost it."
            if head in ("masked_lm", "pretraining")
            else "Fine-tune it first with bertkit finetune, or choose a model that has one.",
        )
    part = "head" if report.new_head else "pooler"
    say("new-head", f"The {part} is new and has to be trained: {what} did not come from {folder}.")
