"""Two settings objects -> what differs, and whether a run may go on in spite of it; settings -> YAML and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from bertkit.fields import Settings
from bertkit.settings.layers import keys, nest

S = TypeVar("S", bound=Settings)

# What says where the result goes, not what it is: never recorded, never compared.
UNRECORDED = frozenset({"output", "overwrite"})
# What may change between two starts of one run: none of it moves a weight.
MAY_CHANGE = frozenset({"run.log_every", "run.eval_every", "run.save_every", "run.keep_checkpoints", "run.workers", "run.report_to"})


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


def differences(before: Mapping[str, Any], now: Settings, *, resolved: Mapping[str, Any] | None = None) -> list[Difference]:
    """The settings that would change the result, were a run recorded as ``before`` to go on as ``now``.

    Args:
        before: What :func:`flat` gave when the run started; a key that it lacks had its default.
        now: The settings of today's command.
        resolved: What automatic values became then; a value equal to it is no difference.

    Returns:
        The differences, without those that may change freely (logging, evaluating, saving, workers).
    """
    fields = keys(type(now))
    found = []
    for key, value in flat(now).items():
        if key in MAY_CHANGE:
            continue
        default = fields[key].get_default(call_default_factory=True) if key not in before else None
        old = before.get(key, json.loads(json.dumps(default, default=str)))
        if value != old and (resolved is None or key not in resolved or value != resolved[key]):
            found.append(Difference(key, old, value))
    return found


def fingerprint(settings: Settings) -> str:
    """16 hex digits of all that may not change between two starts of one run."""
    facts = {key: value for key, value in sorted(flat(settings).items()) if key not in MAY_CHANGE}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def with_values(settings: S, values: Mapping[str, Any]) -> S:
    """The same settings with some dotted keys set, checked again: what an automatic value became."""
    tree = {key: value for key, value in flat(settings).items()} | dict(values)
    outside = {name: getattr(settings, name) for name in UNRECORDED if name in type(settings).model_fields}
    return type(settings).model_validate_json(json.dumps(nest(tree) | outside, default=str))


def to_yaml(settings: Settings, *, command: str) -> str:
    """The resolved settings, without the output, as the YAML that ``--recipe`` takes to make the same run again."""
    body = {"command": command} | nest(flat(settings))
    text = yaml.safe_dump(body, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10_000)
    return f"# Makes this run again: bertkit {command} --recipe settings.yaml\n{text}"
