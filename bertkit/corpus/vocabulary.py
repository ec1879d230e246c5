"""vocab.txt and tokenizer files in, the tokens and flags that they state out; nothing is tokenized here.

A token's id is its line's number. Lines end at ``\\n`` only: two tokens of google's Chinese vocabulary hold U+2028.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.errors import MissingError, ModelError, UsageError
from bertkit.notices import say

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_WORD = 100
"""Characters of a word from which on it is one ``[UNK]`` (above, that is: a word of 100 is still cut)."""

_BRACKETED = re.compile(r"\[.*\]|<.*>", re.DOTALL)
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """BERT's switches; ``strip_accents`` None means "as lowercase"."""

    lowercase: bool
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True


def cut_lines(raw: bytes, where: str) -> tuple[str, ...]:
    """The tokens of a vocab.txt, blank and repeated ones included, each of those said once with its lines.

    Raises:
        ModelError: The file is not UTF-8 or is empty.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{where} is not UTF-8.", where=f"{where}, line {line}, byte offset {error.start}") from None
    lines = text.removeprefix(_BOM).split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise ModelError(f"{where} holds no token.", where=where)
    if all(line.endswith("\r") for line in lines):  # written on Windows; a carriage return is part of no token
        lines = [line[:-1] for line in lines]
    _say_odd_lines(lines, where)
    return tuple(lines)


def _say_odd_lines(tokens: list[str], where: str) -> None:
    blank = [number for number, token in enumerate(tokens, 1) if not token]
    last: dict[str, int] = {}
    repeated = []
    for number, token in enumerate(tokens, 1):
        if token and token in last:
            repeated.append(f"{token!r} on lines {last[token]} and {number}")
        last[token] = number
    if blank:
        say("vocabulary-blank", f"{where} has blank lines ({_some(blank)}); each keeps its number, and no text gives it.")
    if repeated:
        say("vocabulary-repeated", f"{where} repeats tokens ({_some(repeated)}); the last line's number is the token's id.")


def _some(items: list[Any]) -> str:
    return ", ".join(map(str, items[:5])) + (f" and {len(items) - 5} more" if len(items) > 5 else "")


def read_vocabulary(path: Path, *, cased: bool | None) -> tuple[tuple[str, ...], bytes, Flags]:
    """Tokens, the bytes of vocab.txt and the flags of a vocab.txt file or a model folder.

    What tokenizer_config.json states stands above tokenizer.json's normalizer, as in transformers; ``cased`` stands
    above both.

    Raises:
        MissingError: No such file, or the folder has neither vocab.txt nor tokenizer.json.
        ModelError: A file is damaged, or is no BERT tokenizer's.
        UsageError: Nothing says whether the vocabulary is cased, and it has capitals.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        text_file = path / "vocab.txt"
        config, full = _read_json(folder / "tokenizer_config.json"), _read_json(folder / "tokenizer.json")
    elif path.exists():
        text_file, config, full = path, {}, {}
        if path.name == "vocab.txt":
            config, full = _read_json(folder / "tokenizer_config.json"), _read_json(folder / "tokenizer.json")
        elif path.suffix == ".json":
            raise UsageError(f"{path} is no vocab.txt.", hint="Name the folder that holds it, or a vocab.txt.")
    else:
        raise MissingError(f"There is no vocabulary at {path}.", where=str(path))
    listed = _listed(full, folder / "tokenizer.json") if full else None
    if text_file.is_file():
        raw = text_file.read_bytes()
        tokens = cut_lines(raw, str(text_file))
        _must_agree(tokens, listed, text_file)
    elif listed is not None:
        tokens = tuple(listed)
        raw = "".join(f"{token}\n" for token in tokens).encode()
    else:
        raise MissingError(f"{path} has no vocab.txt and no tokenizer.json.", where=str(path))
    return tokens, raw, _flags(config, full, tokens, cased, str(path))


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not JSON: {error}.", where=str(path)) from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds no JSON object.", where=str(path))
    return value


