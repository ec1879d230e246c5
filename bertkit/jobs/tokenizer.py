"""Text files -> a vocabulary's folder: vocab.txt, tokenizer.json, tokenizer_config.json."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bertkit.corpus.documents import CorpusSettings, Progress, ReadReport, open_corpus, read_lines
from bertkit.corpus.named import short_name
from bertkit.corpus.sources import Corpus
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError
from bertkit.jobs.console import Console
from bertkit.jobs.folder import RunFolder, claim
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.tentative import tentative
from bertkit.notices import say
from bertkit.settings.compare import with_values
from bertkit.settings.tools import TokenizerTrainSettings

LEAST_FREQUENCY = 2  # of pieces that are merged, where nobody says otherwise
POSITIONS = 512  # model_max_length of a vocabulary that has no model yet
_SIZES = ((20_000_000, 8_000), (200_000_000, 16_000))
_LARGEST = 30_522


def vocabulary_size(size_of_text: int | None) -> int:
    """Entries of a vocabulary for so many bytes of text: 8 000 under 20 MB, 16 000 under 200 MB, else (or unknown) 30 522."""
    return next((entries for limit, entries in _SIZES if size_of_text is not None and size_of_text < limit), _LARGEST)


def text_fingerprint(corpus: Corpus, progress: Progress | None = None) -> str:
    """16 hex digits of the sources' content, in their order; names do not count."""
    return hashlib.sha256("\n".join(corpus.digests(progress)).encode()).hexdigest()[:16]


def trained_vocabulary(
    corpus: Corpus,
    settings: CorpusSettings,
    console: Console,
    *,
    size: int,
    cased: bool,
    folder: Path,
    min_frequency: int = LEAST_FREQUENCY,
) -> tuple[WordPiece, ReadReport]:
    """A vocabulary trained on the text, said with its size; bytes that were replaced are counted.

    Args:
        corpus: The text.
        settings: How it is read.
        console: Where it is said.
        size: Entries.
        cased: Keep case and accents.
        folder: On whose disk words are counted where there are too many for memory; nothing stays there.
        min_frequency: Times that two pieces must stand together to be merged.

    Raises:
        DataError: A byte that is not UTF-8, or no word at all (exit 3).
    """
    console.say(f"Training {'a cased' if cased else 'an uncased'} vocabulary of {size:,} entries on the text.")
    report = ReadReport()
    with console.progress("Reading for the vocabulary", safe=True) as update, console.stop.deferred():
        try:
            lines = ([line] for line in read_lines(corpus, settings, report, update) if line is not None)
            wordpiece = train_wordpiece(lines, size=size, lowercase=not cased, min_frequency=min_frequency, folder=folder)
        except DataError as error:
            error.where = error.where or corpus.name
            raise
        console.stop.check()
    if report.replacements:
        say("replacements", f"{report.replacements:,} bytes were not UTF-8 and became U+FFFD.")
    return wordpiece, report


def train_tokenizer(settings: TokenizerTrainSettings, console: Console) -> Outcome:
    """Trains a vocabulary and writes it where the settings say, else to ``runs/NAME-tokenizer``."""
    corpus = open_corpus(settings.files, settings.corpus)
    output = Path(settings.output) if settings.output else Path("runs") / f"{short_name(settings.files[0])}-tokenizer"
    size = settings.vocab_size or vocabulary_size(corpus.text_bytes)
    stamps = corpus.stamps()
    with console.progress("Summing the text", safe=True) as update:
        fingerprint = text_fingerprint(corpus, update)

    def take() -> RunFolder:
        return claim(
            output,
            settings,
            command="tokenizer train",
            named=settings.output is not None,
            line=console.line,
            overwrite=settings.overwrite,
            fingerprints={"text": fingerprint},
        )

    with tentative(output, take, lambda folder: False) as folder:
        if folder.situation == "finished":
            console.say(f"Already finished: {folder.path}")
            return Outcome(state="already finished", output=folder.path)
        folder.resolve(with_values(settings, {"vocab_size": size}))
        wordpiece, report = trained_vocabulary(
            corpus,
            settings.corpus,
            console,
            size=size,
            cased=settings.cased,
            folder=folder.path,
            min_frequency=settings.min_frequency,
        )
        corpus.must_be_as(stamps)
        folder.made("vocab.txt", "tokenizer.json", "tokenizer_config.json")
        wordpiece.save(folder.path, max_length=POSITIONS)
        folder.finish("finished", text=report.as_dict())
        console.result(f"{wordpiece.size:,} entries in {folder.path / 'vocab.txt'}")
        return Outcome(
            output=folder.path,
            extra={"vocab_size": wordpiece.size, "replacements": report.replacements, "documents": report.documents},
        )
