"""Layers of dotted keys -> one checked settings object. In: flags, ``--set``, recipe, defaults, weakest first. Out: the object,
or one error that names every unknown key, wrong value and contradiction, each with its place and the nearest right name.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from bertkit.errors import SettingsError, nearest
from bertkit.fields import Settings
from bertkit.settings import reading
from bertkit.settings.reading import Entry

S = TypeVar("S", bound=Settings)
Layer = dict[str, Entry]

# Words of the flags that no setting resembles.
_SHORT = {"lr": "learning_rate", "batch_size": "size", "mlm_probability": "probability", "mixed_precision": "precision"}
_SHORT |= {"num_train_epochs": "epochs", "doc_stride": "stride", "max_seq_length": "max_length", "max_steps": "steps"}
# How the command line gives what has no default.
# What must be given, as the command line names it.
_GIVEN_BY = {"inputs.corpus": "--corpus", "model": "MODEL", "files": "FILE", "text": "TEXT", "paths": "PATH", "texts": "A text"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    message: str
    where: str | None = None

    def __str__(self) -> str:
        return f"{self.message} ({self.where})" if self.where else self.message


def section_of(annotation: Any) -> type[Settings] | None:
    """The settings model that a field's annotation names, if it is a section."""
    candidates = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, Settings):
            return candidate
    return None


def keys(model: type[Settings], prefix: str = "") -> dict[str, Any]:
    """Every setting of a model by its dotted name: ``{"masking.random_share": FieldInfo, …}``."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        section = section_of(field.annotation)
        if section is None:
            found[prefix + name] = field
        else:
            found |= keys(section, f"{prefix}{name}.")
    return found


def unknown_key(key: str, known: Iterable[str]) -> str:
    """``"There is no setting 'x'. Did you mean 'y'?"``: by the whole name, else by its last word."""
    known = list(known)
    hint = nearest(key, known)
    if not hint:
        word = key.rsplit(".", 1)[-1].replace("-", "_")
        word = _SHORT.get(word, word)
        lasts: dict[str, list[str]] = {}
        for name in known:
            lasts.setdefault(name.rsplit(".", 1)[-1], []).append(name)
        near = lasts.get(word) or []
        hint = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
        if not hint and (close := nearest(word, lasts)):
            best = close.split("'")[1]
            hint = f" Did you mean {' or '.join(map(repr, lasts[best][:3]))}?"
    return f"There is no setting {key!r}.{hint}"


def flatten(
    tree: reading.Mapping, model: type[Settings], aliases: Mapping[str, str], problems: list[Problem], prefix: str = ""
) -> Layer:
    """The entries of a file's mapping by dotted key; what has no place in ``model`` is added to ``problems``."""
    known = keys(model)
    layer: Layer = {}
    _flatten(tree, prefix, known, aliases, layer, problems)
    return layer


def _flatten(
    tree: reading.Mapping, prefix: str, known: dict[str, Any], aliases: Mapping[str, str], layer: Layer, problems: list[Problem]
) -> None:
    for word, value in tree.items():
        key, where = prefix + word, tree.where[word]
        key = aliases.get(key, key)
        if key in known:
            if key in layer:
                problems.append(Problem(f"{key} stands twice, first at {layer[key].where}.", where))
            layer[key] = Entry(value, where)
        elif any(name.startswith(key + ".") for name in known):
            if isinstance(value, reading.Mapping):
                _flatten(value, key + ".", known, aliases, layer, problems)
            elif value is not None:
                problems.append(Problem(f"{key} is a section: its settings stand below it, indented.", where))
        elif isinstance(value, reading.Mapping) and value and any(f"{key}.{inner}" in aliases for inner in value):
            _flatten(value, key + ".", known, aliases, layer, problems)
        else:
            problems.append(Problem(unknown_key(key, known), where))


