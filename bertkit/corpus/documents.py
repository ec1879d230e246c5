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
from bertkit.corpus.sources import Corpus, TextFile
from bertkit.errors import DataError, MissingError, nearest
from bertkit.fields import Settings
from bertkit.notices import say

READER_VERSION = 1
"""Raised whenever the same bytes would give other lines or other documents: stores of before are then built anew."""

HUGE_LINE = 1_000_000
"""Characters from which a line is said to be huge (once, naming it)."""

UNREADABLE = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".parquet", ".jsonl", ".json", ".pdf", ".docx", ".html", ".xml")
"""Endings of files that are surely not plain text: naming one is an error, not 40 % replacement characters."""

Progress = Callable[[int, int | None], None]
"""Told the bytes done and the bytes in all."""


class CorpusSettings(Settings):
    """How text files become documents."""

    documents: Literal["blank", "line", "file"] = Field(
        default="blank", description="What parts documents: blank lines (and the end of a file), every line, or files alone."
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


@dataclass(slots=True, kw_only=True)
class ReadReport:
    """What reading met; counted up as documents come out.

    Attributes:
        files: Files read.
        bytes: Bytes read.
        lines: Lines that are not blank.
        documents: Documents with at least one line that is not blank.
        replacements: Bytes (or cut-off sequences) that became U+FFFD.
        huge_lines: Lines of more than a million characters.
        longest_line: Characters of the longest line.
        unparted: Files of two lines or more without a blank line between any two.
    """

    files: int = 0
    bytes: int = 0
    lines: int = 0
    documents: int = 0
    replacements: int = 0
    huge_lines: int = 0
    longest_line: int = 0
    unparted: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, int | list[str]]:
        """The counts by name, for logs and ``--json``."""
        return asdict(self)


def open_corpus(paths: Sequence[str | Path], settings: CorpusSettings | None = None) -> Corpus:
    """The sources that ``paths`` name, in order: files as they are, folders by their text files.

    Args:
        paths: What a user names.
        settings: How it is read; None: the defaults.

    Raises:
        MissingError: A path is not there, or a folder holds no text.
        DataError: A file is of a kind that cannot be read, or no file that can be read twice.
    """
    return Corpus(tuple(TextFile(file) for file in _text_files([Path(path) for path in paths])))


def _text_files(paths: Sequence[Path]) -> list[Path]:
    """The text files that ``paths`` name: files as they are, folders by their ``.txt`` files, sorted by relative path.

    A folder without any ``.txt`` gives its files without an ending (``AA/wiki_00``). Hidden files are left out, a file
    named twice counts once.

    Raises:
        MissingError: A path is not there, or a folder holds no text.
        DataError: A file is of a kind that is not plain text, or no file that can be read twice.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += _folder_files(path)
        elif path.exists():
            if path.suffix.lower() in UNREADABLE:
                raise DataError(
                    f"{path.suffix} files are not plain text.", where=str(path), hint="Give it unpacked, as UTF-8 text (.txt)."
                )
            if not path.is_file():
                raise DataError(
                    "This is a pipe or a device, and a corpus is read more than once.",
                    where=str(path),
                    hint="Write the text to a file first.",
                )
            found.append(path)
        else:
            near = nearest(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
            raise MissingError(f"There is no file or folder {path}.{near}", where=str(path))
    if not found:
        raise MissingError("No corpus was named.", hint="Name a text file or a folder of them.")
    return _once(found)


def _folder_files(folder: Path) -> list[Path]:
    inside = [
        p for p in folder.rglob("*") if p.is_file() and not any(part.startswith(".") for part in p.relative_to(folder).parts)
    ]
    taken = [p for p in inside if p.suffix.lower() == ".txt"] or [p for p in inside if not p.suffix]
    if not taken:
        raise MissingError(f"The folder {folder} holds no .txt file.", where=str(folder), hint="Name the files themselves.")
    if len(taken) < len(inside):
        say("corpus-files", f"{folder}: {len(taken)} text files are read, {len(inside) - len(taken)} other files are not.")
    return sorted(taken, key=lambda p: p.relative_to(folder).parts)


def _once(files: list[Path]) -> list[Path]:
    seen: dict[Path, Path] = {}
    for file in files:
        seen.setdefault(file.resolve(), file)
    if len(seen) < len(files):
        say("corpus-files", f"{len(files) - len(seen)} files were named more than once; each is read once.")
    return list(seen.values())


def read_lines(
    corpus: Corpus, settings: CorpusSettings, report: ReadReport, progress: Progress | None = None
) -> Iterator[str | None]:
    """Every line that is not blank, in order, with ``None`` behind the last line of each document.

    A document that is one huge file therefore never lies in memory whole.

    Raises:
        DataError: A byte that is not UTF-8 under ``strict``, naming file, line, offset and byte.
    """
    total = corpus.bytes
    for source in corpus.sources:
        report.files += 1
        pending = False  # lines of a document not yet closed
        lines = 0
        parted = False
        for span in source.spans(replace=settings.encoding_errors == "replace"):
            report.bytes += span.bytes
            report.replacements += span.replacements
            for index, line in enumerate(span.lines):
                if not line or line.isspace():
                    parted = parted or lines > 0
                    if pending and settings.documents == "blank":
                        report.documents += 1
                        pending = False
                        yield None
                    continue
                lines += 1
                _measure(line, span, index, source.name, report)
                yield line
                pending = True
                if settings.documents == "line":
                    report.documents += 1
                    pending = False
                    yield None
            if progress:
                progress(report.bytes, total)
        report.lines += lines
        if lines > 1 and not parted:
            report.unparted.append(source.name)
        if pending:
            report.documents += 1
            yield None


def _measure(line: str, span: Span, index: int, name: str, report: ReadReport) -> None:
    if len(line) <= report.longest_line:
        return
    report.longest_line = len(line)
    if len(line) > HUGE_LINE:
        report.huge_lines += 1
        if report.huge_lines == 1:
            say("huge-line", f"{name}, line {span.first + index} has {len(line):,} characters; is its text meant to be one line?")


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
