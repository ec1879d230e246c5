"""Flags, ``--set``, a recipe and defaults -> one settings object, strongest first; all that is wrong in one error."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, TypeVar

from bertkit.errors import SettingsError, UsageError
from bertkit.fields import Settings
from bertkit.settings import reading, recipes
from bertkit.settings.layers import Layer, Problem, assignments, build, flatten
from bertkit.settings.reading import Entry

S = TypeVar("S", bound=Settings)

# Old names of settings that were renamed: {"old.name": "new.name"}.
ALIASES: dict[str, str] = {}
# Settings that name Python code, with their flags.
_CODE = {"task_file": "--task-file", "metrics": "--metric"}


def resolve(
    model: type[S],
    *,
    command: str,
    flags: Mapping[str, Entry] | None = None,
    sets: Sequence[str] = (),
    recipe: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    defaults_of: str = "",
) -> S:
    """The checked settings of one command.

    Args:
        model: ``PretrainSettings``, ``FinetuneSettings``, …
        command: The command's name; a recipe of another command is refused.
        flags: Values of flags by dotted key, each with the flag's name; only those that were given.
        sets: ``--set`` texts, ``section.name=value``; they and the flags have one power, and contradict where both name a key.
        recipe: A preset's name or a YAML file.
        defaults: The weakest layer, by dotted key.
        defaults_of: Where those are from, for messages.

    Raises:
        SettingsError: Unknown keys, wrong values, contradictions: all of them, with places (exit 2).
        MissingError: There is no such recipe (exit 4).
    """
    problems: list[Problem] = []
    layers: list[Layer] = [{key: Entry(value, defaults_of) for key, value in (defaults or {}).items()}]
    if recipe is not None:
        layers.append(_recipe(recipe, model, command, problems))
    strongest = assignments(sets, model, ALIASES, problems)
    for key, entry in (flags or {}).items():
        if key in strongest and strongest[key].value != entry.value:
            problems.append(Problem(f"{key} is given twice, with different values.", f"{entry.where}; {strongest[key].where}"))
        strongest[key] = entry
    layers.append(strongest)
    return build(model, layers, problems)


def _recipe(name: str, model: type[Settings], command: str, problems: list[Problem]) -> Layer:
    path = recipes.find(name)
    top = reading.read_file(path)
    meant = top.pop("command", None)
    if meant is not None and meant != command:
        raise SettingsError(
            f"This recipe is for `bertkit {meant}`, not `bertkit {command}`.",
            where=top.where["command"],
            hint=f"bertkit {meant} --recipe {name}",
        )
    return flatten(top, model, ALIASES, problems)


def refuse_code(recipe: str | None, named: Container[str]) -> None:
    """Refuses Python code that a recipe alone names: it may be another person's.

    Args:
        recipe: The recipe, or None.
        named: The settings that the person gave beside it.

    Raises:
        UsageError: It names code that the person does not (exit 2).
    """
    for key, flag in _CODE.items():
        value = None if recipe is None or key in named else recipe_value(recipe, key)
        names = [str(name) for name in (value if isinstance(value, list) else [value]) if name is not None]
        if names:
            raise UsageError(
                f"The recipe names Python code, {', '.join(names)}, which is run only where you name it yourself.",
                where=recipe,
                hint=f"Add {' '.join(f'{flag} {name}' for name in names)}",
            )


def recipe_value(name: str, key: str) -> Any:
    """A top-level value of a recipe (``task``), or None: what must be known before its model is."""
    return reading.read_file(recipes.find(name)).get(key)
