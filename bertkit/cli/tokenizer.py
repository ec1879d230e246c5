"""``bertkit tokenizer train FILES…``."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.session import checked, perform

Files = Annotated[list[str] | None, typer.Argument(metavar="FILE…", help="Text files, folders or patterns.")]

MinFrequency = Annotated[
    int | None,
    flags.flag("--min-frequency", help="Times that two pieces must stand together (2).", panel="Data and model", metavar="N"),
]


def train(
    files: Files = None,
    vocab_size: flags.VocabSize = None,
    min_frequency: MinFrequency = None,
    cased: flags.Cased = None,
    documents: flags.Documents = None,
    encoding_errors: flags.EncodingErrors = None,
    text_field: flags.TextField = None,
    output: flags.Output = None,
    overwrite: flags.Overwrite = False,
    recipe: flags.Recipe = None,
    set_: flags.Set = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train a WordPiece vocabulary on text.

    The same text and settings give the same bytes every time.
    """
    given = flags.given(
        ("files", "FILE", files),
        ("vocab_size", "--vocab-size", vocab_size),
        ("min_frequency", "--min-frequency", min_frequency),
        ("cased", "--cased/--uncased", cased),
        ("corpus.documents", "--documents", documents),
        ("corpus.encoding_errors", "--encoding-errors", encoding_errors),
        ("corpus.text_field", "--text-field", text_field),
        ("output", "--output", output),
        ("overwrite", "--overwrite", overwrite),
    )
    from bertkit.settings.tools import TokenizerTrainSettings

    settings = checked(TokenizerTrainSettings, command="tokenizer train", flags=given, sets=set_, recipe=recipe)
    from bertkit.jobs.tokenizer import train_tokenizer as job  # slow, and not needed to refuse wrong settings

    perform("tokenizer train", lambda console: job(settings, console), quiet=quiet)
