"""``bertkit tokenizer train``: text in, a folder with a WordPiece vocabulary out."""

from __future__ import annotations

from pathlib import Path

from bertkit.corpus.documents import corpus_files
from bertkit.errors import FolderError
from bertkit.jobs.console import Console
from bertkit.jobs.outcome import Outcome
from bertkit.jobs.pretrain import trained_vocabulary
from bertkit.settings.commands import TokenizerTrainSettings

MAX_LENGTH = 512  # positions of google's models; pretraining writes its own when it saves a model
FILES = {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}


def train_tokenizer(settings: TokenizerTrainSettings, console: Console) -> Outcome:
    """Trains a vocabulary and writes vocab.txt, tokenizer.json and tokenizer_config.json.

    Raises:
        FolderError: The folder has other files, or a vocabulary already and no --overwrite (exit 2).
        DataError: A byte that is not UTF-8, or no word at all (exit 3).
    """
    files = corpus_files([Path(name) for name in settings.files])
    folder = Path(settings.output) if settings.output is not None else Path("runs") / f"{files[0].stem}-tokenizer"
    if folder.exists() and not folder.is_dir():
        raise FolderError("The output is a file, not a folder.", where=str(folder), hint="Choose another --output.")
    there = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if there - FILES or (there and not settings.overwrite):
        hint = "Choose another --output." if there - FILES else "Choose another --output, or add --overwrite."
        raise FolderError(f"This folder has files already ({', '.join(sorted(there)[:3])}).", where=str(folder), hint=hint)
    wordpiece = trained_vocabulary(files, settings.corpus, console, size=settings.vocab_size, cased=settings.cased)
    wordpiece.save(folder, max_length=MAX_LENGTH)
    console.result(f"{wordpiece.size:,} entries in {folder / 'vocab.txt'}")
    return Outcome(output=folder, metrics={"vocab_size": wordpiece.size})
