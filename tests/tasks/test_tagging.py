from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.corpus.vocabulary import Flags
from bertkit.corpus.wordpiece import WordPiece, load_wordpiece
from bertkit.errors import DataError, ModelError, UsageError
from bertkit.labelled.rows import TaggedRow
from bertkit.metrics.entities import entity_scores
from bertkit.notices import collecting
from bertkit.tasks.labels import Labels
from bertkit.tasks.registry import task_named
from bertkit.tasks.tagging import Tagging
from bertkit.tasks.tagging_examples import TaggingExample, TaggingSettings

WORDS = ["hello", "a", "na", "play", "##ing", "##s", "[", "]", "sep", "x"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
KIND = Tagging()
TASK = task_named("conll2003")
LABELS = Labels(names=("O", "B-X", "I-X", "B-Y", "I-Y"), problem="")


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece(VOCABULARY, Flags(lowercase=True))


def row(words: str, tags: str | None = None, *, identity: str = "0") -> TaggedRow:
    return TaggedRow(id=identity, words=tuple(words.split(" ")), tags=None if tags is None else tuple(tags.split(" ")))


def encoded(rows: list[TaggedRow], wordpiece: WordPiece, *, training: bool = False, **how: Any) -> Any:
    return KIND.encode(rows, wordpiece, LABELS, TaggingSettings(**how), for_training=training)


def rigged(examples: list[TaggingExample]) -> list[np.ndarray]:
    """Logits that give word w of a row the label w modulo 5 at its first piece, and another one at every other place."""
    outputs = []
    for example in examples:
        logits = np.zeros((example.length, 5), dtype=np.float32)
        logits[:, 0] = 1
        for place, word in zip(example.positions, example.words, strict=True):
            logits[place] = 0
            logits[place, word % 5] = 2
        outputs.append(logits)
    return outputs


def test_a_tag_sits_on_the_first_piece(wordpiece: WordPiece) -> None:
    examples = encoded([row("playing hello plays", "B-X I-X O")], wordpiece, training=True).examples
    assert [VOCABULARY[i] for i in examples[0].ids] == ["[CLS]", "play", "##ing", "hello", "play", "##s", "[SEP]"]
    assert examples[0].positions.tolist() == [1, 3, 4]
    assert examples[0].labels is not None
    assert examples[0].labels.tolist() == [1, 2, 0]
    assert set(examples[0].types.tolist()) == {0}


def test_special_token_text_is_text(wordpiece: WordPiece) -> None:
    example = encoded([row("[SEP] hello")], wordpiece).examples[0]
    assert [VOCABULARY[i] for i in example.ids] == ["[CLS]", "[", "sep", "]", "hello", "[SEP]"]
    assert example.positions.tolist() == [1, 4]


def test_a_batch_counts_positions_over_all_its_tokens(wordpiece: WordPiece) -> None:
    rows = [row("playing hello", "B-X O"), row("a na", "O B-Y")]
    batch = KIND.collate(encoded(rows, wordpiece, training=True).examples)
    assert batch.label_positions.tolist() == [1, 3, 6, 7]
    assert batch.packed.input_ids[batch.label_positions].tolist() == [VOCABULARY.index(w) for w in ("play", "hello", "a", "na")]
    assert batch.labels is not None
    assert batch.labels.tolist() == [1, 0, 0, 3]
    assert (batch.counts(), batch.tokens) == ({"tagging": 4}, 9)
    assert batch.labels.dtype == batch.label_positions.dtype == torch.int64
    assert batch.to("cpu").label_positions.tolist() == [1, 3, 6, 7]
    assert KIND.collate(encoded(rows, wordpiece).examples).counts() == {"tagging": 0}


def test_deleted_words_get_o_and_their_entities_are_missed(wordpiece: WordPiece) -> None:
    rows = [row("hello \u200e a \ufffd na", "O B-X O I-X B-Y")]
    result = encoded(rows, wordpiece)
    said = KIND.decode(rigged(result.examples), result.examples, rows, LABELS, TaggingSettings())
    assert said[0].value == ["O", "O", "I-X", "O", "I-Y"]
    assert said[0].gold == ["O", "B-X", "O", "B-X", "B-Y"]
    # of three gold entities the two on deleted words are out of reach
    assert result.coverage.unreachable == 2
    assert result.coverage.ceilings == {"recall": pytest.approx(1 / 3), "f1": pytest.approx(2 * 1 / (3 + 1))}
    best = replace(said[0], value=["O", "O", "O", "O", "B-Y"])
    values = KIND.score([best], rows, TASK, LABELS).values
    assert (values["f1"], values["recall"]) == (result.coverage.ceilings["f1"], result.coverage.ceilings["recall"])
    assert any("2 words are deleted" in line for line in result.coverage.lines())


def test_words_that_no_piece_stands_for_are_counted_and_plain_tags_have_a_ceiling(wordpiece: WordPiece) -> None:
    coverage = encoded([row("hello \u200e qq", "O O B-X")], wordpiece).coverage
    facts = coverage.facts()
    assert [facts[name] for name in ("words", "deleted_words", "unknown_words", "unreachable")] == [3, 1, 1, 0]
    assert any("1 of 3 words are [UNK]" in line for line in coverage.lines())
    rows = [row("hello \u200e a \ufffd", "UH SYM DT SYM")]
    labels = Labels(names=("DT", "SYM", "UH"), problem="")
    result = KIND.encode(rows, wordpiece, labels, TaggingSettings())
    assert (result.coverage.unreachable, result.coverage.ceilings) == (2, {"accuracy": 0.5})
    best = decoded_as(rows, [["UH", "O", "DT", "O"]])
    assert KIND.score(best, rows, KIND.judged(TASK, rows), labels).values["accuracy"] == 0.5


def test_what_went_wrong_is_counted_by_sorts(wordpiece: WordPiece) -> None:
    rows = [row("a na a", "B-X I-X O"), row("a na a", "B-X I-X O", identity="1"), row("x a", "B-Y O", identity="2")]
    said = decoded_as(rows, [["B-Y", "I-Y", "O"], ["O", "B-Y", "I-Y"], ["B-Y", "B-X"]])
    assert KIND.detail(said, rows, LABELS).facts()["errors"] == [
        {"fault": "type", "gold": "X", "predicted": "Y", "count": 1},
        {"fault": "type and borders", "gold": "X", "predicted": "Y", "count": 1},
        {"fault": "invented", "gold": "", "predicted": "X", "count": 1},
    ]
    rows = [row("a na", "DT NN")]
    detail = KIND.detail(decoded_as(rows, [["NN", "NN"]]), rows, Labels(names=("DT", "NN"), problem=""))
    assert detail.confusion is not None
    assert (detail.confusion.taken_for("DT"), detail.errors) == ([("NN", 1)], {})


def test_a_sentence_of_deleted_words_alone(wordpiece: WordPiece) -> None:
    rows = [row("\u200e \ufffd", "O B-X", identity="7"), row("a", "O")]
    result = encoded(rows, wordpiece)
    said = KIND.decode(rigged(result.examples), result.examples, rows, LABELS, TaggingSettings())
    assert [one.value for one in said] == [["O", "O"], ["O"]]
    assert said[0].score is None
    assert {example.row for example in encoded(rows, wordpiece, training=True).examples} == {1}


def test_400_words_get_400_tags_by_windows(wordpiece: WordPiece) -> None:
    rows = [row(" ".join(["playing"] * 400))]
    examples = encoded(rows, wordpiece, max_length=128).examples
    assert len(examples) > 6
    assert max(example.length for example in examples) == 128
    said = KIND.decode(rigged(examples), examples, rows, LABELS, TaggingSettings(max_length=128))
    assert said[0].value == [LABELS.names[i % 5] for i in range(400)]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from(["a", "playing", "\u200e", "zzz", "hello"]), max_size=40), min_size=1, max_size=4),
    st.integers(3, 20),
    st.data(),
)
def test_each_word_is_tagged_once_whatever_the_windows(words: list[list[str]], length: int, data: st.DataObject) -> None:
    wordpiece = WordPiece(VOCABULARY, Flags(lowercase=True))
    rows = [TaggedRow(id=str(i), words=tuple(sentence), tags=("O",) * len(sentence)) for i, sentence in enumerate(words)]
    stride = data.draw(st.one_of(st.none(), st.integers(0, length - 3)))
    how = {"max_length": length, "stride": stride}
    for training in (False, True):
        examples = encoded(rows, wordpiece, training=training, **how).examples
        tagged = [(example.row, int(word)) for example in examples for word in example.words]
        expected = [(r, w) for r, sentence in enumerate(words) for w, word in enumerate(sentence) if word != "\u200e"]
        assert sorted(tagged) == expected
        firsts = {"a": "a", "playing": "play", "zzz": "[UNK]", "hello": "hello"}
        for example in examples:
            assert example.length <= length
            assert [VOCABULARY[example.ids[p]] for p in example.positions] == [
                firsts[words[example.row][w]] for w in example.words
            ]
    examples = encoded(rows, wordpiece, **how).examples
    said = KIND.decode(rigged(examples), examples, rows, LABELS, TaggingSettings(**how))
    for one, sentence in zip(said, words, strict=True):
        assert one.value == ["O" if word == "\u200e" else LABELS.names[i % 5] for i, word in enumerate(sentence)]


