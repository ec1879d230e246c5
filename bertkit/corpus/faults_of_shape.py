"""Faults in the shape of a text: documents that do not end, sentences broken over lines, markup, a wrong encoding."""

from __future__ import annotations

from typing import Any

from bertkit.corpus.judgement import Counted, Judgement, percent
from bertkit.corpus.survey import Survey

GIANT_DOCUMENT, GIANT_TOKENS = 0.5, 100_000  # half of the text in one document, some 300 pages: ends of documents are missing
ONE_SENTENCE = 0.9
MARKUP, MISREAD, BROKEN = 0.02, 0.01, 0.2  # of clean Wikipedia none of the lines, and 0.7 % of the joins of lines
FEW_LINES = 20  # below, shares of lines say nothing


def boundaries(counted: Counted, survey: Survey | None) -> Judgement | None:
    """One document, one that holds most of the text, or files without a blank line."""
    how = (
        "Part documents by blank lines. Where each line is one: `bertkit pretrain --corpus FILE --documents line`; without "
        "documents: `bertkit pretrain --corpus FILE --objective mlm`."
    )
    if counted.documents < 2:
        message = "The text is a single document, so no wrong second sentence can be drawn for next sentence prediction."
        return Judgement(kind="no-document-boundaries", level="error", message=message, hint=how, figures={"documents": 1})
    share = counted.longest_document / max(1, counted.tokens)
    figures: dict[str, Any] = {"documents": counted.documents, "longest_document_share": share}
    if share >= GIANT_DOCUMENT and counted.longest_document >= GIANT_TOKENS:
        message = f"One document holds {percent(share)} of the text: are the ends of documents missing?"
        return Judgement(kind="no-document-boundaries", level="warning", message=message, hint=how, figures=figures)
    if survey is not None and counted.parting == "blank" and survey.reading.unparted:
        files = len(survey.reading.unparted)
        message = f"{files:,} of {survey.reading.files:,} files have no blank line between two lines, so each is one document."
        figures |= {"unparted_files": files, "files": survey.reading.files, "examples": survey.reading.unparted[:5]}
        return Judgement(kind="no-document-boundaries", level="warning", message=message, hint=how, figures=figures)
    return None


def one_sentence(counted: Counted, survey: Survey | None) -> Judgement | None:
    """Nearly all documents hold one sentence."""
    share = counted.one_sentence_documents / max(1, counted.documents)
    if counted.documents < 2 or share < ONE_SENTENCE:
        return None
    return Judgement(
        kind="one-sentence-documents",
        level="warning",
        message=f"{counted.one_sentence_documents:,} of {counted.documents:,} documents hold one sentence: A and B of a pair are "
        "parts of one sentence.",
        hint="If blank lines stand between sentences, take them out; if these are single sentences, use --objective mlm.",
        figures={"documents": counted.documents, "one_sentence_documents": counted.one_sentence_documents, "share": share},
    )


def broken_lines(counted: Counted, survey: Survey) -> Judgement | None:
    """Lines end in the middle of sentences."""
    shapes = survey.shapes
    share = shapes.broken / max(1, shapes.joins)
    if shapes.joins < FEW_LINES or share < BROKEN:
        return None
    return Judgement(
        kind="broken-lines",
        level="warning",
        message=f"After {percent(share)} of the lines the sentence goes on in the next line, but here a line's end "
        "is a sentence's end.",
        hint="The text was wrapped to a width: join the lines of each paragraph into one line.",
        figures={"share": share, "joins": shapes.joins, "examples": [shapes.examples["broken"]]},
    )


def markup(counted: Counted, survey: Survey) -> Judgement | None:
    """HTML, wiki markup or JSON."""
    shapes = survey.shapes
    share = shapes.markup / max(1, shapes.lines)
    if share < MARKUP:
        return None
    return Judgement(
        kind="markup",
        level="warning",
        message=f"{percent(share)} of the lines hold HTML, wiki markup or JSON.",
        hint="Extract the plain text first (WikiExtractor, trafilatura); JSON lines belong in a file named .jsonl.",
        figures={"share": share, "lines": shapes.markup, "examples": [shapes.examples["markup"]]},
    )


def misread_characters(counted: Counted, survey: Survey) -> Judgement | None:
    """Characters of a wrong encoding."""
    shapes = survey.shapes
    share = shapes.misread / max(1, shapes.lines)
    if share < MISREAD:
        return None
    return Judgement(
        kind="misread-characters",
        level="warning",
        message=f"{percent(share)} of the lines hold characters that a wrong encoding leaves (Ã©, â€™, U+FFFD).",
        hint="Convert the original again, from the encoding that it has, to UTF-8.",
        figures={"share": share, "lines": shapes.misread, "examples": [shapes.examples["misread"]]},
    )
