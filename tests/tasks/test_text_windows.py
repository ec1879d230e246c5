"""Long texts in windows, pooled; and what labels count in the loss, against scikit-learn's and torch's own arithmetic."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight

from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import SettingsError, UsageError
from bertkit.labelled.rows import Place, TextRow
from bertkit.model.config import EncoderConfig
from bertkit.tasks.classification import Classification, ClassificationSettings
from bertkit.tasks.labels import Labels
from bertkit.tasks.models import build_model

KIND = Classification()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
AB = Labels(names=("a", "b"))


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory: pytest.TempPathFactory) -> WordPiece:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, *LETTERS]) + "\n", encoding="utf-8")
    return load_wordpiece(path, cased=False)


def row(text: str, pair: str | None = None, label: str | None = "a") -> TextRow:
    return TextRow(id=text[:3], text=text, pair=pair, label=label, place=Place("own.csv", 2))


def spelled(wordpiece: WordPiece, ids: np.ndarray) -> str:
    return " ".join(wordpiece.vocabulary[number].strip("[]") for number in ids)


def encoded(wordpiece: WordPiece, rows: Sequence[TextRow], labels: Labels = AB, **settings: object) -> list[str]:
    examples = KIND.encode(rows, wordpiece, labels, ClassificationSettings(**settings)).examples  # type: ignore[arg-type]
    return [spelled(wordpiece, example.ids) for example in examples]


def test_words_that_the_vocabulary_lacks_are_told(wordpiece: WordPiece) -> None:
    def told(texts: Sequence[str]) -> list[str]:
        coverage = KIND.encode([row(text) for text in texts], wordpiece, AB, ClassificationSettings()).coverage
        assert coverage.facts()["unknown_tokens"] == sum(map(len, texts)) - sum(text.count("a") for text in texts)
        return coverage.lines()

    assert told(["房间很好", "a"]) == ["4 of 9 tokens are [UNK]: the vocabulary has no piece of these words."]
    assert told(["a", "a"]) == []


def test_a_long_text_is_laid_in_windows_that_overlap(wordpiece: WordPiece) -> None:
    rows = [row("a b c d e f g h"), row("x y")]
    assert encoded(wordpiece, rows, max_length=6) == ["CLS a b c d SEP", "CLS x y SEP"]
    windows = ["CLS a b c d SEP", "CLS d e f g SEP", "CLS g h SEP", "CLS x y SEP"]
    assert encoded(wordpiece, rows, max_length=6, windows="mean") == windows  # a quarter of four: one token
    assert encoded(wordpiece, rows, max_length=6, windows="max", stride=2)[1] == "CLS c d e f SEP"
    assert encoded(wordpiece, rows, max_length=6, windows="max", stride=0)[:2] == ["CLS a b c d SEP", "CLS e f g h SEP"]
    assert encoded(wordpiece, rows, max_length=10, windows="mean") == encoded(wordpiece, rows, max_length=10)


def test_of_a_pair_the_longer_text_goes_in_windows_beside_the_shorter(wordpiece: WordPiece) -> None:
    rows = [row("x y", "a b c d e f")]
    assert encoded(wordpiece, rows, max_length=8, windows="mean", stride=1) == [
        "CLS x y SEP a b c SEP",
        "CLS x y SEP c d e SEP",
        "CLS x y SEP e f SEP",
    ]
    swapped = [row("a b c d e f", "x y")]
    assert encoded(wordpiece, swapped, max_length=8, windows="mean", stride=1)[2] == "CLS e f SEP x y SEP"
    both = KIND.encode([row(" ".join(LETTERS), "a b c d")], wordpiece, AB, ClassificationSettings(max_length=8, windows="mean"))
    assert (both.coverage.cut_rows, both.coverage.cut_tokens) == (1, 2)  # the shorter one has half of the room
    with pytest.raises(UsageError, match="stride of 4"):
        encoded(wordpiece, rows, max_length=8, windows="mean", stride=4)


def test_every_text_is_answered_once_with_its_windows_pooled(wordpiece: WordPiece) -> None:
    rows = [row("a b c d e f g h", label="b"), row("x y")]
    outputs = [np.array(each, np.float32) for each in ([0.0, 1.0], [4.0, 0.0], [0.0, 2.0], [1.0, 3.0])]
    for how, logits in (("mean", [4 / 3, 1.0]), ("max", [4.0, 2.0])):
        settings = ClassificationSettings(max_length=6, windows=how)  # type: ignore[arg-type]
        found = KIND.encode(rows, wordpiece, AB, settings, for_training=True)
        assert [example.label for example in found.examples] == [1, 1, 1, 0]  # a window has its text's label
        said = KIND.decode(outputs, found.examples, rows, AB, settings)
        assert [one.value for one in said] == ["a", "b"]
        shares = np.exp(logits) / np.exp(logits).sum()
        assert list(said[0].more["probabilities"].values()) == pytest.approx(shares.tolist())
        assert (found.coverage.rows, found.coverage.examples, found.coverage.cut_rows) == (2, 4, 0)
        assert "1 of 2 texts are longer than 6 tokens" in found.coverage.lines()[0]


def test_windows_of_numbers_are_averaged(wordpiece: WordPiece) -> None:
    labels, settings = Labels(names=("score",), problem="regression"), ClassificationSettings(max_length=6, windows="mean")
    rows = [TextRow(id="1", text="a b c d e f", label=2.0, place=Place("own.csv", 2))]
    found = KIND.encode(rows, wordpiece, labels, settings, for_training=True)
    said = KIND.decode([np.array([1.0]), np.array([4.0])], found.examples, rows, labels, settings)
    assert said[0].value == 2.5


# what labels count


def loss_of(rows: list[TextRow], wordpiece: WordPiece, weights: object) -> tuple[float, torch.Tensor, torch.Tensor]:
    """The step's loss as the loop divides it, with the logits and labels that it is of."""
    settings = ClassificationSettings(class_weights=weights)  # type: ignore[arg-type]
    batch = KIND.collate(KIND.encode(rows, wordpiece, AB, settings, for_training=True).examples)
    config = EncoderConfig.of_size("tiny", vocab_size=wordpiece.size).changed(num_hidden_layers=1, labels=("a", "b"))
    model = build_model("classification", config, seed=3).eval()
    part = model(batch)["classification"]
    assert part.count == batch.counts()["classification"] == len(rows)
    return float(part.total.detach()) / part.count, model.outputs(batch.packed).detach(), batch.labels  # type: ignore[return-value]