def test_a_word_is_tagged_in_the_window_where_it_has_most_context(wordpiece: WordPiece) -> None:
    examples = encoded([row(" ".join("a" * 14))], wordpiece, max_length=12, stride=6).examples
    # windows of words 0-9 and 4-13: 0-6 have more context in the first
    assert [example.words.tolist() for example in examples] == [list(range(7)), list(range(7, 14))]


def test_strides_that_cannot_be_are_refused(wordpiece: WordPiece) -> None:
    for stride in (-1, 10, 11):
        with pytest.raises(UsageError, match=f"stride of {stride} .*room for 10"):
            encoded([row("a")], wordpiece, max_length=12, stride=stride)


def test_scores_of_a_model_that_is_right(wordpiece: WordPiece) -> None:
    rows = [row("a na hello", "I-X B-X O"), row("x a", "O I-Y", identity="1")]  # IOB1
    examples = encoded(rows, wordpiece, training=True).examples
    outputs = []
    for example in examples:
        logits = np.zeros((example.length, 5), dtype=np.float32)
        logits[example.positions, example.labels] = 3
        outputs.append(logits)
    said = KIND.decode(outputs, examples, rows, LABELS, TaggingSettings())
    assert [one.value for one in said] == [["B-X", "B-X", "O"], ["O", "B-Y"]]
    scores = KIND.score(said, rows, TASK, LABELS)
    assert scores.values == {
        "precision": 1.0, "recall": 1.0, "f1": 1.0, "f1_strict": 1.0, "accuracy": 1.0,
        "X_precision": 1.0, "X_recall": 1.0, "X_f1": 1.0, "Y_precision": 1.0, "Y_recall": 1.0, "Y_f1": 1.0,
    }  # fmt: skip
    assert (scores.primary, scores.examples, scores.interval) == ("f1", 2, (1.0, 1.0))
    assert said[0].score == pytest.approx(np.exp(3) / (np.exp(3) + 4))


