"""Faults between a text and a vocabulary: unknown words, scripts that it does not cover, words cut into many pieces."""

from __future__ import annotations

from bertkit.corpus.judgement import Counted, Judgement, level_of, percent
from bertkit.corpus.survey import Survey
from bertkit.corpus.word_survey import Script

UNKNOWN = (0.01, 0.1)  # a released vocabulary leaves 0.01 % (English) to 0.5 % (Chinese) of Wikipedia's tokens unknown
SCRIPT_LETTERS, SCRIPT_UNKNOWN = 0.01, 0.05  # one letter in a hundred, with one word in twenty unknown: more than rare characters
# A word: 1.1 to 1.2 with a vocabulary made for the text, 1.9 for English with the Chinese vocabulary. Names in another script
# (2 % of the letters of the Chinese Wikipedia are Latin) are cut into many pieces by any vocabulary.
PIECES, PIECES_LETTERS = 1.7, 0.1


def unknown_words(counted: Counted, survey: Survey | None) -> Judgement | None:
    """Too many tokens are ``[UNK]``."""
    share = counted.unknown_tokens / max(1, counted.tokens)
    level = level_of(share, UNKNOWN)
    if level is None or (survey is not None and _explained(counted, survey)):
        return None
    words = survey.unknown_words if survey is not None else ()
    hint = "Use a vocabulary of this text's language, or train one: `bertkit tokenizer train`."
    message = f"{percent(share)} of the tokens are unknown to the vocabulary ([UNK]) and cannot be learned."
    lowercased = survey.unknown_lowercased if survey is not None and not counted.lowercase else 0.0
    if lowercased >= 0.5:
        message += f" {percent(lowercased)} of these words are in it in small letters."
        hint = "The vocabulary has small letters alone: read it with --uncased."
    figures = {
        "share": share,
        "unknown_tokens": counted.unknown_tokens,
        "lowercased_share": lowercased,
        "examples": [{"text": word, "count": count} for word, count in words[:10]],
    }
    return Judgement(kind="unknown-words", level=level, message=message, hint=hint, figures=figures)


def _explained(counted: Counted, survey: Survey) -> bool:
    """Whether most unknown words are of scripts that are judged by themselves."""
    return sum(script.unknown for script in _unfit(counted, survey)) >= counted.unknown_tokens / 2


def _unfit(counted: Counted, survey: Survey) -> list[Script]:
    letters = max(1, sum(script.letters for script in survey.scripts))
    return [
        script
        for script in survey.scripts
        if script.letters >= SCRIPT_LETTERS * letters
        and script.unknown_share >= SCRIPT_UNKNOWN
        and (counted.lowercase or script.name != "Latin" or survey.unknown_lowercased < 0.5)
    ]


def unfit_scripts(counted: Counted, survey: Survey) -> Judgement | None:
    """Scripts that the vocabulary does not cover."""
    letters = max(1, sum(script.letters for script in survey.scripts))
    wrong = _unfit(counted, survey)
    if not wrong:
        return None
    named = ", ".join(
        f"{script.name} ({percent(script.letters / letters)} of the letters, {percent(script.unknown_share)} of them unknown)"
        for script in wrong
    )
    tokens = sum(script.unknown for script in wrong) / max(1, counted.tokens)
    return Judgement(
        kind="script-not-in-vocabulary",
        level="error" if tokens >= UNKNOWN[1] else "warning",
        message=f"The vocabulary is not made for a script of this text: {named}.",
        hint="Use a vocabulary of this language, train one (`bertkit tokenizer train`), or take this text out.",
        figures={
            script.name: {"letters_share": script.letters / letters, "unknown_share": script.unknown_share} for script in wrong
        },
    )


def many_pieces(counted: Counted, survey: Survey) -> Judgement | None:
    """Words are cut into many pieces: the vocabulary is of another language, or small."""
    letters = max(1, sum(script.letters for script in survey.scripts))
    cut = [
        script
        for script in survey.scripts
        if script.letters >= PIECES_LETTERS * letters and script.words >= 100 and script.pieces_a_word >= PIECES
    ]
    if not cut:
        return None
    named = ", ".join(
        f"{script.name} words ({percent(script.letters / letters)} of the letters) are cut into {script.pieces_a_word:.1f} pieces"
        for script in cut
    )
    return Judgement(
        kind="many-pieces",
        level="warning",
        message=f"{named}; with a vocabulary made for a text it is 1.1 to 1.3.",
        hint="Is the vocabulary of another language? Use one of this text's, or train one, or a larger one (--vocab-size).",
        figures={
            script.name: {"letters_share": script.letters / letters, "pieces_a_word": script.pieces_a_word} for script in cut
        },
    )
