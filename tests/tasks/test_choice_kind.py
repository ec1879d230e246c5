"""The kind ``choice``: sequences as transformers lays them, whole questions in every batch, ties, and what is out of reach."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from bertkit.batches.labelled import LabelledSource, batches_by_tokens
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, ModelError, SettingsError
from bertkit.labelled.rows import ChoiceRow, Place
from bertkit.model.config import EncoderConfig
from bertkit.notices import collecting
from bertkit.tasks.choice import Choice, ChoiceSettings
from bertkit.tasks.choice_examples import ChoiceExample
from bertkit.tasks.constant import constant_score
from bertkit.tasks.examples import Encoded
from bertkit.tasks.labels import Labels
from bertkit.tasks.models import build_model, load_model
from bertkit.tasks.prediction import Prediction
from bertkit.tasks.registry import task_named

KIND, TASK, NONE = Choice(), task_named("choice"), Labels(names=(), problem="")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnop", "##e", "he", "then", ".", "中", "文"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def wordpiece(vocabulary: Path) -> WordPiece:
    return load_wordpiece(vocabulary, cased=False)


def row(context: str, *candidates: str, question: str = "", label: int | None = 0) -> ChoiceRow:
    return ChoiceRow(
        id=context, context=context, question=question, candidates=candidates, label=label, place=Place("own.csv", 7)
    )


def encode(
    rows: list[ChoiceRow], wordpiece: WordPiece, *, length: int = 32, training: bool = False, segments: int = 2
) -> Encoded:
    return KIND.encode(rows, wordpiece, NONE, ChoiceSettings(max_length=length), segments=segments, for_training=training)


def sequences(example: ChoiceExample) -> list[list[int]]:
    return [example.ids[a:b].tolist() for a, b in pairwise(accumulate(example.tokens, initial=0))]


ROWS = [
    row("a b c. d e", "f", "g h i j k l m n o p", "he", question="then", label=2),
    row("", "a", "中文 b", question="he ce", label=1),
    row("b " * 5, "a b c d", "", "e", "f", "g"),
]


def test_sequences_are_those_of_run_swag(wordpiece: WordPiece, vocabulary: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertTokenizerFast(str(vocabulary))
    for example, each in zip(encode(ROWS, wordpiece).examples, ROWS, strict=True):
        contexts = [each.context] * len(each.candidates)
        wanted = theirs(contexts, [f"{each.question} {candidate}" for candidate in each.candidates], truncation=True)
        assert sequences(example) == wanted["input_ids"]
        assert example.types.tolist() == [kind for kinds in wanted["token_type_ids"] for kind in kinds]
        assert (example.label, example.length) == (each.label, sum(map(len, wanted["input_ids"])))


def test_the_context_gives_way_then_the_question_then_the_candidate(wordpiece: WordPiece) -> None:
    encoded = encode([row("a b c d e f", "g", "g h i j", "g h i j k l m n", question="he then")], wordpiece, length=10)
    ids = {word: number for number, word in enumerate(WORDS)}
    wanted = ["[CLS] a b c d [SEP] he then g [SEP]", "[CLS] a [SEP] he then g h i j [SEP]", "[CLS] [SEP] g h i j k l m [SEP]"]
    assert sequences(encoded.examples[0]) == [[ids[word] for word in text.split()] for text in wanted]
    coverage = encoded.coverage
    assert (coverage.cut_rows, coverage.cut_tokens) == (1, 2 + 5 + 9)
    said = " ".join(coverage.lines())
    assert "1 of 1 texts were cut" in said
    assert "context gives way first" in said
    assert "1 candidates are longer than a sequence" in said
    assert encode([row("a", "b", "c")], wordpiece).coverage.lines() == []
    with pytest.raises(SettingsError, match="no room"):
        encode([row("a", "b", "c")], wordpiece, length=4)
    with collecting() as notices:
        assert encode(ROWS, wordpiece, segments=1).examples[0].types.max() == 0
    assert [notice.kind for notice in notices] == ["one-segment"]


def test_a_question_is_never_parted(wordpiece: WordPiece) -> None:
    rows = [row("a " * (n % 7), *("b c d e"[: 2 * k] for k in range(1, 3 + n % 3)), label=n % 2) for n in range(23)]
    examples = encode(rows, wordpiece, training=True).examples
    source = LabelledSource(examples, KIND.collate, seed=3, batch_size=8, micro_tokens=40)
    for world in (1, 3):
        batches = [b for i in range(source.steps(0)) for rank in range(world) for b in source.step(0, i, rank, world)]
        order = [examples[number] for number in source.order(0)]
        assert sorted(c for batch in batches for c in batch.choices) == sorted(len(e.tokens) for e in order)
        assert [label for batch in batches for label in batch.labels.tolist()] == [example.label for example in order]
        assert sum(batch.counts()["choice"] for batch in batches) == 23
        for batch in batches:
            assert sum(batch.choices) == len(batch.packed.boundaries) - 1
            assert batch.tokens <= 40 or len(batch.choices) == 1
    plan = batches_by_tokens([example.length for example in examples], 40, window=10)
    assert sorted(number for batch in plan for number in batch) == list(range(23))
    assert KIND.collate([examples[0], encode([row("a", "b", "c", label=None)], wordpiece).examples[0]]).labels is None
    with pytest.raises(DataError, match="no label"):
        encode([row("a", "b", "c", label=None)], wordpiece, training=True)


def test_equal_candidates_have_one_score_and_ties_are_said(wordpiece: WordPiece) -> None:
    rows = [row("a", "b", "c", "B", label=2), row("c", "d", "e", "f", label=0)]
    encoded = encode(rows, wordpiece)
    assert (encoded.coverage.unreachable, encoded.coverage.ceilings) == (1, {"accuracy": 0.5})
    outputs = [np.array([1.0, 0.0, 1.0000001], np.float32), np.array([0.0, 2.0, 1.0], np.float32)]
    with collecting() as said:
        found = KIND.decode(outputs, encoded.examples, rows, NONE, None)
    assert [(one.value, one.gold, one.more["candidate"]) for one in found] == [(0, 2, "b"), (1, 0, "e")]
    assert [one.more.get("tied") for one in found] == [[0, 2], None]
    assert [notice.kind for notice in said] == ["ties"]
    assert found[1].score == pytest.approx(np.exp(2) / (1 + np.exp(1) + np.exp(2)))
    assert sum(found[1].more["probabilities"]) == pytest.approx(1)
    scores = KIND.score([*found, Prediction(id="x", value=1, gold=1)], [*rows, rows[1]], TASK, NONE)
    assert (scores.values, scores.examples) == ({"accuracy": pytest.approx(1 / 3)}, 3)
    assert scores.interval is not None
    wrong = KIND.detail(found, rows, NONE).wrong
    assert {one.id: (one.texts["right"], one.texts["chosen"]) for one in wrong} == {"c": ("d", "e"), "a": ("B", "b")}
    with pytest.raises(DataError, match="not a number"):
        KIND.decode([np.array([0.0, np.nan, 0.0]), outputs[1]], encoded.examples, rows, NONE, None)


def test_equal_questions_with_other_golds_are_out_of_reach(wordpiece: WordPiece) -> None:
    rows = [row("a", "b", "c", label=label) for label in (0, 1, 1)] + [row("b", "c", "d", label=0)]
    coverage = encode(rows, wordpiece).coverage
    assert (coverage.unreachable, coverage.ceilings) == (1, {"accuracy": 0.75})


def test_what_one_answer_for_all_scores() -> None:
    rows = [row("a", "b", "c", label=label) for label in (1, 0, 1, 1)]
    assert constant_score(KIND, rows, TASK, NONE) == 0.75


def test_a_regressions_one_output_is_no_score_of_candidates() -> None:
    with pytest.raises(ModelError, match="'score'"):
        KIND.labels(ROWS, TASK, ["score"], for_training=False)
    with collecting() as said:
        assert KIND.labels(ROWS, TASK, ["score"], for_training=True).new_head
    assert [notice.kind for notice in said] == ["new-head"]
    assert not KIND.labels(ROWS, TASK, None, for_training=True).new_head


@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_outputs_loss_and_gradients_are_transformers(
    wordpiece: WordPiece, tmp_path: Path, dtype: torch.dtype, near: float
) -> None:
    """Of a batch with uneven lengths and counts; transformers has one count a batch, so it computes question by question."""
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "num_hidden_layers": 2}
    config = EncoderConfig.of_size("tiny", vocab_size=len(WORDS)).changed(
        **shape, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    built = build_model("choice", config, seed=2)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter += torch.randn(parameter.shape, generator=torch.Generator().manual_seed(4)) * 0.2
    built.save(tmp_path)
    theirs = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path).to(dtype).train()
    ours = load_model(tmp_path, "choice", must_have_head=True)[0].to(dtype).train()
    batch = KIND.collate(encode(ROWS, wordpiece, training=True).examples)
    assert batch.labels is not None
    assert batch.choices == (3, 2, 5)
    part = ours(batch)["choice"]
    (part.total / part.count).backward()
    padded, first, losses, logits = batch.packed.to_padded(), 0, [], []
    for count, label in zip(batch.choices, batch.labels, strict=True):
        inputs = {name: value[first : first + count][None] for name, value in padded.items()}
        said = theirs(**inputs, labels=label[None])
        losses.append(said.loss)
        logits.append(said.logits[0])
        first += count
    torch.stack(losses).mean().backward()
    alike(ours.outputs(batch.packed)[:, 0], torch.cat(logits), near)
    alike(part.total / part.count, torch.stack(losses).mean(), near)
    wanted = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    found = ours.moments_to_file({name: p.grad for name, p in ours.named_parameters() if p.grad is not None})
    assert found.keys() == wanted.keys()
    largest = max(float(grad.abs().max()) for grad in wanted.values() if grad is not None)
    for name, grad in wanted.items():
        assert grad is not None
        assert float((found[name] - grad).abs().max()) <= near * largest, name


def alike(ours: torch.Tensor, theirs: torch.Tensor, near: float) -> None:
    ours, theirs = ours.detach(), theirs.detach()
    assert float((ours - theirs).abs().max()) <= near * float(theirs.abs().max())
