"""The presets that come with bertkit. In: a name or a file's path. Out: the file. Reads no model and loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import MissingError, nearest

FOLDER = Path(__file__).parent.parent / "recipes"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One preset: its name, its file, and the first line of its opening comment."""

    name: str
    path: Path
    purpose: str


def recipes() -> list[Recipe]:
    """All presets, by name."""
    return [Recipe(path.stem, path, _purpose(path)) for path in sorted(FOLDER.glob("*.yaml"))]


def _purpose(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()


def find(name: str) -> Path:
    """The file of a preset's name, or of a path (anything with a separator or a YAML ending).

    Raises:
        MissingError: There is none; the nearest names are said.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name or "\\" in name:
        if not Path(name).is_file():
            raise MissingError(
                f"There is no recipe file {name}.", hint="`bertkit recipes ls` lists those that come with bertkit."
            )
        return Path(name)
    known = {recipe.name: recipe.path for recipe in recipes()}
    if name in known:
        return known[name]
    raise MissingError(f"There is no recipe {name!r}.{nearest(name, known)}", hint="`bertkit recipes ls` lists them.")
