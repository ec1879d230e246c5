"""``bertkit corpus build|inspect|ls|rm``."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.session import checked, perform

_TEXT, _FAULTS = "Data and model", "Faults"

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH…", help="Texts, folders, patterns, hf:owner/name, or - (stdin).", show_default=False),
]
Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH…|STORE|RUN",
        help="Texts, as for `corpus build`; a token store (its folder or its name); or a run.",
        show_default=False,
    ),
]
Stores = Annotated[
    list[str] | None, typer.Argument(metavar="NAME…", help="Stores, as `bertkit corpus ls` names them.", show_default=False)
]
Tokenizer = Annotated[
    str | None,
    flags.flag("--tokenizer", help="A vocab.txt or a model folder; unset: trained on the text.", panel=_TEXT, metavar="PATH"),
]
Shard = Annotated[
    str | None,
    flags.flag("--shard", help="Build part i of n alone (array jobs), into --output.", panel=_TEXT, metavar="i/n"),
]
Workers = Annotated[int | None, flags.flag("--workers", help="Processes that build.", panel=_TEXT, metavar="N")]
Lengths = Annotated[
    list[int] | None,
    flags.flag("--max-seq-length", "--max-length", help="Plan an epoch of this length (repeatable).", panel=_TEXT, metavar="N"),
]
Validation = Annotated[
    list[str] | None,
    flags.flag("--validation-file", "--valid", help="Is the text of this file in the corpus?", panel=_FAULTS, metavar="FILE"),
]
Against = Annotated[
    list[str] | None,
    flags.flag("--against", help="Is the text of these evaluation files in the corpus?", panel=_FAULTS, metavar="FILE|FOLDER"),
]
Strict = Annotated[bool, flags.flag("--strict", help="Exit 3 where the text has a fault.", panel=_FAULTS)]
Step = Annotated[
    int | None, flags.flag("--step", help="Of a run: show the batch of this step instead.", panel="Runs", metavar="N")
]
Show = Annotated[
    int | None, flags.flag("--show", help="Masked examples that are shown; of a step: all of them.", panel="Runs", metavar="N")
]
OlderThan = Annotated[
    str | None, flags.flag("--older-than", help="Those not used for so long, such as 30d.", panel="Which", metavar="TIME")
]
All = Annotated[bool, flags.flag("--all", help="All of them.", panel="Which")]


def build(
    paths: Paths = None,
    tokenizer: Tokenizer = None,
    vocab_size: flags.VocabSize = None,
    cased: flags.Cased = None,
    documents: flags.Documents = None,
    encoding_errors: flags.EncodingErrors = None,
    text_field: flags.TextField = None,
    words: flags.Words = None,
    dedup: flags.Dedup = None,
    shard: Shard = None,
    workers: Workers = None,
    output: flags.Output = None,
    set_: flags.Set = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Build the token store of a text.

    It lies in the cache, where `pretrain` finds it again, or in --output. The same command again finds that nothing has
    to be done; one that was stopped goes on.
    """
    given = flags.given(
        ("paths", "PATH", paths),
        ("tokenizer.path", "--tokenizer", tokenizer),
        ("tokenizer.vocab_size", "--vocab-size", vocab_size),
        ("tokenizer.cased", "--cased/--uncased", cased),
        ("corpus.documents", "--documents", documents),
        ("corpus.encoding_errors", "--encoding-errors", encoding_errors),
        ("corpus.text_field", "--text-field", text_field),
        ("corpus.words", "--words", words),
        ("corpus.dedup", "--dedup", dedup),
        ("shard", "--shard", shard),
        ("workers", "--workers", workers),
        ("output", "--output", output),
    )
    from bertkit.settings.tools import CorpusBuildSettings

    settings = checked(CorpusBuildSettings, command="corpus build", flags=given, sets=set_)
    from bertkit.jobs.corpus_build import build_corpus as job  # slow, and not needed to refuse wrong settings

    perform("corpus build", lambda console: job(settings, console), quiet=quiet)


def inspect(
    paths: Targets = None,
    tokenizer: Tokenizer = None,
    vocab_size: flags.VocabSize = None,
    cased: flags.Cased = None,
    documents: flags.Documents = None,
    encoding_errors: flags.EncodingErrors = None,
    text_field: flags.TextField = None,
    words: flags.Words = None,
    max_lengths: Lengths = None,
    validation_file: Validation = None,
    against: Against = None,
    strict: Strict = False,
    step: Step = None,
    show: Show = None,
    workers: Workers = None,
    set_: flags.Set = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show what a model will see of a text.

    It is judged too: is it fit to learn from?
    """
    given = flags.given(
        ("paths", "PATH", paths),
        ("tokenizer.path", "--tokenizer", tokenizer),
        ("tokenizer.vocab_size", "--vocab-size", vocab_size),
        ("tokenizer.cased", "--cased/--uncased", cased),
        ("corpus.documents", "--documents", documents),
        ("corpus.encoding_errors", "--encoding-errors", encoding_errors),
        ("corpus.text_field", "--text-field", text_field),
        ("corpus.words", "--words", words),
        ("max_lengths", "--max-length", max_lengths),
        ("validation", "--validation-file", validation_file),
        ("against", "--against", against),
        ("strict", "--strict", strict),
        ("step", "--step", step),
        ("examples", "--show", show),
        ("workers", "--workers", workers),
    )
    from bertkit.settings.tools import CorpusInspectSettings

    settings = checked(CorpusInspectSettings, command="corpus inspect", flags=given, sets=set_)
    from bertkit.jobs.corpus_inspect import inspect_corpus as job  # slow, and not needed to refuse wrong settings

    perform("corpus inspect", lambda console: job(settings, console), quiet=quiet)


def ls(json: flags.Json = False) -> None:
    """List the token stores in the cache, the last used first."""
    from bertkit.jobs.corpus_cache import list_stores

    perform("corpus ls", list_stores)


def rm(names: Stores = None, older_than: OlderThan = None, all_: All = False, json: flags.Json = False) -> None:
    """Remove token stores from the cache.

    One that is wanted again is built again; one in use stays.
    """
    from bertkit.jobs.corpus_cache import remove_stores

    perform("corpus rm", lambda console: remove_stores(console, names=names or (), older_than=older_than, everything=all_))