def assignments(texts: Sequence[str], model: type[Settings], aliases: Mapping[str, str], problems: list[Problem]) -> Layer:
    """The layer that ``--set a.b=c`` gives; values are read as in YAML."""
    known = keys(model)
    layer: Layer = {}
    for text in texts:
        name, equals, raw = text.partition("=")
        where = f"--set {name.strip()}"
        if not equals:
            problems.append(Problem(f"--set takes section.name=value, not {text!r}.", "--set"))
            continue
        written = name.strip().replace("-", "_")
        key = aliases.get(written, written)
        if key not in known:
            problems.append(Problem(unknown_key(key, known), where))
            continue
        try:
            value = reading.parse(raw, where) if raw.strip()[:1] in ("[", "{", '"', "'") else reading.scalar(raw.strip())
        except SettingsError as error:
            problems.append(Problem(error.message, where))
            continue
        layer[key] = Entry(value, where)
    return layer


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """``{"a.b": 1}`` as ``{"a": {"b": 1}}``."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return tree


def _message(error: Mapping[str, Any], key: str) -> str:
    kind, given = error["type"], error.get("input")
    if kind == "missing":
        return f"{_GIVEN_BY.get(key, key)} is needed."
    if kind == "too_long":
        return f"{key} takes {error['ctx']['max_length']} at most, not {error['ctx']['actual_length']}."
    text = str(error["msg"])
    for prefix in ("Value error, ", "Input "):
        text = text.removeprefix(prefix)
    if kind == "value_error":
        return f"{key} {text}" if text.startswith("is ") else text if text.startswith(key) else f"{key}: {text}"
    hint = ""
    if kind in ("literal_error", "enum") and isinstance(given, str):
        expected = str(error.get("ctx", {}).get("expected", ""))
        hint = nearest(given, [word.strip(" '") for word in expected.replace(" or ", ", ").split(",")])
    return f"{key} {text}, not {json.dumps(given, ensure_ascii=False, default=str)[:80]}.{hint}"


def _errors(error: ValidationError, layer: Layer, known: Mapping[str, Any]) -> Iterator[tuple[str, Problem]]:
    for item in error.errors(include_url=False):
        words = [str(word) for word in item["loc"]]
        if item["type"] == "missing" and ".".join(words) not in known:  # a whole section: name what in it is needed
            inner = [name for name, field in known.items() if name.startswith(".".join(words) + ".") and field.is_required()]
            words = inner[0].split(".") if inner else words
        key = next((".".join(words[:n]) for n in range(len(words), 0, -1) if ".".join(words[:n]) in known), ".".join(words))
        # A section's own check has the section as its place: point at the first of its settings that was given.
        entry = layer.get(key) or next((e for k, e in layer.items() if key and k.startswith(key + ".")), None)
        where = entry.where if entry else key if item["type"] == "missing" and key in _GIVEN_BY else None
        yield key, Problem(_message(item, key or "these settings"), where)


def build(model: type[S], layers: Sequence[Layer], problems: list[Problem]) -> S:
    """The checked object of ``layers``, weakest first; all that is wrong, ``problems`` from before included, in one error.

    Raises:
        SettingsError: Anything is unknown, of a wrong type or contradictory.
    """
    merged: Layer = {}
    for layer in layers:
        merged.update(layer)
    known = keys(model)
    settings: S | None = None
    wrong: set[str] = set()
    for key, entry in merged.items():
        if not _is_text(entry.value):
            wrong.add(key)
            problems.append(Problem(f"{key} holds bytes that are not UTF-8.", entry.where))
    for _ in range(3):  # without what is wrong, the rest is checked again, so that contradictions come out at once too
        kept = {key: entry.value for key, entry in merged.items() if not _within(key, wrong)}
        try:
            # By way of JSON, where strict types still take a list for a tuple and a text for a path.
            settings = model.model_validate_json(json.dumps(nest(kept)))
            break
        except ValidationError as error:
            found = [(key, problem) for key, problem in _errors(error, merged, known) if key not in wrong]
            wrong.update(key for key, _ in found)  # a needed one that was left out as wrong is told once
            problems += [problem for _, problem in found]
    if settings is not None:
        problems.extend(_contradictions(settings, merged, wrong))
    if problems or settings is None:
        raise _as_error(problems)
    return settings


def _is_text(value: Any) -> bool:
    """Can it be written as UTF-8? Bytes of the command line that are not come as lone surrogates."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _within(key: str, wrong: set[str]) -> bool:
    return any(key == bad or key.startswith(bad + ".") or not bad for bad in wrong)


def _contradictions(settings: Settings, merged: Layer, wrong: set[str]) -> Iterator[Problem]:
    check = getattr(settings, "contradictions", None)
    for involved, message in check() if check else ():
        if not any(_within(key, wrong) for key in involved):
            places = dict.fromkeys(merged[key].where for key in involved if key in merged)
            yield Problem(message, "; ".join(places) or None)


def _as_error(problems: Sequence[Problem]) -> SettingsError:
    unique = list(dict.fromkeys(problems))
    if len(unique) == 1:
        return SettingsError(unique[0].message, where=unique[0].where)
    lines = "\n".join(f"  - {problem}" for problem in unique)
    return SettingsError(f"{len(unique)} settings cannot be right:\n{lines}")
