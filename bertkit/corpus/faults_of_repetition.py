"""Faults of repetition: documents and lines that stand in a text more than once."""

from __future__ import annotations

from typing import Any

from bertkit.corpus.judgement import Counted, Judgement, level_of, percent
from bertkit.corpus.survey import LONG, Group, Survey

# Cleaned corpora: 0.4 % of Wiki-40B's documents and 3 % of C4's stand elsewhere in it (Lee et al. 2022), 0.01 % of the long
# lines of an English Wikipedia dump.
DUPLICATE_DOCUMENTS = (0.01, 0.2)  # shares from which they are a warning, an error
DUPLICATE_LINES = (0.02, 0.3)
# A line in one of a hundred documents is a template's. Where such lines make half a percent of the text, every masked word
# in two hundred is one that is known by heart.
BOILERPLATE_DOCUMENTS, BOILERPLATE_TIMES, BOILERPLATE_SHARE = 0.01, 5, 0.005
FEW = 20  # documents or lines, below which shares say nothing


def duplicate_documents(counted: Counted, survey: Survey) -> Judgement | None:
    """Documents that stand before."""
    share = survey.documents.repeated / max(1, survey.documents.total)
    level = level_of(share, DUPLICATE_DOCUMENTS)
    if level is None or counted.parting == "line":  # there every document is a line, and is judged as one
        return None
    return Judgement(
        kind="duplicate-documents",
        level=level,
        message=f"{survey.documents.repeated:,} of {survey.documents.total:,} documents ({percent(share)}) stand in the text "
        "before, word for word.",
        hint="`--dedup exact` of `bertkit corpus build` and `bertkit pretrain` leaves them out.",
        figures={
            "repeated": survey.documents.repeated,
            "documents": survey.documents.total,
            "share": share,
            "examples": examples(survey.document_groups),
        },
    )


def boilerplate(survey: Survey) -> tuple[Group, ...]:
    """The lines that stand in so many documents that they are a template's; none where documents are too few to tell."""
    if survey.documents.total < FEW:
        return ()
    least = max(BOILERPLATE_TIMES, BOILERPLATE_DOCUMENTS * survey.documents.total)
    return tuple(group for group in survey.line_groups if group.count >= least)


def boilerplate_lines(counted: Counted, survey: Survey) -> Judgement | None:
    """The frame of a page or a template, in very many documents."""
    lines = boilerplate(survey)
    share = sum(group.count * group.characters for group in lines) / max(1, survey.characters)
    if counted.documents < FEW or share < BOILERPLATE_SHARE:
        return None
    return Judgement(
        kind="boilerplate-lines",
        level="warning",
        message=f"{len(lines):,} different lines stand in very many documents and make {percent(share)} of the text.",
        hint="They are a page's frame or a template's: take them out of the text.",
        figures={"lines": len(lines), "share": share, "examples": examples(lines)},
    )


def duplicate_lines(counted: Counted, survey: Survey) -> Judgement | None:
    """Long lines that stand before, those of a frame and of duplicate documents left aside."""
    frame = tuple(group for group in boilerplate(survey) if group.characters >= LONG)
    others = tuple(group for group in survey.line_groups if group.characters >= LONG and group not in frame)
    repeated = survey.long_lines.repeated - sum(group.count - 1 for group in frame)
    share = repeated / max(1, survey.long_lines.total)
    level = level_of(share, DUPLICATE_LINES)
    copied = survey.documents.repeated / max(1, survey.documents.total)
    if level is None or survey.long_lines.total < FEW:
        return None
    if counted.parting != "line" and copied >= DUPLICATE_DOCUMENTS[0] and share < 1.5 * copied:
        return None  # they are those of the documents that stand twice
    return Judgement(
        kind="duplicate-lines",
        level=level,
        message=f"{repeated:,} of {survey.long_lines.total:,} lines of {LONG} characters or more ({percent(share)}) stand in the "
        "text before.",
        hint="A model learns repeated lines by heart instead of the language: take them out of the text (`--dedup exact` takes "
        "out whole documents).",
        figures={"repeated": repeated, "lines": survey.long_lines.total, "share": share, "examples": examples(others)},
    )


def examples(groups: tuple[Group, ...], number: int = 5) -> list[dict[str, Any]]:
    """The first groups, for figures."""
    return [{"text": group.text, "count": group.count} for group in groups[:number]]
