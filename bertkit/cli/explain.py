"""``bertkit explain A [B]``."""

from __future__ import annotations

from typing import Annotated

import typer

from bertkit.cli import flags
from bertkit.cli.pretrain import Masking, MlmProbability
from bertkit.cli.session import checked, perform

Texts = Annotated[list[str] | None, typer.Argument(metavar="A [B]", help="One text, or two: does B follow A?")]
Tokenizer = Annotated[
    str | None,
    flags.flag(
        "--tokenizer", help="A vocab.txt or a model folder: enough for all but guesses.", panel="Data and model", metavar="PATH"
    ),
]
Top = Annotated[int | None, flags.flag("--top", help="Likeliest words for each place (5).", panel="Data and model", metavar="N")]


def explain(
    texts: Texts = None,
    model: flags.Model = None,
    tokenizer: Tokenizer = None,
    cased: flags.Cased = None,
    top: Top = None,
    words: flags.Words = None,
    masking: Masking = None,
    mlm_probability: MlmProbability = None,
    seed: flags.Seed = None,
    set_: flags.Set = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show what BERT makes of a text, step by step.

    Its pieces, one draw of masks, and what a model guesses:
    `bertkit explain "the cat sat" "it slept" --model runs/wiki-mini`; without --model and --tokenizer the newest
    pretraining is taken.
    """
    given = flags.given(
        ("texts", "A [B]", texts),
        ("model", "--model", model),
        ("tokenizer", "--tokenizer", tokenizer),
        ("cased", "--cased/--uncased", cased),
        ("top", "--top", top),
        ("words", "--words", words),
        ("masking.kind", "--masking", masking),
        ("masking.probability", "--mlm-probability", mlm_probability),
        ("seed", "--seed", seed),
    )
    from bertkit.settings.tools import ExplainSettings

    settings = checked(ExplainSettings, command="explain", flags=given, sets=set_)
    from bertkit.jobs.explain import explain as job  # not needed to refuse wrong settings

    perform("explain", lambda console: job(settings, console), quiet=quiet)
