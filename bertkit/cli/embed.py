"""``bertkit embed FILE…``."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.session import checked, perform

_PANEL = "Data and model"
Files = Annotated[list[str] | None, typer.Argument(metavar="FILE…", help="Texts, one a line; tables; - for stdin.")]
Pooling = Annotated[
    str | None, flags.flag("--pooling", help="Of a text's states: their mean, or [CLS]'s.", panel=_PANEL, metavar="mean|cls")
]
Layer = Annotated[
    int | None,
    flags.flag("--layer", help="0: the embeddings; -1 (the last), -2, … from the end.", panel=_PANEL, metavar="N"),
]
Tokens = Annotated[bool, flags.flag("--tokens", help="A vector for each token; into Parquet.", panel=_PANEL)]
Normalize = Annotated[bool, flags.flag("--normalize", help="Vectors of length 1.", panel=_PANEL)]
Replace = Annotated[bool, flags.flag("--overwrite", help="Replace the output.", panel="Every command")]


def embed(
    files: Files = None,
    model: flags.Model = None,
    text_column: flags.TextColumn = None,
    pooling: Pooling = None,
    layer: Layer = None,
    tokens: Tokens = False,
    normalize: Normalize = False,
    cased: flags.Cased = None,
    max_length: flags.MaxLength = None,
    batch_size: flags.BatchSize = None,
    micro_tokens: flags.MicroTokens = None,
    precision: flags.Precision = None,
    output: flags.Output = None,
    overwrite: Replace = False,
    set_: flags.Set = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Write the vectors of texts, or of their tokens.

    `bertkit embed texts.txt --model runs/wiki-mini --output vectors.npy`: a row a text, in their order. A text's vector is the
    mean over all its tokens' states of the last layer, [CLS] and [SEP] among them, as sentence-transformers takes it. A table's
    texts (.csv .tsv .jsonl .parquet) are its column --text-column.
    """
    given = flags.given(
        ("files", "FILE", files),
        ("model", "--model", model),
        ("text_column", "--text-column", text_column),
        ("pooling", "--pooling", pooling),
        ("layer", "--layer", layer),
        ("tokens", "--tokens", tokens),
        ("normalize", "--normalize", normalize),
        ("cased", "--cased/--uncased", cased),
        ("max_length", "--max-length", max_length),
        ("batch.size", "--batch-size", batch_size),
        ("batch.micro_tokens", "--micro-tokens", micro_tokens),
        ("device.precision", "--precision", precision),
        ("output", "--output", output),
        ("overwrite", "--overwrite", overwrite),
    )
    from bertkit.settings.embedding import EmbedSettings

    settings = checked(EmbedSettings, command="embed", flags=given, sets=set_)
    from bertkit.jobs.embed import embed as job  # slow, and not needed to refuse wrong settings

    perform("embed", lambda console: job(settings, console), quiet=quiet)
