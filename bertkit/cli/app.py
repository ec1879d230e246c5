"""The commands by name, listed explicitly; a name that does nothing yet is not here."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from bertkit import __version__
from bertkit.cli import (
    bench,
    corpus,
    embed,
    evaluate,
    explain,
    fill_mask,
    finetune,
    predict,
    pretrain,
    quickstart,
    recipes,
    tasks,
    tokenizer,
)
from bertkit.cli.helping import Command

app = typer.Typer(
    name="bertkit", add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, rich_markup_mode=None
)
_bench = typer.Typer(help="Measure speed and memory here.", no_args_is_help=True, rich_markup_mode=None)
_corpus = typer.Typer(help="Texts and their token stores.", no_args_is_help=True, rich_markup_mode=None)
_tokenizer = typer.Typer(help="Vocabularies.", no_args_is_help=True, rich_markup_mode=None)
_recipes = typer.Typer(help="Presets that come with bertkit.", no_args_is_help=True, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bertkit {__version__}")
        raise typer.Exit


@app.callback()
def bertkit(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """From a text file to a BERT, and from a BERT to a scored task, on the hardware that you have."""


app.command("quickstart", cls=Command)(quickstart.quickstart)
app.command("pretrain", cls=Command)(pretrain.pretrain)
app.command("finetune", cls=Command)(finetune.finetune)
app.command("eval", cls=Command)(evaluate.evaluate)
app.command("predict", cls=Command)(predict.predict)
app.command("fill-mask", cls=Command)(fill_mask.fill_mask)
app.command("explain", cls=Command)(explain.explain)
app.command("embed", cls=Command)(embed.embed)
_corpus.command("build", cls=Command)(corpus.build)
_corpus.command("inspect", cls=Command)(corpus.inspect)
_corpus.command("ls", cls=Command)(corpus.ls)
_corpus.command("rm", cls=Command)(corpus.rm)
app.add_typer(_corpus, name="corpus")
_tokenizer.command("train", cls=Command)(tokenizer.train)
app.add_typer(_tokenizer, name="tokenizer")
_bench.command("pretrain", cls=Command)(bench.pretrain)
_bench.command("finetune", cls=Command)(bench.finetune)
_bench.command("predict", cls=Command)(bench.predict)
app.add_typer(_bench, name="bench")
app.command("tasks", cls=Command)(tasks.tasks)
for _name, _function in (("ls", recipes.ls), ("show", recipes.show), ("cp", recipes.cp)):
    _recipes.command(_name, cls=Command)(_function)
app.add_typer(_recipes, name="recipes")


@cache
def program() -> Any:
    """The command of all commands, built once: reading every function's flags takes some hundredths of a second."""
    return get_command(app)
