"""A WordPiece tokenizer as the files that transformers 5 loads: the keys it writes itself for a ``BertTokenizer``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bertkit.corpus.vocabulary import MAX_WORD, SPECIALS, Flags


def tokenizer_json(tokens: Sequence[str], flags: Flags) -> str:
    """The text of tokenizer.json: BERT's normalizer, pre-tokenizer and template, special tokens as added tokens."""
    ids = {token: i for i, token in enumerate(tokens) if token}
    cls, sep = ids["[CLS]"], ids["[SEP]"]
    added = [
        {
            "id": ids[token],
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in sorted((t for t in SPECIALS if t in ids), key=ids.__getitem__)
    ]
    full: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": flags.tokenize_chinese_chars,
            "strip_accents": flags.strip_accents,
            "lowercase": flags.lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_special("[CLS]", 0), _text("A", 0), _special("[SEP]", 0)],
            "pair": [_special("[CLS]", 0), _text("A", 0), _special("[SEP]", 0), _text("B", 1), _special("[SEP]", 1)],
            "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in (("[CLS]", cls), ("[SEP]", sep))},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": MAX_WORD,
            "vocab": ids,
        },
    }
    return json.dumps(full, ensure_ascii=False, indent=2) + "\n"


def _special(name: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": segment}}


def _text(name: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": segment}}


def tokenizer_config_json(flags: Flags, max_length: int) -> str:
    """The text of tokenizer_config.json; ``model_max_length`` is what makes a pipeline cut a long text."""
    config = {
        "backend": "tokenizers",
        "cls_token": "[CLS]",
        "do_lower_case": flags.lowercase,
        "mask_token": "[MASK]",
        "model_max_length": max_length,
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "strip_accents": flags.strip_accents,
        "tokenize_chinese_chars": flags.tokenize_chinese_chars,
        "tokenizer_class": "BertTokenizer",
        "unk_token": "[UNK]",
    }
    return json.dumps(config, ensure_ascii=False, indent=2) + "\n"