def test_stray_tags_count_for_f1_and_not_strictly() -> None:
    rows = [row("a na", "B-X I-X")]
    values = KIND.score(decoded_as(rows, [["I-X", "I-X"]]), rows, TASK, LABELS).values
    assert (values["f1"], values["f1_strict"]) == (1.0, 0.0)


def decoded_as(rows: list[TaggedRow], tags: list[list[str]]) -> list[Any]:
    from bertkit.tasks.prediction import Prediction

    return [Prediction(id=asked.id, value=said) for asked, said in zip(rows, tags, strict=True)]


def test_what_is_undefined_is_none_and_said() -> None:
    rows = [row("a na", "O O")]
    with collecting() as heard:
        scores = KIND.score(decoded_as(rows, [["O", "O"]]), rows, TASK, LABELS)
    assert (scores.best, scores.interval, scores.values["accuracy"]) == (None, None, 1.0)
    assert [notice.kind for notice in heard] == ["undefined"]
    with pytest.raises(DataError, match="nothing to score"):
        KIND.score(decoded_as([row("a")], [["O"]]), [row("a")], TASK, LABELS)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_named_by_its_sentence(wordpiece: WordPiece, bad: float) -> None:
    rows = [row("a"), row("na", identity="7")]
    examples = encoded(rows, wordpiece).examples
    outputs = rigged(examples)
    outputs[1][1, 2] = bad
    with pytest.raises(DataError, match="sentence 7"):
        KIND.decode(outputs, examples, rows, LABELS, TaggingSettings())


