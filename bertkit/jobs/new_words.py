"""``--add-words``: the vocabulary that a model goes on with, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from bertkit.corpus.new_words import NewWords, read_new_words
from bertkit.corpus.wordpiece import WordPiece
from bertkit.jobs.console import Console
from bertkit.notices import say


def new_words(path: str, wordpiece: WordPiece, console: Console) -> NewWords:
    """Reads the file and tells where its words go.

    Raises:
        MissingError: The file cannot be read (exit 4).
        DataError: A line is no single word, or a byte is not UTF-8 (exit 3).
    """
    found = read_new_words(Path(path), wordpiece)
    count = len(found.ids)
    console.say(
        f"New words: {count:,} of {path}, each starting as the mean of its pieces: {found.unused:,} take the place of an "
        f"[unusedN], {count - found.unused:,} stand behind the last entry."
    )
    skipped = [
        f"{number:,} {what}"
        for number, what in ((found.known, "in the vocabulary already"), (found.repeated, "in the file twice"))
        if number
    ]
    if skipped:
        say("new-words-skipped", f"Words of {path} that were skipped: {', '.join(skipped)}.")
    if found.unknown:
        say(
            "new-words-unknown",
            f"{found.unknown:,} of the new words have a character that the vocabulary lacks, so they were [UNK] and start as it.",
        )
    return found
