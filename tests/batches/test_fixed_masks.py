"""Masks that hang on the raw text and the seed: the same words for any vocabulary, whole, whatever the batches."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from numpy.typing import NDArray

from bertkit.batches.examples import ExampleSettings
from bertkit.batches.fixed_masks import FixedMasks, WordMaskingSettings
from bertkit.batches.text import VocabularyFacts
from bertkit.corpus.documents import CorpusSettings, open_corpus
from bertkit.corpus.training import train_wordpiece
from bertkit.corpus.vocabulary import SPECIALS, Flags
from bertkit.corpus.worded import WordedText, read_worded
from bertkit.corpus.wordpiece import WordPiece
from bertkit.errors import DataError

TEXTS = ["\n".join(topics[name].splitlines()[:25]).replace("\n\n", "\n") for name in sorted(topics)[:16]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ONE_WORD = "\n\nalone\n\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(ONE_WORD.join(TEXTS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def vocabularies() -> list[WordPiece]:
    learned = train_wordpiece([text.splitlines() for text in TEXTS], size=300, lowercase=True)
    spelling = WordPiece([*SPECIALS, *LETTERS, *(f"##{c}" for c in LETTERS)], Flags(lowercase=True))
    cased = WordPiece([*SPECIALS, *"Theai", *(f"##{c}" for c in LETTERS)], Flags(lowercase=False))  # [UNK] nearly everywhere
    return [learned, spelling, cased]


def read(path: Path, wordpiece: WordPiece) -> WordedText:
    return read_worded(open_corpus([path]), CorpusSettings(), wordpiece)


def masks(path: Path, wordpiece: WordPiece, *, objective: str = "mlm+nsp", seed: int = 1, **masking: float) -> FixedMasks:
    examples = ExampleSettings(objective=objective, max_length=64)  # type: ignore[arg-type]
    facts = VocabularyFacts.of(wordpiece)
    return FixedMasks(read(path, wordpiece), facts, examples, WordMaskingSettings(**masking), seed=seed, segments=2)


def test_the_same_words_for_any_vocabulary(path: Path, vocabularies: list[WordPiece]) -> None:
    found = [masks(path, wordpiece) for wordpiece in vocabularies]
    for other in found[1:]:
        assert (other.chosen == found[0].chosen).all()
        assert (other.text.sizes == found[0].text.sizes).all()
        assert other.text.alphabet == found[0].text.alphabet
    assert len({len(each.text.ids) for each in found}) == 3
    assert not (masks(path, vocabularies[0], seed=2).chosen == found[0].chosen).all()


def test_the_shares_of_words(path: Path, vocabularies: list[WordPiece]) -> None:
    found = masks(path, vocabularies[0])
    words, chosen = len(found.chosen), int(found.chosen.sum())
    assert abs(chosen - 0.15 * words) <= 3 * np.sqrt(words * 0.15 * 0.85)
    becomes = np.bincount(found._becomes[found.chosen], minlength=3)
    for count, share in zip(becomes, (0.8, 0.1, 0.1), strict=True):
        assert abs(count - share * chosen) <= 3 * np.sqrt(chosen * share * (1 - share))


def originals(found: FixedMasks, number: int) -> NDArray[np.int64]:
    """The places in the text of one example's own tokens."""
    return found.places(found.examples[[number]])


def test_words_are_masked_whole_and_nothing_else_is(path: Path, vocabularies: list[WordPiece]) -> None:
    for wordpiece in vocabularies:
        found = masks(path, wordpiece)
        met = np.zeros(len(found.text.ids), dtype=bool)
        guessed = []
        for number in range(len(found.lengths)):
            batch = found.batch([number])
            own = originals(found, number)
            met[own] = True
            plain = [place for place, i in enumerate(batch.packed.input_ids.tolist()) if place > 0]
            paired = found.examples[number]["b_length"] > 0
            split = int(found.examples[number]["a_length"])
            inside = [p for p in plain[:-1] if not (paired and p == split + 1)]
            assert len(inside) == len(own)
            wanted = found.chosen[found.text.word[own]]
            assert batch.masked_positions.tolist() == [p for p, w in zip(inside, wanted, strict=True) if w]
            assert batch.masked_labels.tolist() == found.text.ids[own[wanted]].tolist()
            guessed += own[wanted].tolist()
            kinds = {}
            for place, label, word in zip(batch.masked_positions, batch.masked_labels, found.text.word[own[wanted]], strict=True):
                seen = int(batch.packed.input_ids[place])
                kind = "mask" if seen == wordpiece.mask_id else "kept" if seen == label else "other"
                kinds.setdefault(int(word), set()).add(kind)
            assert all(len(kind - {"kept"}) <= 1 and kind != {"mask", "kept"} for kind in kinds.values())
        assert met.all()  # documents of one word too, which are in no pair
        assert found.guessed().tolist() == guessed
        assert found.pairs < len(found.lengths)
        assert (found.examples["label"][: found.pairs] >= 0).all()


def test_who_else_is_in_the_batch_changes_nothing(path: Path, vocabularies: list[WordPiece]) -> None:
    found = masks(path, vocabularies[0])
    numbers = [3, 17, 5, found.pairs - 1]
    together, start = found.batch(numbers), 0
    for number in numbers:
        alone = found.batch([number]).packed
        assert together.packed.input_ids[start : start + alone.tokens].tolist() == alone.input_ids.tolist()
        start += alone.tokens
    assert together.next_sentence_labels is not None
    assert together.next_sentence_labels.tolist() == found.examples["label"][numbers].tolist()


def test_a_text_without_pairs_is_scored_by_its_words(tmp_path: Path, vocabularies: list[WordPiece]) -> None:
    place = tmp_path / "one.txt"
    place.write_text("a single document. of two sentences\n", encoding="utf-8")
    found = masks(place, vocabularies[0], probability=1.0)
    assert found.pairs == 0
    assert found.batch([0]).next_sentence_labels is None
    assert len(found.guessed()) == len(found.text.ids)
    place.write_text("\n \u200d\n", encoding="utf-8")
    with pytest.raises(DataError, match="no token"):
        masks(place, vocabularies[0])
