"""``bertkit recipes ls|show|cp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.session import perform

if TYPE_CHECKING:
    from bertkit.jobs.console import Console
    from bertkit.jobs.outcome import Outcome

Name = Annotated[str, typer.Argument(metavar="NAME", help="A preset's name.")]
Target = Annotated[str | None, typer.Argument(metavar="FILE", help="Where to; unset: NAME.yaml here.")]


def ls(json: flags.Json = False) -> None:
    """List the presets that come with bertkit."""

    def job(console: Console) -> Outcome:
        from bertkit.jobs.outcome import Outcome
        from bertkit.settings.recipes import recipes

        found = recipes()
        console.table([(recipe.name, recipe.purpose) for recipe in found], header=("recipe", "what for"))
        return Outcome(extra={"recipes": [{"name": recipe.name, "purpose": recipe.purpose} for recipe in found]})

    perform("recipes ls", job)


def show(name: Name, json: flags.Json = False) -> None:
    """Print a preset."""

    def job(console: Console) -> Outcome:
        from bertkit.jobs.outcome import Outcome
        from bertkit.settings.recipes import find

        path = find(name)
        text = path.read_text(encoding="utf-8")
        console.result(text.rstrip("\n"))
        return Outcome(output=path, extra={"text": text})

    perform("recipes show", job)


def cp(name: Name, target: Target = None, json: flags.Json = False, quiet: flags.Quiet = False) -> None:
    """Copy a preset, to change it; a file that is there is left alone."""

    def job(console: Console) -> Outcome:
        from pathlib import Path

        from bertkit.errors import FolderError
        from bertkit.jobs.outcome import Outcome
        from bertkit.settings.recipes import find

        source = find(name)
        path = Path(target or source.name)
        if path.is_dir():
            path = path / source.name
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(source.read_text(encoding="utf-8"))
        except FileExistsError:
            raise FolderError("This file is there already.", where=str(path), hint="Name another file.") from None
        console.result(path)
        return Outcome(output=path)

    perform("recipes cp", job, quiet=quiet)
