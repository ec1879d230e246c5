"""All faults of a text together: its own, and what of a validation file or of a task's evaluation files stands in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.corpus.faults_of_repetition import boilerplate_lines, duplicate_documents, duplicate_lines
from bertkit.corpus.faults_of_shape import boundaries, broken_lines, markup, misread_characters, one_sentence
from bertkit.corpus.faults_of_vocabulary import many_pieces, unfit_scripts, unknown_words
from bertkit.corpus.judgement import Counted, Judgement, level_of, percent
from bertkit.corpus.survey import Survey

FOUND = 0.8
"""A passage is in the text where four fifths of its pieces stand there in runs of 13: what is commonly called a near-duplicate
(Lee et al. 2022). Copies lie at 0.9 and above; stubs made from one template reach 0.5 to 0.9."""

# One row in a thousand moves a score by a tenth of a point at most, the last digit that is reported; one in twenty decides
# which of two systems is the better.
SEEN = (0.001, 0.05)

_BY_COUNTS = (boundaries, one_sentence, unknown_words)
_BY_SURVEY: tuple[Callable[[Counted, Survey], Judgement | None], ...] = (
    duplicate_documents, duplicate_lines, boilerplate_lines, unfit_scripts, many_pieces, broken_lines, markup, misread_characters
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What of one file's rows stands in the text.

    Attributes:
        source: The file.
        validation: It is a validation text, whose rows are documents; else a task's.
        rows: Rows with a passage of at least 8 pieces.
        short: Rows without one, which are not looked for.
        found: Rows of which a passage is in the text.
        examples: Some of them: where it stands in the file, its beginning, the document of the text that has it.
    """

    source: str
    validation: bool
    rows: int
    short: int
    found: int
    examples: tuple[dict[str, str | int], ...]


def judge_text(counted: Counted, survey: Survey | None, seen: Sequence[Seen] = ()) -> list[Judgement]:
    """The faults, errors first; without a survey those that counts show."""
    found = [check(counted, survey) for check in _BY_COUNTS]
    found += [check(counted, survey) for check in _BY_SURVEY] if survey is not None else []
    found += [seen_rows(each) for each in seen]
    return sorted((judgement for judgement in found if judgement is not None), key=lambda judgement: judgement.level)


def short_name(path: str) -> str:
    """The last two parts of a path: ``QNLI/dev.tsv``."""
    return "/".join(Path(path).parts[-2:])


def seen_rows(seen: Seen) -> Judgement | None:
    """Rows of a validation or evaluation file that stand in the text."""
    share = seen.found / max(1, seen.rows)
    level = level_of(share, SEEN)
    if level is None:
        return None
    kind, what = ("validation", "documents") if seen.validation else ("evaluation", "rows")
    hint = "a loss on them says nothing of new text." if seen.validation else "a score on them is too high."
    return Judgement(
        kind=f"{kind}-in-training",
        level=level,
        message=f"{seen.found:,} of {seen.rows:,} {what} of {short_name(seen.source)} ({percent(share)}) stand in this text.",
        hint=f"Take them out of the text, or out of the file: {hint}",
        figures={
            "source": seen.source,
            "rows": seen.rows,
            "found": seen.found,
            "share": share,
            "too_short": seen.short,
            "examples": list(seen.examples),
        },
    )
