"""What a build read and made, by name, and what of it people are told."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from bertkit.corpus.documents import CorpusSettings, ReadReport
from bertkit.corpus.faults_of_vocabulary import UNKNOWN
from bertkit.corpus.gathering import Counts
from bertkit.corpus.judgement import percent
from bertkit.corpus.repeats import Repeats
from bertkit.corpus.store import TokenStore
from bertkit.notices import say


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build read and made; of a shard, ``files``, ``bytes``, ``replacements`` and ``longest_line`` are of the whole text.

    Attributes:
        files: Sources read.
        bytes: Bytes read.
        lines: Lines that are not blank.
        characters: Their characters.
        replacements: Bytes that became U+FFFD.
        longest_line: Characters of the longest line.
        documents: Documents in the store, each with a token.
        dropped_documents: Documents without one, left out.
        one_sentence_documents: Documents in the store of one sentence.
        pairable_documents: Documents in the store of two sentences or two words; others take no part in sentence pairs.
        duplicate_documents: Documents whose text stood before; left out under ``dedup: exact``.
        duplicate_lines: Lines that stood before.
        sentences: Sentences in the store.
        tokens: Tokens in the store.
        unknown_tokens: Tokens in the store that are ``[UNK]``.
        unparted_files: Files of two lines or more without a blank line between them.
        reused: The store was there already.
    """

    files: int
    bytes: int
    lines: int
    characters: int
    replacements: int
    longest_line: int
    documents: int
    dropped_documents: int
    one_sentence_documents: int
    pairable_documents: int
    duplicate_documents: int
    duplicate_lines: int
    sentences: int
    tokens: int
    unknown_tokens: int
    unparted_files: int
    reused: bool = False

    def as_dict(self) -> dict[str, int | bool]:
        """The counts by name."""
        return asdict(self)

    def counts(self) -> dict[str, int]:
        """What a store keeps of it."""
        return {name: value for name, value in asdict(self).items() if name != "reused"}

    @staticmethod
    def of(reading: ReadReport, counts: Counts, lines: Repeats) -> BuildReport:
        """The report of a build that has come to its end."""
        read = {name: getattr(reading, name) for name in ("files", "bytes", "replacements", "longest_line")}
        return BuildReport(**{**asdict(counts), **read}, duplicate_lines=lines.repeated, unparted_files=len(reading.unparted))

    @staticmethod
    def of_store(store: TokenStore, *, reused: bool) -> BuildReport:
        """The report that a store keeps; what another version of bertkit did not count is 0."""
        names = [field.name for field in fields(BuildReport) if field.name != "reused"]
        return BuildReport(**{name: store.counts.get(name, 0) for name in names}, reused=reused)


def say_report(report: BuildReport, settings: CorpusSettings) -> None:
    """Tells what a person should know of a text."""
    if report.dropped_documents:
        say("dropped-documents", f"{report.dropped_documents:,} documents without any token were left out.")
    if report.replacements:
        say("replacements", f"{report.replacements:,} bytes were not UTF-8 and became U+FFFD.")
    if report.unparted_files and settings.documents == "blank":
        say(
            "no-blank-line",
            f"{report.unparted_files} of {report.files} files hold no blank line between two lines, so each is one document. "
            "Where every line is a document, give --documents line.",
        )
    if report.duplicate_documents and settings.dedup == "exact":
        say("duplicate-documents", f"{report.duplicate_documents:,} documents whose text stood before were left out.")
    elif report.duplicate_documents:
        share = report.duplicate_documents / max(1, report.documents)
        say(
            "duplicate-documents",
            f"{report.duplicate_documents:,} of {report.documents:,} documents ({share:.1%}) stand in the corpus before. "
            "`--dedup exact` leaves them out.",
        )
    if (unknown := report.unknown_tokens / max(1, report.tokens)) >= UNKNOWN[0]:
        say(
            "unknown-words",
            f"{percent(unknown)} of the tokens are unknown to the vocabulary ([UNK]) and cannot be learned: is it "
            "made for this text? `bertkit corpus inspect` names the words.",
        )
    if report.duplicate_lines:
        share = report.duplicate_lines / max(1, report.lines)
        say("duplicate-lines", f"{report.duplicate_lines:,} of {report.lines:,} lines ({share:.1%}) stand in the corpus before.")
