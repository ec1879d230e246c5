"""EncoderConfig: what config.json says of a BERT encoder and its labels, read raw and checked, and written again.

transformers silently repairs an inconsistent ``id2label`` and loads relative positions as absolute ones, so the JSON is
read here as it stands: what cannot be served is refused by name, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bertkit.errors import ModelError, UsageError, nearest
from bertkit.model.activations import activation

_LABELLED = ("ForSequenceClassification", "ForTokenClassification")
SIZES: dict[str, tuple[int, int]] = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""Google's sizes: layers and width; a head has 64 columns, the inner layer four times the width."""

PROBLEM_TYPES = ("regression", "single_label_classification", "multi_label_classification")

_WHOLE = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
_SHARES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
# What the fields stand for where a file leaves them out: BertConfig's own defaults.
_DEFAULTS: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "classifier_dropout": None,
    "tie_word_embeddings": True,
}
# Fields that would change the mathematics, with the only value that means a plain encoder.
_PLAIN: dict[str, Any] = {
    "is_decoder": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "position_embedding_type": "absolute",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Every encoder field of ``BertConfig`` under its own name.

    Attributes:
        labels: The labels' names in the order of the head's outputs; None where the file states none.
        problem_type: One of :data:`PROBLEM_TYPES`, or None.
        pad_token_id: Whose embedding is zero in a new model and gets no gradient as an input; None for no such row.
        classifier_dropout: Dropout before a classifier; None means ``hidden_dropout_prob``.
        tie_word_embeddings: Is the masked-LM decoder the word embedding itself?
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    classifier_dropout: float | None = None
    tie_word_embeddings: bool = True
    labels: tuple[str, ...] | None = None
    problem_type: str | None = None

    @property
    def head_dropout(self) -> float:
        """The dropout before a classifier."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout

    @staticmethod
    def of_size(name: str, *, vocab_size: int, **changes: Any) -> EncoderConfig:
        """A new model's configuration, one of :data:`SIZES` (in any case).

        Raises:
            UsageError: No such size; the nearest are named.
        """
        if name.lower() not in SIZES:
            raise UsageError(f"There is no size {name!r}.{nearest(name, SIZES)}", hint=f"Sizes are {', '.join(SIZES)}.")
        layers, width = SIZES[name.lower()]
        made = EncoderConfig(
            vocab_size=vocab_size,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
        )
        return made.changed(**changes)

    def changed(self, **changes: Any) -> EncoderConfig:
        """The same with other values, checked.

        Raises:
            ModelError: A value cannot be.
        """
        made = replace(self, **changes)
        _check(made, "the settings of the model")
        return made

    @staticmethod
    def read(raw: Mapping[str, Any], where: str = "config.json") -> EncoderConfig:
        """Reads the object of a config.json.

        Raises:
            ModelError: A field has a wrong type or value, labels disagree, or the file describes another kind of model.
        """
        _refuse_other_models(raw, where)
        values = {name: raw.get(name, default) for name, default in _DEFAULTS.items()}
        for name in (*_SHARES, "layer_norm_eps", "initializer_range"):
            if isinstance(values[name], int) and not isinstance(values[name], bool):
                values[name] = float(values[name])
        made = EncoderConfig(**values, labels=read_labels(raw, where), problem_type=raw.get("problem_type"))
        _check(made, where)
        return made

    def to_json(self, *, architecture: str) -> dict[str, Any]:
        """The object that transformers 5 writes for a ``BertConfig``; labels too where they are stated."""
        written = {name: getattr(self, name) for name in _DEFAULTS}
        written |= {
            "architectures": [architecture],
            "model_type": "bert",
            "dtype": "float32",
            "add_cross_attention": False,
            "is_decoder": False,
            "use_cache": True,
            "bos_token_id": None,
            "eos_token_id": None,
        }
        if self.labels is not None:
            written["id2label"] = {str(i): name for i, name in enumerate(self.labels)}
            written["label2id"] = {name: i for i, name in enumerate(self.labels)}
        if self.problem_type is not None:
            written["problem_type"] = self.problem_type
        return written


def _refuse_other_models(raw: Mapping[str, Any], where: str) -> None:
    kind = raw.get("model_type", "bert")
    if kind != "bert":
        raise ModelError(f"model_type is {kind!r}, not 'bert'.", where=where, hint="Choose a BERT checkpoint.")
    for name, plain in _PLAIN.items():
        if raw.get(name, plain) not in (plain, None):
            raise ModelError(
                f"{name} is {raw[name]!r}; only {plain!r} is supported.", where=where, hint="Choose a plain BERT encoder."
            )
    for name in ("pruned_heads", "quantization_config"):
        if raw.get(name):
            raise ModelError(f"{name} is set; such checkpoints are not supported.", where=where)


def read_labels(raw: Mapping[str, Any], where: str) -> tuple[str, ...] | None:
    """The labels' names in order from ``id2label`` (keys may be strings), or None where none are stated.

    A classifier whose file states none has transformers' default, which it leaves out when it writes: two, without names.

    Raises:
        ModelError: ``id2label`` does not count 0 … n-1, or ``num_labels`` (or ``label2id``) says otherwise.
    """
    stated, count = raw.get("id2label"), raw.get("num_labels")
    if stated is None:
        classifies = any(str(name).endswith(_LABELLED) for name in raw.get("architectures") or ())
        count = 2 if count is None and classifies else count
        return None if count is None else tuple(f"LABEL_{i}" for i in range(count))
    try:
        numbered = {int(key): str(name) for key, name in stated.items()}
    except (AttributeError, TypeError, ValueError):
        raise ModelError(f"id2label must map numbers to names, not {stated!r}.", where=where) from None
    if sorted(numbered) != list(range(len(numbered))) or not numbered:
        raise ModelError(f"id2label must number its labels 0 … n-1, not {sorted(numbered)}.", where=where)
    if count is not None and count != len(numbered):
        raise ModelError(
            f"num_labels is {count}, but id2label has {len(numbered)} entries.", where=where, hint="Correct one of them."
        )
    names = tuple(numbered[i] for i in range(len(numbered)))
    back = raw.get("label2id")
    if isinstance(back, Mapping) and back and len(set(names)) == len(names) and len(back) != len(names):
        raise ModelError(
            f"id2label has {len(names)} entries, but label2id has {len(back)}.", where=where, hint="Correct one of them."
        )
    return names


_MOST = {"num_hidden_layers": 1024}


def _check(config: EncoderConfig, where: str) -> None:
    def wrong(name: str, must: str) -> ModelError:
        return ModelError(f"{name} must be {must}, not {getattr(config, name)!r}.", where=where)

    for name in _WHOLE:
        value = getattr(config, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise wrong(name, "a whole number of at least 1")
        if value > (most := _MOST.get(name, 1 << 24)):  # before memory or hours go to a number that is no model's
            raise wrong(name, f"{most} at most")
    for name in _SHARES:
        value = getattr(config, name)
        if value is not None and (not isinstance(value, float) or not 0 <= value < 1):
            raise wrong(name, "at least 0 and below 1")
    for name in ("layer_norm_eps", "initializer_range"):
        value = getattr(config, name)
        if not isinstance(value, float) or not 0 <= value < float("inf"):
            raise wrong(name, "a number of at least 0")
    if not isinstance(config.tie_word_embeddings, bool):
        raise wrong("tie_word_embeddings", "true or false")
    if config.problem_type is not None and config.problem_type not in PROBLEM_TYPES:
        raise wrong("problem_type", f"one of {', '.join(PROBLEM_TYPES)}")
    pad = config.pad_token_id
    if pad is not None and (not isinstance(pad, int) or isinstance(pad, bool) or not 0 <= pad < config.vocab_size):
        raise wrong("pad_token_id", f"null or an id below {config.vocab_size}")
    if config.hidden_size % config.num_attention_heads:
        raise ModelError(
            f"hidden_size {config.hidden_size} is no multiple of num_attention_heads {config.num_attention_heads}.", where=where
        )
    if not isinstance(config.hidden_act, str):
        raise wrong("hidden_act", "a name")
    activation(config.hidden_act, where=where)