# --- labels ------------------------------------------------------------------------------------------------------------


def test_labels_come_from_the_training_rows_as_iob2() -> None:
    rows = [row("a na a", "I-PER O I-LOC"), row("a", None)]
    labels = KIND.labels(rows, TASK, None, for_training=True)
    assert labels.names == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert labels.new_head
    assert labels.outputs == 5


def test_a_models_labels_are_matched_by_name() -> None:
    rows = [row("a na", "B-X I-X")]
    same = KIND.labels(rows, TASK, ["i-x", "o", "b-x"], for_training=True)
    assert (same.names, same.new_head) == (("I-X", "O", "B-X"), False)
    with collecting() as heard:
        other = KIND.labels(rows, TASK, ["O", "B-Z"], for_training=True)
    assert (other.names, other.new_head) == (("O", "B-X", "I-X"), True)
    assert [notice.kind for notice in heard] == ["new-head"]


def test_evaluation_takes_the_models_own_labels_and_refuses_those_of_another_task() -> None:
    rows = [row("a na", "B-X O")]
    labels = KIND.labels(rows, TASK, ["O", "B-Y", "I-Y", "B-X", "I-X"], for_training=False)
    assert labels.names == ("O", "B-Y", "I-Y", "B-X", "I-X")
    assert KIND.labels(rows, TASK, ["O", "I-X"], for_training=False).names == ("O", "I-X")  # a head of IOB1
    assert KIND.labels(rows, TASK, ["O", "B-Y"], for_training=False).names == ("O", "B-Y")  # X is merely missed
    with pytest.raises(DataError, match="'B-X' of the word 'a'"):
        KIND.labels(rows, task_named("tokens"), ["O", "B-Y"], for_training=False)
    with pytest.raises(DataError, match="'B-X' of the word 'a'"):
        KIND.labels(rows, TASK, ["DT", "NN"], for_training=False)
    assert KIND.labels(rows, TASK, None, for_training=False).names == ("O", "B-X", "I-X")  # without a model
    with pytest.raises(ModelError, match="no names"):
        KIND.labels(rows, TASK, ["LABEL_0", "LABEL_1"], for_training=False)
    with pytest.raises(DataError, match="no tags to train on"):
        KIND.labels([row("a")], TASK, None, for_training=True)
    with pytest.raises(DataError, match="two tags at least; the training rows have 'O' alone"):
        KIND.labels([row("a na", "O O")], TASK, None, for_training=True)


