"""The commands by name, listed explicitly; a name that does nothing yet is not here."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit import __version__
from bertkit.cli import evaluate, fill_mask, finetune, predict, pretrain, quickstart, recipes, tasks, tokenizer

app = typer.Typer(name="bertkit", add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
_tokenizer = typer.Typer(help="Vocabularies.", no_args_is_help=True)
_recipes = typer.Typer(help="Presets that come with bertkit.", no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bertkit {__version__}")
        raise typer.Exit


@app.callback()
def bertkit(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """From a text file to a BERT, and from a BERT to a scored task, on the hardware that you have."""


app.command("quickstart")(quickstart.quickstart)
app.command("pretrain")(pretrain.pretrain)
app.command("finetune")(finetune.finetune)
app.command("eval")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("fill-mask")(fill_mask.fill_mask)
_tokenizer.command("train")(tokenizer.train)
app.add_typer(_tokenizer, name="tokenizer")
app.command("tasks")(tasks.tasks)
for _name, _function in (("ls", recipes.ls), ("show", recipes.show), ("cp", recipes.cp)):
    _recipes.command(_name)(_function)
app.add_typer(_recipes, name="recipes")
