"""YAML text -> dotted keys with their lines. In: text of a recipe or of ``--set``. Out: ``Entry`` values. Nothing is checked
against a model here.

Only the plain part of YAML is read: mappings, lists, texts, numbers, booleans and null. Scalars are YAML 1.2's (``no`` is
a text, ``1e-4`` a number), no tag builds an object, and size, depth and expansion are limited, so an untrusted recipe
can do nothing but be refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bertkit.errors import MissingError, SettingsError

MAX_BYTES = 1_000_000
MAX_NODES = 20_000  # after aliases are expanded: nine lines of aliases can otherwise mean a billion values
MAX_DEPTH = 24

_INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {word: value for value, words in ((True, "true True TRUE"), (False, "false False FALSE")) for word in words.split()}
_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of one setting: ``where`` is what to name in a message (``recipe.yaml, line 3`` or ``--lr``)."""

    value: Any
    where: str


class _Texts(yaml.SafeLoader):
    """Resolves nothing itself: every plain scalar stays text for ``_scalar``."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (overrides PyYAML's class attribute)


class _Walk:
    """Turns nodes into values, counting as it goes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes = 0

    def where(self, node: yaml.Node) -> str:
        return f"{self.name}, line {node.start_mark.line + 1}" if node.start_mark else self.name

    def value(self, node: yaml.Node, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise SettingsError("This file expands to more values than any recipe has.", where=self.where(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in _PLAIN_TAGS:
            raise SettingsError(f"The tag {_short(node.tag)} is not read: settings are plain values.", where=self.where(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, depth + 1) for child in node.value]
        return Mapping(self, node, depth)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        explicit = node.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:null")
        if explicit:
            raise SettingsError(f"The tag {_short(node.tag)} is not read: settings are plain values.", where=self.where(node))
        if node.style is not None:  # quoted or a block: a text, whatever it looks like
            return node.value
        return scalar(node.value)


class Mapping(dict[str, Any]):
    """A mapping of a file that remembers where each key stands (``lines``)."""

    def __init__(self, walk: _Walk, node: yaml.Node, depth: int) -> None:
        super().__init__()
        self.where: dict[str, str] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise SettingsError("A key of the settings is a word.", where=walk.where(key_node))
            if key in self:
                raise SettingsError(f"{key} stands twice, first at {self.where[key]}.", where=walk.where(key_node))
            self.where[key] = walk.where(key_node)
            self[key] = walk.value(value_node, depth + 1)


def scalar(text: str) -> Any:
    """A plain YAML 1.2 scalar: null, a boolean, a whole number, a number (``1e-4`` too) or a text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) < 40:
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return text


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


def parse(text: str, name: str) -> Any:
    """The value of one YAML document, mappings as :class:`Mapping`.

    Raises:
        SettingsError: Not YAML, too large, a tag, or a key that stands twice; with ``name`` and the line.
    """
    if len(text) > MAX_BYTES:
        raise SettingsError(f"Settings are at most {MAX_BYTES:,} characters; this has {len(text):,}.", where=name)
    try:
        node = yaml.compose(text, Loader=_Texts)
        return None if node is None else _Walk(name).value(node, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise SettingsError(f"This is not YAML: {error.problem or 'it cannot be read'}.", where=where) from None
    except yaml.YAMLError as error:
        raise SettingsError(f"This is not YAML: {str(error).splitlines()[0]}.", where=name) from None
    except RecursionError:
        raise SettingsError("This file is nested deeper than any recipe.", where=name) from None


def read_file(path: Path) -> Mapping:
    """The top mapping of a settings file.

    Raises:
        MissingError: There is no such file.
        SettingsError: It cannot be read as settings.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise MissingError(
            f"There is no recipe {path}.", hint="`bertkit recipes ls` lists those that come with bertkit."
        ) from None
    except OSError as error:
        raise SettingsError(f"The recipe {path} cannot be read: {error.strerror}.") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"This file is not UTF-8 (byte {error.start}).", where=str(path)) from None
    top = parse(text, str(path))
    if not isinstance(top, Mapping):
        raise SettingsError("A settings file is a mapping of names to values.", where=f"{path}, line 1")
    return top