def test_a_models_labels_are_spelled_as_the_data_spell_them(wordpiece: WordPiece) -> None:
    rows = [row("a na hello", "B-Per I-Per O")]
    labels = KIND.labels(rows, TASK, ["o", "b-PER", "i-per", "b-loc"], for_training=False)
    assert labels.names == ("O", "B-Per", "I-Per", "b-loc")
    assert KIND.encode(rows, wordpiece, labels, TaggingSettings()).coverage.unreachable == 0
    small = [row("a na", "b-x o")]  # names of no entities, as they stand
    with pytest.raises(DataError, match="'b-x' of the word 'a' is none of the labels O, B-X"):
        KIND.labels(small, TASK, ["O", "B-X"], for_training=False)
    assert KIND.labels([row("a", "nn")], TASK, ["DT", "NN"], for_training=False).names == ("DT", "nn")
    both = ["O", "B-PER", "I-PER", "B-Per", "I-Per"]  # types that differ in case alone are two
    trained = KIND.labels([row("a na", "B-PER B-Per")], TASK, ["O", "B-Per", "I-Per", "B-PER", "I-PER"], for_training=True)
    assert (set(trained.names), trained.new_head) == (set(both), False)
    assert KIND.labels(rows, TASK, both, for_training=False).names == tuple(both)


def test_a_head_of_another_scheme_answers_in_iob2(wordpiece: WordPiece) -> None:
    rows = [row("a na x hello", "B-X I-X B-Y O")]
    labels = KIND.labels(rows, TASK, ["O", "B-X", "I-X", "E-X", "S-Y"], for_training=False)
    examples = KIND.encode(rows, wordpiece, labels, TaggingSettings()).examples
    logits = np.zeros((examples[0].length, 5), dtype=np.float32)
    logits[examples[0].positions, [1, 3, 4, 0]] = 3
    said = KIND.decode([logits], examples, rows, labels, TaggingSettings())
    assert said[0].value == ["B-X", "I-X", "B-Y", "O"]
    values = KIND.score(said, rows, TASK, labels).values
    assert (values["f1"], values["f1_strict"], values["accuracy"]) == (1.0, 1.0, 1.0)


UNSEEN = [row("a na hello x", "B-X I-X B-Z I-Z"), row("x a na", "B-Z O B-Y", identity="1")]
FOUND = [["B-X", "I-X", "B-X", "I-X"], ["O", "O", "B-Y"]]


def test_entities_of_a_type_that_training_never_had_count_as_missed(wordpiece: WordPiece) -> None:
    with collecting() as heard:
        coverage = encoded(UNSEEN, wordpiece).coverage
    assert [(notice.kind, notice.message.endswith("count as missed: Z (2).")) for notice in heard] == [("unknown-types", True)]
    assert coverage.unreachable == 2
    best = KIND.score(decoded_as(UNSEEN, [["B-X", "I-X", "O", "O"], ["O", "O", "B-Y"]]), UNSEEN, TASK, LABELS).values
    assert {name: best[name] for name in ("f1", "recall")} == coverage.ceilings == {"f1": 4 / 6, "recall": 2 / 4}
    # conlleval's counts by hand: 4 phrases; found: 3; correct: 2; of 7 words B-X, I-X, O and B-Y are right
    said = decoded_as(UNSEEN, FOUND)
    values = KIND.score(said, UNSEEN, TASK, LABELS).values
    figures = ("precision", "recall", "f1", "accuracy", "Z_precision", "Z_recall", "Z_f1", "X_precision", "X_recall")
    assert [values[name] for name in figures] == [2 / 3, 2 / 4, 4 / 7, 4 / 7, 0.0, 0.0, 0.0, 1 / 2, 1.0]
    detail = KIND.detail(said, UNSEEN, LABELS)
    assert detail.classes["Z"].figures() == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2}
    assert {(error.fault, error.gold): count for error, count in detail.errors.items()} == {("type", "Z"): 1, ("missed", "Z"): 1}


@pytest.mark.slow  # importing seqeval takes seconds
def test_seqeval_counts_them_so_too() -> None:
    from seqeval.metrics import classification_report

    theirs = classification_report([list(asked.tags or ()) for asked in UNSEEN], FOUND, output_dict=True, zero_division=0)
    ours = KIND.score(decoded_as(UNSEEN, FOUND), UNSEEN, TASK, LABELS).values
    for name, prefix in (("micro avg", ""), ("X", "X_"), ("Y", "Y_"), ("Z", "Z_")):
        wanted = [theirs[name][figure] for figure in ("precision", "recall", "f1-score")]
        assert [ours[f"{prefix}{figure}"] for figure in ("precision", "recall", "f1")] == pytest.approx(wanted)


