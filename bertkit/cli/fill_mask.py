"""``bertkit fill-mask MODEL TEXT…``."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.session import checked, perform

ModelArgument = Annotated[str | None, typer.Argument(metavar="MODEL", help="A run folder, a BERT folder or a hub name.")]
Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT…", help="Texts with [MASK]; none: the lines of stdin.")]
Top = Annotated[int | None, flags.flag("--top", help="Words for each mask (5).", panel="Data and model", metavar="N")]


def fill_mask(
    model: ModelArgument = None,
    texts: Texts = None,
    top: Top = None,
    cased: flags.Cased = None,
    set_: flags.Set = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Say which words a model would put for [MASK]."""
    given = flags.given(
        ("model", "MODEL", model), ("texts", "TEXT", texts), ("top", "--top", top), ("cased", "--cased/--uncased", cased)
    )
    from bertkit.settings.commands import FillMaskSettings

    settings = checked(FillMaskSettings, command="fill-mask", flags=given, sets=set_)
    from bertkit.jobs.fill_mask import fill_mask as job  # slow, and not needed to refuse wrong settings

    perform("fill-mask", lambda console: job(settings, console), quiet=quiet)
