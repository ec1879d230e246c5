"""``bertkit quickstart``."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.session import checked, perform

Text = Annotated[str | None, typer.Argument(metavar="TEXT", help="A text file, documents parted by blank lines.")]


def quickstart(
    text: Text = None,
    seed: flags.Seed = None,
    output: flags.Output = None,
    overwrite: flags.Overwrite = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train, fine-tune and score a tiny BERT: some minutes.

    The text is Python's own help, or the file that you name (9 documents at least).
    """
    given = flags.given(
        ("text", "TEXT", text), ("seed", "--seed", seed), ("output", "--output", output), ("overwrite", "--overwrite", overwrite)
    )
    from bertkit.settings.tools import QuickstartSettings

    settings = checked(QuickstartSettings, command="quickstart", flags=given)
    from bertkit.jobs.quickstart import quickstart as job  # slow, and not needed to refuse wrong settings

    perform("quickstart", lambda console: job(settings, console), quiet=quiet)