def test_classes_of_words_that_the_labels_lack_are_an_error_in_every_part(wordpiece: WordPiece) -> None:
    labels = Labels(names=("DT", "NN"), problem="")
    with pytest.raises(DataError, match="'UH' of the word 'hello' is none of the labels DT, NN"):
        KIND.encode([row("a na hello", "DT NN UH")], wordpiece, labels, TaggingSettings())
    slip = [row("a na", "B-X O"), row("hello", "B_X", identity="1")]  # one wrong letter makes a part name no entities
    with pytest.raises(DataError, match="'B_X' of the word 'hello'"):
        encoded(slip, wordpiece)


def test_a_tag_of_another_part_that_the_labels_lack_is_named(wordpiece: WordPiece) -> None:
    with pytest.raises(DataError, match="'B-Z' of the word 'na'"):
        encoded([row("a na", "O B-Z")], wordpiece, training=True)


def test_plain_tags_are_labels_as_they_stand(wordpiece: WordPiece) -> None:
    rows = [row("a na hello", "DT NN UH")]
    labels = KIND.labels(rows, TASK, None, for_training=True)
    assert labels.names == ("DT", "NN", "UH")
    example = KIND.encode(rows, wordpiece, labels, TaggingSettings(), for_training=True).examples[0]
    assert example.labels.tolist() == [0, 1, 2]
    with collecting() as heard:
        task = KIND.judged(TASK, rows)
    assert ([notice.kind for notice in heard], task.metrics) == (["plain-tags"], ("accuracy", "f1_macro"))
    assert KIND.judged(TASK, [row("a", "B-X")]) is TASK
    scores = KIND.score(decoded_as(rows, [["DT", "NN", "NN"]]), rows, task, labels)
    # DT 1, NN 2 * 1 / (1 + 2), UH 0
    assert scores.values == {"accuracy": pytest.approx(2 / 3), "f1_macro": pytest.approx((1 + 2 / 3 + 0) / 3)}
    assert (scores.primary, KIND.score(decoded_as(rows, [["NN"] * 3]), rows, TASK, labels).primary) == ("accuracy",) * 2
    with pytest.raises(DataError, match="'UH'"):
        KIND.labels(rows, TASK, ["DT", "NN"], for_training=False)


# --- files -------------------------------------------------------------------------------------------------------------


def test_the_predicted_file_is_the_read_one_with_a_column_more(tmp_path: Path, wordpiece: WordPiece) -> None:
    source = tmp_path / "words.txt"
    source.write_text("-DOCSTART- -X- -X- O\n\nhello O\n\u200e B-X\na O\n\ufffd I-X\nna B-Y\n\n\n\na O\n", encoding="utf-8")
    rows, _ = KIND.read(source, TASK)
    examples = encoded(rows, wordpiece).examples
    said = KIND.decode(rigged(examples), examples, rows, LABELS, TaggingSettings())
    (path,) = KIND.write_official(tmp_path, said, rows, TASK, "test")
    assert path.read_text(encoding="utf-8").split("\n") == [
        "-DOCSTART- -X- -X- O", "", "hello O O", "\u200e B-X O", "a O I-X", "\ufffd I-X O", "na B-Y I-Y", "", "", "", "a O O", ""
    ]  # fmt: skip


