"""Text files in, documents out: which files, in what order, where a line ends and where a document ends.

A line ends at ``\\n``, ``\\r\\n`` or ``\\r`` and nowhere else. Everything that reads a corpus (training a vocabulary,
building a store) reads it through here, so that both see the same lines. Characters within a line are the tokenizer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from bertkit.corpus.lines import Span
from bertkit.corpus.named import Format, named_sources
from bertkit.corpus.sources import Corpus
from bertkit.fields import Settings
from bertkit.notices import say

READER_VERSION = 2
"""Raised whenever the same bytes would give other lines or other documents: stores of before are then built anew."""

HUGE_LINE = 1_000_000
"""Characters from which a line is said to be huge (once, naming it)."""

Progress = Callable[[int, int | None], None]
"""Told the bytes done and the bytes in all."""


class CorpusSettings(Settings):
    """How text files become documents."""

    documents: Literal["blank", "line", "file"] = Field(
        default="blank",
        description="What parts documents: blank lines (in records and WikiExtractor's files their own marks) and the end of a "
        "file; every line; or files alone.",
    )
    encoding_errors: Literal["strict", "replace"] = Field(
        default="strict", description="A byte that is not UTF-8 stops the work, or becomes U+FFFD and is counted."
    )
    words: str | None = Field(
        default=None,
        description="Chinese words, which whole-word masking takes together: a file of `word<TAB>frequency` lines or of words, "
        "or jieba or rjieba; unset: each character is a word.",
    )
    dedup: Literal["none", "exact"] = Field(
        default="none", description="Documents whose text stood before are kept and counted, or left out of the token store."
    )
    text_field: str = Field(default="text", description="The field of the text in JSON lines, Parquet and data sets of the hub.")
    format: Format = Field(default="auto", description="The format of every file; auto: by its ending, else by its content.")


@dataclass(slots=True, kw_only=True)
class ReadReport:
    """What reading met; counted up as documents come out.

    Attributes:
        files: Sources read.
        bytes: Bytes of text read, unpacked.
        taken: Bytes of the sources, as they are stored, gone through: what progress is told.
        lines: Lines that are not blank.
        documents: Documents with at least one line that is not blank.
        replacements: Bytes (or cut-off sequences) that became U+FFFD.
        huge_lines: Lines of more than a million characters.
        longest_line: Characters of the longest line.
        unparted: Files of two lines or more without a blank line between any two.
    """

    files: int = 0
    bytes: int = 0
    taken: int = 0
    lines: int = 0
    documents: int = 0
    replacements: int = 0
    huge_lines: int = 0
    longest_line: int = 0
    unparted: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, int | list[str]]:
        """The counts by name, for logs and ``--json``."""
        return asdict(self)


def open_corpus(paths: Sequence[str | Path], settings: CorpusSettings | None = None, *, once: bool = False) -> Corpus:
    """The sources that ``paths`` name, in order.

    Args:
        paths: What a user names: files, folders, patterns, data sets of the hub (``hf:owner/name``), ``-``.
        settings: How it is read; None: the defaults.
        once: The text is read a single time, so pipes and ``-`` (the standard input) will do.

    Raises:
        MissingError: A path is not there, a pattern matches nothing, or a folder holds no text.
        DataError: A file is of a kind that cannot be read, or can be read only once.
        UsageError: ``-`` where the text is read more than once.
    """
    settings = settings or CorpusSettings()
    return Corpus(named_sources(paths, field=settings.text_field, format=settings.format, once=once))


def read_lines(
    corpus: Corpus, settings: CorpusSettings, report: ReadReport, progress: Progress | None = None
) -> Iterator[str | None]:
    """Every line that is not blank, in order, with ``None`` behind the last line of each document.

    A document that is one huge file therefore never lies in memory whole.

    Raises:
        DataError: A byte that is not UTF-8 under ``strict``, naming file, line, offset and byte.
    """
    total = corpus.bytes
    replace = settings.encoding_errors == "replace"
    by_line, by_blank = settings.documents == "line", settings.documents == "blank"
    for source in corpus.sources:
        report.files += 1
        marked = source.marked
        pending = gap = parted = False  # pending: lines of a document not yet closed; gap: a blank line behind a line
        lines = 0
        for span in source.spans(replace=replace):
            report.bytes += span.bytes
            report.replacements += span.replacements
            for index, line in enumerate(span.lines):
                if not line or line.isspace():
                    if marked and line is not None:
                        continue  # a blank line in a record, or in WikiExtractor's article
                    gap = lines > 0
                    if pending and by_blank:
                        report.documents += 1
                        pending = False
                        yield None
                    continue
                lines += 1
                parted = parted or gap
                if len(line) > report.longest_line:
                    _measure(line, span, index, source.name, report)
                yield line
                pending = True
                if by_line:
                    report.documents += 1
                    pending = False
                    yield None
            report.taken += span.taken
            if progress:
                progress(report.taken, total)
        report.lines += lines
        if lines > 1 and not (parted or marked):
            report.unparted.append(source.name)
        if pending:
            report.documents += 1
            yield None


def _measure(line: str, span: Span, index: int, name: str, report: ReadReport) -> None:
    report.longest_line = len(line)
    if len(line) > HUGE_LINE:
        report.huge_lines += 1
        if report.huge_lines == 1:
            where = f"{name}, {'line' if span.numbers is None else 'record'} {span.number(index)}"
            say("huge-line", f"{where} has {len(line):,} characters; is its text meant to be one line?")


def read_documents(
    corpus: Corpus, settings: CorpusSettings, report: ReadReport, progress: Progress | None = None
) -> Iterator[list[str]]:
    """Every document as the list of its lines that are not blank; see :func:`read_lines`."""
    document: list[str] = []
    for line in read_lines(corpus, settings, report, progress):
        if line is None:
            yield document
            document = []
        else:
            document.append(line)
