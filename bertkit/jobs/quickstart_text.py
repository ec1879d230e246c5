"""The text of the quickstart: documents in, a corpus and a classification file out.

The task asks which of the 8 longest documents a sentence is from. Documents that are mostly contained in a longer one
are left out (the topics of Python's own help overlap), and so are sentences that stand in two documents.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.corpus.documents import CorpusSettings, ReadReport, open_corpus, read_documents
from bertkit.corpus.sentences import split_sentences
from bertkit.errors import DataError

CLASSES = 8
DOCUMENTS_NEEDED = CLASSES + 1
SHORTEST_SENTENCE = 20  # characters; shorter ones are headings and fragments that say nothing of their document
HELD_OUT = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A named document: paragraphs of running text, each on one line."""

    name: str
    paragraphs: tuple[str, ...]

    def sentences(self) -> list[str]:
        """The document's sentences in order."""
        return [sentence for paragraph in self.paragraphs for sentence in split_sentences(paragraph)]


def python_topics() -> list[Document]:
    """The topics of Python's own help, whose hard-wrapped paragraphs are laid on one line each."""
    from pydoc_data.topics import topics

    documents = []
    for name, text in sorted(topics.items()):
        paragraphs = (" ".join(block.split()) for block in text.split("\n\n"))
        documents.append(Document(name=name, paragraphs=tuple(p for p in paragraphs if any(c.isalnum() for c in p))))
    return documents


def documents_of(file: Path) -> list[Document]:
    """The documents of a person's own text file, blank lines between them."""
    lines = read_documents(open_corpus([file]), CorpusSettings(), ReadReport())
    return [Document(name=f"document-{number}", paragraphs=tuple(document)) for number, document in enumerate(lines, 1)]


def distinct(documents: Iterable[Document]) -> list[Document]:
    """The documents, longest first, without those of which a longer one holds more than half of the sentences."""
    ordered = sorted(documents, key=lambda d: (-sum(map(len, d.paragraphs)), d.name))
    kept: list[Document] = []
    seen: list[set[str]] = []
    for document in ordered:
        sentences = set(document.sentences())
        if sentences and not any(2 * len(sentences & longer) > len(sentences) for longer in seen):
            kept.append(document)
            seen.append(sentences)
    return kept


def corpus_text(documents: Sequence[Document]) -> str:
    """A paragraph a line, a blank line between documents."""
    return "\n\n".join("\n".join(document.paragraphs) for document in documents) + "\n"


def write_corpus(documents: Sequence[Document], file: Path) -> None:
    """Writes :func:`corpus_text`."""
    file.write_text(corpus_text(documents), encoding="utf-8", newline="\n")


def write_task(documents: Sequence[Document], train: Path, validation: Path) -> float:
    """Writes the two CSV files (columns ``text`` and ``label``) and gives the majority class's share of the second.

    Raises:
        DataError: Fewer than 9 documents, or a part without sentences.
    """
    if len(documents) < DOCUMENTS_NEEDED:
        raise DataError(
            f"The quickstart needs at least {DOCUMENTS_NEEDED} documents, none mostly contained in another; "
            f"this text has {len(documents)}.",
            hint="Part the documents of the text by blank lines, or leave the text out to use Python's own.",
        )
    owners: Counter[str] = Counter(sentence for document in documents for sentence in set(document.sentences()))
    rows: dict[Path, list[tuple[str, str]]] = {train: [], validation: []}
    for document in documents[:CLASSES]:
        for sentence in dict.fromkeys(document.sentences()):
            if owners[sentence] == 1 and len(sentence) >= SHORTEST_SENTENCE:
                share = int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:4], "big") / 2**32
                rows[validation if share < HELD_OUT else train].append((sentence, document.name))
    for file, part in rows.items():
        if not part:
            raise DataError(
                "the 8 longest documents have too few sentences of their own", where=file.name, hint="Name a longer text."
            )
    for file, part in rows.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(("text", "label"))
            writer.writerows(part)
    held_out = Counter(label for _, label in rows[validation])
    return max(held_out.values()) / held_out.total()