def test_predictions_of_any_system_are_read_from_their_column(tmp_path: Path) -> None:
    source, said = tmp_path / "words.txt", tmp_path / "said.txt"
    source.write_text("a I-X\nna I-X\n\nx O\n")
    said.write_text("a I-X B-X\nna I-X I-X\n\n\nx O B-Y\n")
    rows, _ = KIND.read(source, TASK)
    found = KIND.read_official(said, rows, TASK, LABELS)
    assert [one.value for one in found] == [["B-X", "I-X"], ["B-Y"]]
    assert KIND.score(found, rows, TASK, LABELS).values["precision"] == 0.5
    said.write_text("a O\nx O\n\nx O\n")
    with pytest.raises(DataError, match="other words"):
        KIND.read_official(said, rows, TASK, LABELS)
    said.write_text("a O\nna O\n")
    with pytest.raises(DataError, match="1 sentences, but 2"):
        KIND.read_official(said, rows, TASK, LABELS)


def test_rows_held_out_of_a_file_are_written_by_themselves(tmp_path: Path) -> None:
    source = tmp_path / "words.txt"
    source.write_text("hello O\n\na B-X\n\nna O\n")
    rows, _ = KIND.read(source, TASK)
    (path,) = KIND.write_official(tmp_path, decoded_as(rows[1:], [["O"], ["B-Y"]]), rows[1:], TASK, "validation")
    assert path.read_text() == "a B-X O\n\nna O B-Y\n\n"


def test_rows_from_no_file_are_written_too(tmp_path: Path) -> None:
    rows, _ = KIND.from_records(
        [{"tokens": ["a", "na"], "ner_tags": ["B-X", "O"]}, {"tokens": ["x"], "ner_tags": ["O"]}], TASK, source="hub"
    )
    assert KIND.texts(rows[0]) == "a na"
    assert KIND.has_gold(rows)
    (path,) = KIND.write_official(tmp_path, decoded_as(rows, [["O", "O"], ["B-Y"]]), rows, TASK, "test")
    assert path.read_text() == "a B-X O\nna O O\n\nx O B-Y\n\n"


def test_the_scheme_of_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    for text, kinds in (("a I-X\nb B-X\n", ["IOB1"]), ("a S-X\n", ["IOBES"]), ("a B-X\n", [])):
        path.write_text(text)
        with collecting() as heard:
            KIND.read(path, TASK)
        assert [next(kind for kind in ("IOB1", "IOBES") if kind in notice.message) for notice in heard] == kinds
    for text, said in (("a B-X\nb b-x\n", "'b-x' is of no scheme"), ("a NN\nb V-X\n", "")):
        path.write_text(text)
        with collecting() as heard:
            KIND.read(path, TASK)
        assert [said in notice.message for notice in heard] == [True] * bool(said)


@pytest.mark.data
@pytest.mark.slow
def test_real_sentences_and_the_tags_that_perfect_logits_give(real_data: Path) -> None:
    folder = real_data / "data"
    for name, vocabulary in (("conll2003/test.txt", "bert-base-cased"), ("zh/weibo_ner/test.txt", "bert-base-chinese")):
        wordpiece = load_wordpiece(folder / f"vocab/{vocabulary}-vocab.txt", cased=vocabulary.endswith("-cased"))
        rows, _ = KIND.read(folder / name, TASK)
        labels = KIND.labels(rows, TASK, None, for_training=True)
        taught = KIND.encode(rows, wordpiece, labels, TaggingSettings(max_length=40), for_training=True)
        asked = KIND.encode(rows, wordpiece, labels, TaggingSettings(max_length=40))
        assert len(asked.examples) > len(rows)
        known = {(e.row, int(w)): int(label) for e in taught.examples for w, label in zip(e.words, e.labels, strict=True)}
        outputs = []
        for example in asked.examples:
            logits = np.zeros((example.length, labels.outputs), dtype=np.float32)
            logits[example.positions, [known[example.row, int(word)] for word in example.words]] = 1
            outputs.append(logits)
        said = KIND.decode(outputs, asked.examples, rows, labels, TaggingSettings(max_length=40))
        values = KIND.score(said, rows, TASK, labels).values
        assert values["f1"] == pytest.approx(asked.coverage.ceilings.get("f1", 1.0))
        assert entity_scores([list(one.gold) for one in said], [list(one.value) for one in said]).total.f1 == values["f1"]
