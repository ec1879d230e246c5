"""What a command's ``--set`` takes: every setting with its kind of value, its default and its sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic_core import PydanticUndefined

from bertkit.fields import Settings
from bertkit.settings.layers import keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One setting.

    Attributes:
        key: Its dotted name.
        takes: The values it takes, as a person writes them: ``number``, ``mlm+nsp|mlm``.
        default: None where the machine, the data or another setting decides.
        description: One sentence.
    """

    key: str
    takes: str
    default: Any
    description: str


def listed(model: type[Settings], defaults: Mapping[str, Any] | None = None) -> Iterator[Listed]:
    """Every setting of a command in its order; ``defaults`` by dotted key stand above the model's own."""
    for key, field in keys(model).items():
        default = None if field.default is PydanticUndefined else field.default
        yield Listed(
            key=key,
            takes=_takes(field.annotation),
            default=(defaults or {}).get(key, default),
            description=field.description or "",
        )


_WORDS = {bool: "true|false", int: "whole number", float: "number", str: "text"}


def _takes(annotation: Any) -> str:
    if annotation in _WORDS:
        return _WORDS[annotation]
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    if hasattr(annotation, "__metadata__"):  # Annotated[what it takes, how it is checked]
        return _takes(annotation.__origin__)
    if get_origin(annotation) is dict:
        return "{name: number}"
    inner = [part for part in get_args(annotation) if part not in (type(None), Ellipsis)]
    if get_origin(annotation) is tuple:
        return f"list of {_takes(inner[0])}"
    return "|".join(dict.fromkeys(_takes(part) for part in inner)) or str(annotation)
