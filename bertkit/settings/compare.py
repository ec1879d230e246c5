"""Two settings objects -> what differs, and whether a run may go on in spite of it; settings -> YAML and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from bertkit.fields import Settings
from bertkit.settings import reading
from bertkit.settings.layers import keys, nest

S = TypeVar("S", bound=Settings)

# What says where the result goes, not what it is: never recorded, never compared.
UNRECORDED = frozenset({"output", "overwrite"})
# What may change between two starts of one run: none of it moves a weight.
MAY_CHANGE = frozenset(
    {"run.log_every", "run.eval_every", "run.save_every", "run.keep_checkpoints", "run.workers", "run.report_to"}
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not what it was."""

    key: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key}: {_show(self.before)} before, {_show(self.now)} now"


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def flat(settings: Settings) -> dict[str, Any]:
    """Every recorded setting by its dotted key, as plain JSON values."""
    tree = settings.model_dump(mode="json")
    found: dict[str, Any] = {}
    for key in keys(type(settings)):
        value: Any = tree
        for word in key.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if key.split(".")[0] not in UNRECORDED:
            found[key] = value
    return found


def given(settings: Settings) -> dict[str, Any]:
    """The recorded settings that some layer gave, by dotted key; those that took their default are left out."""
    named = set(_given_keys(settings))
    return {key: value for key, value in flat(settings).items() if key in named}


def _given_keys(settings: Settings, prefix: str = "") -> Iterator[str]:
    for name in settings.model_fields_set:
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from _given_keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def differences(before: Mapping[str, Any], now: Settings, *, resolved: Mapping[str, Any] | None = None) -> list[Difference]:
    """The settings that would change the result, were a run recorded as ``before`` to go on as ``now``.

    A setting that neither start gave is the same, whatever its default is by now. One that is given now may equal what
    was given before, or what the automatic value became (so ``--recipe RUN/settings.yaml`` goes on with the run).

    Args:
        before: What :func:`given` gave when the run started.
        now: The settings of today's command.
        resolved: What every value became then (:func:`flat`); None where the run never came so far.

    Returns:
        The differences, without those that may change freely (logging, evaluating, saving, workers).
    """
    todays, values, became = given(now), flat(now), resolved or {}
    found = []
    for key, value in values.items():
        if key in MAY_CHANGE or (key not in before and key not in todays):
            continue
        known = [place[key] for place in (before, became) if key in place]
        if key not in before and not became:
            known.append(_default(now, key))
        if value not in known:
            found.append(Difference(key, known[0] if known else None, value))
    return found


def _default(settings: Settings, key: str) -> Any:
    field = keys(type(settings))[key]
    value = None if field.is_required() else field.get_default(call_default_factory=True)
    return json.loads(json.dumps(value, default=str))


def fingerprint(settings: Settings) -> str:
    """16 hex digits of all that may not change between two starts of one run."""
    facts = {key: value for key, value in sorted(flat(settings).items()) if key not in MAY_CHANGE}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def with_values(settings: S, values: Mapping[str, Any]) -> S:
    """The same settings with some dotted keys set, checked again: what an automatic value became."""
    tree = {**flat(settings), **values}
    outside = {name: getattr(settings, name) for name in UNRECORDED if name in type(settings).model_fields}
    return type(settings).model_validate_json(json.dumps(nest(tree) | outside, default=str))


def fill(settings: S, values: Mapping[str, Any]) -> S:
    """The same settings, where those of ``values`` that no layer gave are set: weaker defaults that were known late.

    Unlike :func:`with_values` this leaves untouched settings as not given.
    """
    asked = given(settings)
    outside = {name: getattr(settings, name) for name in UNRECORDED & settings.model_fields_set}
    tree = {**values, **asked}
    return type(settings).model_validate_json(json.dumps(nest(tree) | outside, default=str))


class _Dumper(yaml.SafeDumper):
    """Quotes every text that ``reading.scalar`` would read as something else (PyYAML leaves ``1e5`` bare)."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = None if reading.scalar(value) == value else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(settings: Settings, *, command: str) -> str:
    """The resolved settings, without the output, as the YAML that ``--recipe`` takes to make the same run again."""
    body = {"command": command} | nest(flat(settings))
    text = yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10_000)
    return f"# Makes this run again: bertkit {command} --recipe settings.yaml\n{text}"