def test_weights_of_labels_are_the_hand_counted_loss(wordpiece: WordPiece) -> None:
    rows = [row(text, label=label) for text, label in zip("abcdefgh", "aaaaaabb", strict=True)]
    plain, logits, gold = loss_of(rows, wordpiece, None)
    assert plain == pytest.approx(float(F.cross_entropy(logits, gold)), rel=1e-5)
    ours = torch.tensor(compute_class_weight("balanced", classes=np.array([0, 1]), y=gold.numpy()), dtype=torch.float32)
    balanced, logits, gold = loss_of(rows, wordpiece, "balanced")
    each = F.cross_entropy(logits, gold, reduction="none")
    assert balanced == pytest.approx(float((ours[gold] * each).mean()), rel=1e-5)
    named, logits, gold = loss_of(rows, wordpiece, {"B": 5.0})
    assert named == pytest.approx(float(F.cross_entropy(logits, gold, weight=torch.tensor([1.0, 5.0]))), rel=1e-5)
    assert len({round(each, 4) for each in (plain, balanced, named)}) == 3


def test_weights_that_cannot_be_given(wordpiece: WordPiece) -> None:
    with pytest.raises(SettingsError, match="no label 'c' to weigh"):
        loss_of([row("a"), row("b", label="b")], wordpiece, {"c": 2.0})
    with pytest.raises(SettingsError, match="weight 0"):
        loss_of([row("a")], wordpiece, {"a": 0.0})
    with pytest.raises(SettingsError, match="one label a text"):
        KIND.encode(
            [TextRow(id="1", text="a", label=2.0, place=Place("own.csv", 2))],
            wordpiece,
            Labels(names=("score",), problem="regression"),
            ClassificationSettings(class_weights="balanced"),
            for_training=True,
        )


def test_evaluation_knows_no_weights(wordpiece: WordPiece, tmp_path: Path) -> None:
    found = KIND.encode([row("a"), row("b", label="b")], wordpiece, AB, ClassificationSettings(class_weights={"a": 3.0}))
    assert KIND.collate(found.examples).weights is None
