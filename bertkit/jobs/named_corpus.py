"""What ``--corpus`` names: texts, token stores, folders of stores (the shards of a text), or all of these together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.joined import CorpusStore, open_stores, store_folders
from bertkit.corpus.sources import Corpus
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, SettingsError, UsageError
from bertkit.notices import say


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCorpus:
    """A corpus before it is read.

    Attributes:
        stores: Folders of token stores.
        texts: What is still to be tokenised; None where stores alone are named.
    """

    stores: tuple[Path, ...]
    texts: Corpus | None

    @staticmethod
    def of(paths: Sequence[str], settings: CorpusSettings) -> NamedCorpus:
        """Looks at what was named.

        Raises:
            BertkitError: As :func:`bertkit.corpus.documents.open_corpus`.
            UsageError: A folder holds stores and texts.
            SettingsError: Words are asked for, and stores were built already.
        """
        stores: list[Path] = []
        texts: list[str] = []
        for path in paths:
            found = _stores_of(Path(path))
            stores += found
            texts += [] if found else [path]
        if stores:
            _check_settings(settings, stores[0], alone=not texts)
        return NamedCorpus(stores=tuple(stores), texts=open_corpus(texts, settings) if texts or not stores else None)

    def tokenizer(self) -> WordPiece | None:
        """The one that the stores were made with; None without stores.

        Raises:
            DataError: A store's vocabulary is not the one that made it.
        """
        if not self.stores:
            return None
        opened = open_stores(self.stores)
        wordpiece = load_wordpiece(self.stores[0])
        if wordpiece.fingerprint != opened.tokenizer:
            raise DataError(
                "The vocabulary beside this token store is not the one that made it.",
                where=str(self.stores[0]),
                hint="Remove the store and build it again: bertkit corpus build.",
            )
        return wordpiece

    def must_agree(self, wordpiece: WordPiece, where: str) -> None:
        """Refuses another tokenizer than the stores', naming both.

        Raises:
            UsageError: It is another (exit 2).
        """
        own = self.tokenizer()
        if own is not None and own != wordpiece:
            raise UsageError(
                f"The token store was made with another tokenizer ({own}) than {where} has ({wordpiece}).",
                where=f"{self.stores[0]} and {where}",
                hint="Leave --tokenizer out, or name the text itself: it is then tokenised anew.",
            )

    def joined(self, built: CorpusStore | None) -> CorpusStore:
        """The stores, each byte checked, with what the texts became behind them; a text whose store is named too is read once.

        Raises:
            DataError: A store is damaged.
        """
        if not self.stores:
            assert built is not None
            return built
        return open_stores([*self.stores, *(built.folders if built is not None else ())], checksums=True)


def _stores_of(path: Path) -> list[Path]:
    found = store_folders(path)
    if found and found != [path]:
        others = [child.name for child in path.iterdir() if child.is_file() and not child.name.startswith(".")]
        if others:
            raise UsageError(
                f"{path} holds token stores and other files ({', '.join(sorted(others)[:3])}).",
                where=str(path),
                hint="Name the stores and the texts one by one.",
            )
    return found


def _check_settings(settings: CorpusSettings, store: Path, *, alone: bool) -> None:
    if settings.words is not None and alone:
        raise SettingsError(
            f"The words of a token store were found when it was built, and {store} is built.",
            where="corpus.words",
            hint="Leave --words out; `bertkit corpus build` takes it.",
        )
    given = [name for name, value in settings if name != "words" and value != type(settings).model_fields[name].default]
    if given:
        say(
            "store-settings",
            f"{store} is taken as it was built: {', '.join(f'corpus.{name}' for name in given)} cannot change it.",
        )