def _listed(full: dict[str, Any], path: Path) -> list[str]:
    """The tokens of a tokenizer.json in the order of their ids; a gap is a blank."""
    model = full.get("model")
    if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise ModelError(f"{path} is no WordPiece tokenizer's.", where=f"{path}, model.type")
    for key, expected in (("continuing_subword_prefix", "##"), ("max_input_chars_per_word", MAX_WORD), ("unk_token", "[UNK]")):
        if model.get(key, expected) != expected:
            raise ModelError(f"{path}: {key} is {model[key]!r}; BERT's is {expected!r}.", where=f"{path}, model.{key}")
    for key, kind in (("normalizer", "BertNormalizer"), ("pre_tokenizer", "BertPreTokenizer")):
        part = full.get(key)
        if not isinstance(part, dict) or part.get("type") != kind or part.get("clean_text") is False:
            raise ModelError(f"{path}: the {key} is not BERT's ({kind}).", where=f"{path}, {key}")
    ids: dict[str, Any] = dict(model["vocab"])
    for added in full.get("added_tokens") or []:
        if added.get("content") not in ids:
            say("added-token", f"{path}: the added token {added.get('content')!r} is read as text, like any other word.")
            ids[added["content"]] = added["id"]
    if not all(type(i) is int and 0 <= i < 4 * len(ids) + 1000 for i in ids.values()):
        raise ModelError(f"{path}: the ids of the vocabulary are not line numbers.", where=f"{path}, model.vocab")
    tokens = [""] * (max(ids.values(), default=-1) + 1)
    for token, i in ids.items():
        tokens[i] = token
    return tokens


def _must_agree(tokens: tuple[str, ...], listed: list[str] | None, path: Path) -> None:
    if listed is None:
        return
    # Of a repeated token a tokenizer.json knows only the last line, and gaps where the others stand.
    last = {token: i for i, token in enumerate(tokens)}
    for i, token in enumerate(listed):
        if token and last.get(token, -1 if i < len(tokens) else i) != i:
            raise ModelError(
                f"{path} and tokenizer.json disagree about {token!r}.",
                where=f"{path}, id {i}",
                hint="Remove the one that is wrong.",
            )


def _flags(config: dict[str, Any], full: dict[str, Any], tokens: tuple[str, ...], cased: bool | None, where: str) -> Flags:
    normalizer = full.get("normalizer") or {}
    stated = {"lowercase": config.get("do_lower_case"), "strip_accents": config.get("strip_accents")}
    stated["chinese"] = config.get("tokenize_chinese_chars")
    inside = {"lowercase": normalizer.get("lowercase"), "strip_accents": normalizer.get("strip_accents")}
    inside["chinese"] = normalizer.get("handle_chinese_chars")
    # transformers builds the normalizer of a BertTokenizer from tokenizer_config.json, of any other from tokenizer.json.
    first, second = (stated, inside) if str(config.get("tokenizer_class") or "Bert").startswith("Bert") else (inside, stated)
    lowercase, strip, chinese = (first[key] if first[key] is not None else second[key] for key in first)
    for name, value in (("do_lower_case", lowercase), ("strip_accents", strip), ("tokenize_chinese_chars", chinese)):
        if not (value is None or isinstance(value, bool)):
            raise ModelError(f"{where}: {name} is {value!r}, not true or false.", where=f"{where}, tokenizer_config.json")
    if cased is not None and lowercase is not None and lowercase == cased:
        say("cased", f"{where} says {'un' if lowercase else ''}cased; --{'' if cased else 'un'}cased was asked for and is taken.")
    if cased is not None:
        lowercase = not cased
    elif lowercase is None:
        lowercase = _guess_lowercase(tokens, where)
    return Flags(lowercase=bool(lowercase), strip_accents=strip, tokenize_chinese_chars=chinese is not False)


def _guess_lowercase(tokens: tuple[str, ...], where: str) -> bool:
    for number, token in enumerate(tokens, 1):
        if token != token.lower() and not _BRACKETED.fullmatch(token):
            raise UsageError(
                f"{where} does not say whether it is cased, and it has capitals ({token!r}).",
                where=f"{where}, vocabulary line {number}",
                hint="Give --cased or --uncased.",
            )
    return True
